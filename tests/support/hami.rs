//! Nodes and pods as the API server has them, with HAMi's annotations.
//!
//! Tests and benches include this file. It must not assert anything.

use serde_json::{Value, json};

/// A node with so many cards `GPU-<node>-<index>` of so many MiB each, and room for many pods.
pub(crate) fn node(name: &str, cards: u32, memory: u32) -> Value {
    let card = |at: u32| {
        json!({"id": format!("GPU-{name}-{at}"), "index": at, "count": 10, "devmem": memory, "devcore": 100,
            "type": "NVIDIA-A100", "numa": 0, "mode": "hami-core", "health": true})
    };
    let registered = json!((0..cards).map(card).collect::<Vec<_>>()).to_string();
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": name, "resourceVersion": "1", "labels": {"kubernetes.io/hostname": name},
            "annotations": {"hami.io/node-nvidia-register": registered}},
        "status": {"allocatable": {"cpu": "640", "memory": "2048Gi", "pods": "1000"}},
    })
}

/// A pod that asks for so many MiB of so many cards.
pub(crate) fn pod(namespace: &str, name: &str, (cards, memory): (u32, u32)) -> Value {
    let limits = json!({"nvidia.com/gpu": cards.to_string(), "nvidia.com/gpumem": memory.to_string()});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": format!("{namespace}/{name}"), "resourceVersion": "1",
            "creationTimestamp": "2026-11-20T09:00:00Z"},
        "spec": {"schedulerName": "berth", "priority": 0,
            "containers": [{"name": "main", "image": "none", "resources": {"limits": limits}}]},
    })
}

/// The pod as it runs on this node with so many MiB of this card.
pub(crate) fn bound(mut pod: Value, node: &str, card: &str, memory: u32) -> Value {
    pod["metadata"]["annotations"] = json!({
        "hami.io/vgpu-node": node, "hami.io/bind-phase": "success",
        "hami.io/vgpu-devices-allocated": format!("{card},NVIDIA,{memory},0:;"),
    });
    pod["spec"]["nodeName"] = node.into();
    pod["status"] = json!({"phase": "Running", "startTime": "2026-11-20T10:00:00Z"});
    pod
}
