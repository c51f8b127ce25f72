//! The objects of storage that a family's cluster has: claims, volumes, classes, and what CSI drivers say of nodes.

use berth::scheduling::{model::kind::Kind, world::object::Object};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::family::{Family, HOSTNAME, ZONE};

/// The class and the driver of every claim and volume.
const LOCAL: &str = "local";

/// What there is for the claims of so many pods on so many nodes.
pub(crate) fn objects(family: Family, nodes: usize, pods: usize) -> Vec<Object> {
    let written = match family {
        Family::BoundClaim | Family::NothingAmongOthers => bound("shared", "ReadWriteMany").to_vec(),
        Family::OnePodClaim => {
            (0..pods).flat_map(|pod| bound(&format!("claim-{pod}"), "ReadWriteOncePod")).collect()
        }
        Family::LimitedClaim => {
            let claims = (0..pods).flat_map(|pod| bound(&format!("claim-{pod}"), "ReadWriteOnce"));
            claims.chain((0..nodes).flat_map(limited)).collect()
        }
        Family::DelayedClaim => {
            let volumes = (0..nodes).step_by(5).map(local_volume);
            [class("kubernetes.io/no-provisioner")].into_iter().chain(waiting(pods)).chain(volumes).collect()
        }
        Family::MadeClaim => {
            let driver = json!({"metadata": {"name": LOCAL}, "spec": {"storageCapacity": true}});
            let known = [class(LOCAL), (Kind::CsiDriver, driver)];
            known.into_iter().chain(waiting(pods)).chain((0..nodes).map(capacity)).collect()
        }
        _ => Vec::new(),
    };
    written.into_iter().map(object).collect()
}

/// A class whose claims wait for their first pod.
fn class(provisioner: &str) -> (Kind, Value) {
    let class = json!({"metadata": {"name": LOCAL}, "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer"});
    (Kind::StorageClass, class)
}

/// Claims that wait, one for each pod.
fn waiting(pods: usize) -> impl Iterator<Item = (Kind, Value)> {
    (0..pods).map(|pod| {
        let claim = json!({"metadata": {"namespace": "default", "name": format!("claim-{pod}")},
            "spec": {"storageClassName": LOCAL, "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "10Gi"}}}});
        (Kind::PersistentVolumeClaim, claim)
    })
}

/// A claim that is bound to a volume for the nodes of one zone.
fn bound(name: &str, mode: &str) -> [(Kind, Value); 2] {
    let claim = json!({
        "metadata": {"namespace": "default", "name": name, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"accessModes": [mode], "volumeName": format!("of-{name}"), "storageClassName": LOCAL}});
    let admits = json!({"key": ZONE, "operator": "In", "values": ["zone-1"]});
    let volume = volume(&format!("of-{name}"), "Bound", mode, &admits);
    [(Kind::PersistentVolumeClaim, claim), (Kind::PersistentVolume, volume)]
}

/// A free volume that only the node of this number can mount.
fn local_volume(node: usize) -> (Kind, Value) {
    let admits = json!({"key": HOSTNAME, "operator": "In", "values": [format!("node-{node:05}")]});
    (Kind::PersistentVolume, volume(&format!("local-{node}"), "Available", "ReadWriteOnce", &admits))
}

fn volume(name: &str, phase: &str, mode: &str, admits: &Value) -> Value {
    json!({"metadata": {"name": name}, "status": {"phase": phase},
        "spec": {"capacity": {"storage": "10Gi"}, "accessModes": [mode], "storageClassName": LOCAL,
            "csi": {"driver": LOCAL, "volumeHandle": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [admits]}]}}}})
}

/// How much storage there is for the node of this number.
fn capacity(node: usize) -> (Kind, Value) {
    let capacity = json!({"metadata": {"namespace": "kube-system", "name": format!("capacity-{node}")},
        "storageClassName": LOCAL, "capacity": "100Gi",
        "nodeTopology": {"matchLabels": {HOSTNAME: format!("node-{node:05}")}}});
    (Kind::CsiStorageCapacity, capacity)
}

/// The limit of volumes on the node of this number, and one volume that is attached there.
fn limited(node: usize) -> [(Kind, Value); 2] {
    let name = format!("node-{node:05}");
    let limit = json!({"metadata": {"name": name}, "spec": {"drivers": [{"name": LOCAL, "allocatable": {"count": 39}}]}});
    let attached = json!({"metadata": {"name": format!("attached-{node}")},
        "spec": {"attacher": LOCAL, "nodeName": name, "source": {"persistentVolumeName": "of-claim-999"}}});
    [(Kind::CsiNode, limit), (Kind::VolumeAttachment, attached)]
}

/// The object that is written so.
fn object((kind, written): (Kind, Value)) -> Object {
    match kind {
        Kind::PersistentVolume => Object::PersistentVolume(read(written)),
        Kind::PersistentVolumeClaim => Object::PersistentVolumeClaim(read(written)),
        Kind::StorageClass => Object::StorageClass(read(written)),
        Kind::CsiNode => Object::CsiNode(read(written)),
        Kind::CsiDriver => Object::CsiDriver(read(written)),
        Kind::CsiStorageCapacity => Object::CsiStorageCapacity(read(written)),
        Kind::VolumeAttachment => Object::VolumeAttachment(read(written)),
        kind => unreachable!("no family has a {kind:?}"),
    }
}

fn read<T: DeserializeOwned>(written: Value) -> T {
    serde_json::from_value(written).unwrap()
}
