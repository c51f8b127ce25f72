//! What is asked, and by what it is judged: the benchmark of reviews and the count of their allocations ask the same.
//!
//! It must not measure anything.

use std::sync::Arc;

use berth::{
    admission::{self, Facts, InventorySummary, NodeOffer, review},
    config::Config,
    object::Node,
    webhook::Judge,
};
use serde_json::{Value, json};

/// A pod of 2.6 KB as a controller makes it, with a share, a sidecar and what admission plugins have put in.
pub(crate) fn pod() -> Value {
    let mount = json!({"name": "kube-api-access-x7k2p", "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"});
    let env = |count: usize| -> Vec<Value> {
        (0..count)
            .map(|at| json!({"name": format!("SETTING_{at}"), "value": format!("value-of-{at}")}))
            .collect()
    };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "generateName": "train-7d9f8c6b5-", "namespace": "train",
            "labels": {"app": "train", "pod-template-hash": "7d9f8c6b5", "team": "vision"},
            "annotations": {"nvidia.com/use-gputype": "A100", "prometheus.io/scrape": "true"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "train-7d9f8c6b5",
                "uid": "6a1f0c1e-55e1-4a92-9f0a-0d8f0b0f4c11", "controller": true, "blockOwnerDeletion": true}],
        },
        "spec": {
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "kube-api-access-x7k2p", "projected": {"defaultMode": 420, "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}]}},
            ],
            "initContainers": [{"name": "log", "image": "example.com/log:1", "restartPolicy": "Always", "env": env(3),
                "resources": {"limits": {"cpu": "100m", "memory": "64Mi"}, "requests": {"cpu": "100m", "memory": "64Mi"}},
                "volumeMounts": [mount], "imagePullPolicy": "IfNotPresent"}],
            "containers": [{"name": "main", "image": "example.com/train:2026.11", "command": ["python", "-m", "train"],
                "env": env(6), "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                "resources": {
                    "limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1", "nvidia.com/gpumem": "8k", "nvidia.com/gpucores": "50"},
                    "requests": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1", "nvidia.com/gpumem": "8k", "nvidia.com/gpucores": "50"}},
                "volumeMounts": [{"name": "data", "mountPath": "/data"}, mount],
                "terminationMessagePath": "/dev/termination-log", "imagePullPolicy": "IfNotPresent"}],
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default", "securityContext": {}, "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
            "priority": 0, "enableServiceLinks": true, "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {},
    })
}

/// The review of that pod.
pub(crate) fn body() -> Vec<u8> {
    body_of(&pod())
}

/// The review of a pod that is created.
pub(crate) fn body_of(pod: &Value) -> Vec<u8> {
    let review = json!({
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "0df28fbd-5f5f-11e8-bc74-36e6bb280816",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "requestKind": {"group": "", "version": "v1", "kind": "Pod"},
            "requestResource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": "train", "operation": "CREATE",
            "userInfo": {"username": "system:serviceaccount:kube-system:replicaset-controller",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"]},
            "object": pod, "oldObject": null, "dryRun": false,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    });
    serde_json::to_vec(&review).unwrap()
}

/// The built-in settings, one namespace, and 1,000 nodes of 8 cards.
pub(crate) fn judge() -> Judge {
    let config = Config::default();
    let mut facts = Facts::new(config.admission_settings(), config.dialects());
    let node = |at: u32| -> Node {
        let card = |index: u32| {
            json!({"id": format!("GPU-{at:04}-{index}"), "index": index, "count": 10, "devmem": 81920, "devcore": 100,
                "type": "NVIDIA-NVIDIA A100-SXM4-80GB", "mode": "hami-core", "health": true})
        };
        let register = Value::Array((0..8).map(card).collect()).to_string();
        let metadata =
            json!({"name": format!("n{at}"), "annotations": {"hami.io/node-nvidia-register": register}});
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    };
    let offers = (0..1000).map(|at| NodeOffer::read(&node(at), &facts.dialects));
    facts.inventory = Some(Arc::new(InventorySummary::new(offers)));
    Arc::new(move |request: &admission::Request<'_>| review(request, &facts))
}
