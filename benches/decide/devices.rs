//! Nodes with 8 GPUs and 8 NICs below 4 PCIe switches, and pods that ask for a GPU and a NIC of one switch.

use std::sync::Arc;

use berth::{
    cluster::read::devices,
    config::Config,
    object::Pod,
    scheduling::{Ask, world::object::Object},
};
use serde_json::{Value, json};

/// What Koordinator's node side lists of the node of this name.
pub(crate) fn listed(node: &Arc<str>) -> Object {
    let place = |at: u32| {
        let (numa, switch) = (at / 4, format!("pcie-{}", at / 2));
        json!({"socketID": numa, "nodeID": numa, "pcieID": switch, "busID": format!("0000:{at:02x}:00.0")})
    };
    let gpu = |at: u32| {
        json!({
            "type": "gpu", "minor": at, "id": format!("uuid-{node}-{at}"), "health": true, "topology": place(at),
            "resources": {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": "80Gi", "koordinator.sh/gpu-memory-ratio": "100"},
        })
    };
    let nic = |at: u32| {
        json!({
            "type": "rdma", "minor": at, "id": format!("0000:{at:02x}:00.1"), "health": true, "topology": place(at),
            "resources": {"koordinator.sh/rdma": "100"},
        })
    };
    let all: Vec<Value> = (0..8).map(gpu).chain((0..8).map(nic)).collect();
    let device = json!({"metadata": {"name": &**node}, "spec": {"devices": all}});
    let (offer, unreadable) = devices(&serde_json::from_value(device).unwrap());
    assert!(unreadable.is_empty(), "{unreadable:?}");
    Object::Device(node.clone(), Arc::new(offer))
}

/// What a pod asks for that wants the compute of a GPU, so much of its memory in MiB, and a NIC of the same switch.
pub(crate) fn ask(memory: u64) -> Ask {
    let limits = json!({
        "koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": format!("{memory}Mi"), "koordinator.sh/rdma": "100",
    });
    let rule = json!({"deviceTypes": ["gpu", "rdma"], "requiredScope": "SamePCIe"}).to_string();
    let pod = json!({
        "metadata": {
            "name": "joint", "namespace": "default", "annotations": {"scheduling.koordinator.sh/device-joint-allocate": rule},
        },
        "spec": {"schedulerName": "berth", "containers": [{"name": "main", "resources": {"limits": limits}}]},
    });
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let demand = Config::default().reader().pod(&pod).0.demand().unwrap();
    let mut ask = Ask::clone(&demand.ask);
    // Nodes of a bench advertise nothing.
    ask.resources = Arc::new(berth::scheduling::ResourceAmounts::default());
    ask
}
