//! What a cluster with claims from templates consists of, as Kubernetes writes it: nodes, slices of 8 devices, a class, claims and their pods.

use serde_json::{Value, json};

/// The driver of every device, and the name of the class.
pub(crate) const DRIVER: &str = "gpu.example.com";
/// How many devices a node has.
pub(crate) const DEVICES: usize = 8;
/// How many shares a device of [`Kind::Share`] has room for.
pub(crate) const SHARES: usize = 10;
/// The namespace of claims and pods.
pub(crate) const NAMESPACE: &str = "default";

/// What each claim asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// One device of a class without selectors.
    Any,
    /// One device of a class with a selector, and with a selector of its own that reads an attribute and a capacity.
    Selected,
    /// A tenth of a device's memory.
    Share,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Any => "a claim from a template, any device",
            Self::Selected => "a claim from a template, two selectors",
            Self::Share => "a claim from a template, a share",
        }
    }

    /// How many claims a node has room for.
    pub(crate) fn room(self) -> usize {
        if self == Self::Share { DEVICES * SHARES } else { DEVICES }
    }
}

/// The name of the node of this number.
pub(crate) fn node_name(at: usize) -> String {
    format!("node-{at:05}")
}

/// A node that kubelet has reported ready.
pub(crate) fn node(at: usize) -> Value {
    let name = node_name(at);
    let resources = json!({"pods": "110", "cpu": "64", "memory": "512Gi"});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "capacity": resources, "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

/// What the driver publishes of the node of this number.
pub(crate) fn slice(at: usize, kind: Kind) -> Value {
    let name = node_name(at);
    let device = |index: usize| {
        let attributes = json!({
            "uuid": {"string": format!("GPU-{at}-{index}")}, "model": {"string": "A100"}, "index": {"int": index},
            "driverVersion": {"version": "570.86.15"},
        });
        let mut device = json!({
            "name": format!("gpu-{index}"), "attributes": attributes, "capacity": {"memory": {"value": "80Gi"}},
        });
        if kind == Kind::Share {
            device["allowMultipleAllocations"] = json!(true);
            device["capacity"]["memory"]["requestPolicy"] =
                json!({"default": "80Gi", "validRange": {"min": "1Gi"}});
        }
        device
    };
    let devices: Vec<Value> = (0..DEVICES).map(device).collect();
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
        "metadata": {"name": format!("{name}-gpu")},
        "spec": {
            "driver": DRIVER, "nodeName": name, "devices": devices,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
        },
    })
}

/// The class of every request.
pub(crate) fn class(kind: Kind) -> Value {
    let selector = json!({"cel": {"expression": format!("device.driver == '{DRIVER}'")}});
    let selectors = if kind == Kind::Selected { vec![selector] } else { Vec::new() };
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
        "metadata": {"name": DRIVER}, "spec": {"selectors": selectors},
    })
}

/// The name of the claim that was made for this pod.
pub(crate) fn claim_name(pod: &str) -> String {
    format!("{pod}-gpu")
}

/// The claim that was made from the template for a pod. Claims whose request has another name ask for something else.
pub(crate) fn claim(pod: (&str, &str), kind: Kind, request: &str) -> Value {
    let (name, uid) = pod;
    let mut exactly = json!({"deviceClassName": DRIVER, "allocationMode": "ExactCount", "count": 1});
    match kind {
        Kind::Any => {}
        Kind::Selected => {
            let expression = format!(
                "device.attributes['{DRIVER}'].model == 'A100' && \
                 device.capacity['{DRIVER}'].memory.compareTo(quantity('40Gi')) >= 0"
            );
            exactly["selectors"] = json!([{"cel": {"expression": expression}}]);
        }
        Kind::Share => exactly["capacity"] = json!({"requests": {"memory": "8Gi"}}),
    }
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": true, "blockOwnerDeletion": true});
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {
            "namespace": NAMESPACE, "name": claim_name(name), "uid": format!("claim-of-{uid}"),
            "annotations": {"resource.kubernetes.io/pod-claim-name": "gpu"}, "ownerReferences": [owner],
        },
        "spec": {"devices": {"requests": [{"name": request, "exactly": exactly}]}},
    })
}

/// The status of a claim whose pod is on the node of this number: the claim holds the node's device of this number, or a share of it.
pub(crate) fn allocated(pod: (&str, &str), kind: Kind, (node, place): (usize, usize)) -> Value {
    let (name, uid) = pod;
    let mut result = json!({
        "request": "gpu", "driver": DRIVER, "pool": node_name(node), "device": format!("gpu-{}", place % DEVICES),
    });
    if kind == Kind::Share {
        result["shareID"] = json!(format!("{node:08x}-0000-4000-8000-{place:012x}"));
        result["consumedCapacity"] = json!({"memory": "8Gi"});
    }
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node_name(node)]});
    json!({
        "allocation": {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        },
        "reservedFor": [{"resource": "pods", "name": name, "uid": uid}],
    })
}

/// A pod that uses the claim of its template; without its status, as a user creates it.
pub(crate) fn pod(name: &str, scheduler: &str) -> Value {
    let resources = json!({"requests": {"cpu": "100m", "memory": "500Mi"}, "claims": [{"name": "gpu"}]});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": NAMESPACE, "name": name, "labels": {"app": "work"}},
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10.1", "resources": resources}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        },
    })
}

/// What the status of a pod says of its claim.
pub(crate) fn claim_statuses(pod: &str) -> Value {
    json!([{"name": "gpu", "resourceClaimName": claim_name(pod)}])
}
