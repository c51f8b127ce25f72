//! Allocations on some of a node's NUMA nodes.
//!
//! Berth has no topology manager of its own: the hints of the table are what trial allocations on each set of NUMA nodes tell.

use std::collections::BTreeSet;

use berth::{
    device::{DeviceAllocations, DeviceType, DevicesUsed, JointRequest, NodeDevices},
    scheduling::model::devices::{AllocationSettings, Shortfall, allocate},
};
use serde_json::{Value, json};

use super::{
    koordinator::{allocations, asked, merged, node, of},
    table::{Case, Table, Verdict},
    upstream::list,
};

#[test]
fn koordinator_numa_hints() {
    let table = Table {
        file: "koordinator_numa_hints.json",
        differences: &[],
        not_served: &[(
            "cases_designated",
            "a pod that carries an allocation already is held by it, and not placed again",
        )],
    };
    table.check(judge);
}

/// The node that the table leaves to another one: two NUMA nodes of two switches with two GPUs and a NIC each.
pub(crate) fn machine() -> NodeDevices {
    let mut devices = Vec::new();
    for switch in 0..4 {
        let place = json!({"socketID": switch / 2, "nodeID": switch / 2, "pcieID": switch.to_string()});
        let vfs: Vec<_> =
            (0..30).map(|minor| json!({"minor": minor, "busID": format!("{switch}:{minor:02}")})).collect();
        devices.push(json!({"type": "rdma", "minor": switch + 1, "health": true, "topology": place,
            "labels": {"type": "fakeW"}, "resources": {"koordinator.sh/rdma": "100"},
            "vfGroups": [{"labels": {"type": "general"}, "vfs": vfs}]}));
        for minor in [2 * switch, 2 * switch + 1] {
            let resources = json!({"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100",
                "koordinator.sh/gpu-memory": "83201216Ki"});
            devices.push(json!({"type": "gpu", "minor": minor, "health": true, "topology": place, "resources": resources}));
        }
    }
    node(
        &json!({"metadata": {"name": "test-node-1"}, "spec": {"devices": devices}}),
        &Value::Null,
        &Value::Null,
    )
}

fn judge(case: &Case) -> Verdict {
    let input = &case.input;
    let annotations = json!({
        "scheduling.koordinator.sh/device-allocate-hint": input["hints"],
        "scheduling.koordinator.sh/device-joint-allocate": input["jointAllocate"],
    });
    let request = asked(&merged(&input["podRequests"]), &annotations);
    let held = (!input["assignedDevices"].is_null()).then(|| allocations(&input["assignedDevices"]));
    let used = DevicesUsed::of(held.as_ref());
    match case.test.as_str() {
        "cases_allocate" => {
            let affinity = &input["affinity"]["numaNodeAffinity"];
            let numa = (!affinity.is_null()).then(|| of(affinity));
            let refused = on(numa, &used, &request).is_err();
            Verdict::of(&refused, &(input["wantErr"] == json!(true)))
        }
        "cases_hints" => {
            let wanted = input["want"].as_object().and_then(|hints| hints.values().next());
            Verdict::of(&hints(&used, &request), &wanted.map(|hints| list(hints).iter().map(hint).collect()))
        }
        other => panic!("no adapter for {other}"),
    }
}

fn on(
    numa: Option<BTreeSet<u32>>,
    used: &DevicesUsed,
    request: &JointRequest,
) -> Result<DeviceAllocations, Vec<Shortfall>> {
    allocate(&machine(), used, request, &AllocationSettings { scoring: None, numa })
}

/// NUMA nodes, whether no fewer would do, and whether the GPUs are those of the whole node.
type Hint = (BTreeSet<u32>, bool, bool);

fn hint(value: &Value) -> Hint {
    (of(&value["numaNodeAffinity"]), of(&value["preferred"]), value["score"].as_u64() == Some(500))
}

fn hints(used: &DevicesUsed, request: &JointRequest) -> Option<Vec<Hint>> {
    let gpus = |given: &DeviceAllocations| {
        let gpus = given.get(&DeviceType::Gpu).into_iter().flatten();
        gpus.map(|gpu| gpu.minor).collect::<BTreeSet<_>>()
    };
    let masks = [vec![0], vec![1], vec![0, 1]].map(BTreeSet::from_iter);
    let whole = gpus(&on(Some(masks[2].clone()), used, request).ok()?);
    let feasible = masks.into_iter().filter_map(|mask| {
        let given = on(Some(mask.clone()), used, request).ok()?;
        Some((mask, gpus(&given) == whole))
    });
    let feasible: Vec<_> = feasible.collect();
    let least = feasible.iter().map(|(mask, _)| mask.len()).min()?;
    Some(feasible.into_iter().map(|(mask, same)| (mask.clone(), mask.len() == least, same)).collect())
}
