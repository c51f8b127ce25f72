//! Claims and volumes: bound to a place, to be bound, to be provisioned, missing or lost.

use serde_json::{Value, json};

use crate::kube_scheduler::{
    family::Family,
    world::{HOSTNAME, World, ZONE, push},
};

const DRIVER: &str = "csi.example.com";

/// A claim that is not bound.
pub(super) fn claim(name: &str, namespace: &str, class: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, "uid": format!("uid-{namespace}-{name}")},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class, "resources": {"requests": {"storage": "5Gi"}}},
        "status": {"phase": "Pending"},
    })
}

/// A volume that is not bound and can be anywhere.
pub(super) fn volume(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name, "uid": format!("uid-{name}")},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "10Gi"}, "volumeMode": "Filesystem",
            "csi": {"driver": DRIVER, "volumeHandle": name},
        },
        "status": {"phase": "Available"},
    })
}

/// A claim and the volume that it is bound to.
pub(super) fn bound_claim(name: &str, namespace: &str, volume_name: &str) -> (Value, Value) {
    let (mut claim, mut volume) = (claim(name, namespace, "bound"), volume(volume_name));
    claim["metadata"]["annotations"] =
        json!({"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"});
    claim["spec"]["volumeName"] = json!(volume_name);
    claim["status"]["phase"] = json!("Bound");
    volume["spec"]["storageClassName"] = json!("bound");
    volume["spec"]["claimRef"] = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": name, "namespace": namespace,
        "uid": claim["metadata"]["uid"],
    });
    volume["status"]["phase"] = json!("Bound");
    (claim, volume)
}

/// Has the pod use a claim of its namespace.
pub(super) fn use_claim(pod: &mut Value, claim: &str) {
    push(&mut pod["spec"]["volumes"], json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}}));
}

fn class(name: &str, provisioner: &str, mode: &str) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": provisioner, "volumeBindingMode": mode,
    })
}

/// Pods with a claim in any of its states.
pub(super) fn claims(world: &mut World) {
    world.objects.extend([
        class("static", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
        class("dynamic", DRIVER, "WaitForFirstConsumer"),
        class("immediate", DRIVER, "Immediate"),
    ]);
    let mut zoned = class("zoned", DRIVER, "WaitForFirstConsumer");
    zoned["allowedTopologies"] =
        json!([{"matchLabelExpressions": [{"key": ZONE, "values": ["a", world.dice.one_of(&["b", "c"])]}]}]);
    world.objects.push(zoned);
    if world.dice.in_thousand(500) {
        capacities(world);
    }
    for at in 0..world.dice.below(4) {
        let mut volume = volume(&format!("pv-free-{at}"));
        volume["spec"]["storageClassName"] = json!("static");
        volume["spec"]["nodeAffinity"] = place(world);
        volume["spec"]["capacity"]["storage"] = json!(world.dice.one_of(&["1Gi", "5Gi", "10Gi"]));
        world.objects.push(volume);
    }
    for pod in world.chosen() {
        claim_of(world, pod);
        world.asks(pod, Family::Claims);
    }
}

/// A driver that publishes its capacity, which is enough in some zones only.
fn capacities(world: &mut World) {
    world.add(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER},
        "spec": {"storageCapacity": true, "attachRequired": true},
    }));
    for (at, zone) in ["a", "b"].into_iter().enumerate() {
        for class in ["dynamic", "zoned"] {
            let (field, size) =
                world.dice.one_of(&[("capacity", "1Gi"), ("capacity", "20Gi"), ("maximumVolumeSize", "5Gi")]);
            let mut published = json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity",
                "metadata": {"name": format!("capacity-{class}-{at}"), "namespace": "default"},
                "storageClassName": class, "nodeTopology": {"matchLabels": {ZONE: zone}},
                // kube-scheduler's score ends with a panic where there is none.
                "capacity": world.dice.one_of(&["17Gi", "30Gi"]),
            });
            published[field] = json!(size);
            world.objects.push(published);
        }
    }
}

/// The node affinity of a volume: a zone, or one node.
fn place(world: &mut World) -> Value {
    let (key, value) = if world.dice.in_thousand(600) {
        (ZONE, world.dice.one_of(&["a", "b"]).to_owned())
    } else {
        (HOSTNAME, world.any_node_name())
    };
    json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]}})
}

fn claim_of(world: &mut World, pod: usize) {
    let (name, namespace) = (format!("claim-{pod}"), world.namespace(pod));
    let class = world.dice.one_of(&["static", "dynamic", "zoned", "static"]);
    match world.dice.below(9) {
        0..=2 => {
            let (claim, mut volume) = bound_claim(&name, &namespace, &format!("pv-{name}"));
            volume["spec"]["nodeAffinity"] = place(world);
            world.objects.extend([claim, volume]);
        }
        3 | 4 => world.objects.push(claim(&name, &namespace, class)),
        5 => world.objects.push(claim(&name, &namespace, "immediate")),
        6 => {}
        7 => {
            let (mut claim, _) = bound_claim(&name, &namespace, &format!("pv-{name}"));
            claim["status"]["phase"] = json!("Lost");
            world.objects.push(claim);
        }
        _ => return ephemeral(world, pod, class),
    }
    use_claim(&mut world.waiting[pod], &name);
}

/// A claim that lives as long as the pod: made for it, made for another pod, or not made yet.
fn ephemeral(world: &mut World, pod: usize, class: &str) {
    let (namespace, waiting) = (world.namespace(pod), &mut world.waiting[pod]);
    let mut claim = claim(&format!("p{pod}-scratch"), &namespace, class);
    let template = json!({"spec": claim["spec"]});
    push(
        &mut waiting["spec"]["volumes"],
        json!({"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}),
    );
    let own = format!("uid-p{pod}");
    if let Some(uid) = world.dice.pick(&[(Some(own.as_str()), 3), (Some("uid-of-another"), 1), (None, 1)]) {
        let reference = json!({"apiVersion": "v1", "kind": "Pod", "name": format!("p{pod}"), "uid": uid, "controller": true});
        push(&mut claim["metadata"]["ownerReferences"], reference);
        world.objects.push(claim);
    }
}
