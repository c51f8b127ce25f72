//! What is there and what is used on a node after events of its Device and its pods.

use berth::{
    device::{DeviceAllocations, DevicesUsed, NodeDevices},
    dialect::koordinator::record,
};
use serde_json::{Value, json};

use super::{
    koordinator::{PerMinor, node, node_of_totals, per_minor},
    table::{Case, Table, Verdict},
    upstream::pod,
};

const NAMELESS: &str = "the API server sends no object without a name";

#[test]
fn koordinator_cache_events() {
    let table = Table {
        file: "koordinator_cache_events.json",
        differences: &[],
        not_served: &[
            ("Test_nodeDeviceCache_onDeviceDelete#01", NAMELESS),
            ("Test_nodeDeviceCache_onDeviceDelete#02", NAMELESS),
            ("Test_nodeDeviceCache_onDeviceDelete#03", NAMELESS),
            ("Test_nodeDeviceCache_onPodDelete#02", NAMELESS),
        ],
    };
    table.check(judge);
}

fn judge(case: &Case) -> Verdict {
    let input = &case.input;
    if case.test == "cases_Test_nodeDeviceCache_updatePod_unassigned" {
        let left = held(&input["oldPod"]).is_some() && held(&input["newPod"]).is_none();
        return Verdict::of(&json!(left), &input["wantOldPodCleanedFromCache"]);
    }
    let before = input["deviceCache"]["nodeDeviceInfos"].as_object();
    let before = before.and_then(|nodes| nodes.values().next()).cloned().unwrap_or_default();
    let node = match case.test.as_str() {
        "cases_Test_nodeDeviceCache_onDeviceAdd" => node(&input["device"], &Value::Null, &Value::Null),
        "cases_Test_nodeDeviceCache_onDeviceUpdate" => node(&input["newDevice"], &Value::Null, &Value::Null),
        "cases_Test_nodeDeviceCache_onDeviceDelete" => NodeDevices::default(),
        _ => node_of_totals(&before["deviceTotal"]),
    };
    let gone = case.test == "cases_Test_nodeDeviceCache_onPodDelete";
    let used = DevicesUsed::of(held(&input["pod"]).filter(|_| !gone).as_ref());
    let wanted = input["wantCache"].as_object().and_then(|nodes| nodes.values().next());
    let wanted = wanted.cloned().unwrap_or_default();
    let wanted = ["deviceTotal", "deviceFree", "deviceUsed"].map(|key| per_minor(&wanted[key]));
    Verdict::of(&state(&node, &used), &wanted)
}

/// What the pod holds on its node.
fn held(value: &Value) -> Option<DeviceAllocations> {
    let pod = pod(value);
    let bound = pod.spec.node_name.as_ref().is_some_and(|name| !name.is_empty());
    if !bound || pod.is_terminal() {
        return None;
    }
    record::carried(&pod).ok().flatten()
}

/// What there is, what is free and what is used.
fn state(node: &NodeDevices, used: &DevicesUsed) -> [PerMinor; 3] {
    let devices = || {
        let each = |(&kind, of): (&berth::device::DeviceType, &std::collections::BTreeMap<_, _>)| {
            of.keys().map(move |&minor| (kind, minor)).collect::<Vec<_>>()
        };
        node.devices.iter().flat_map(each)
    };
    let total =
        devices().map(|(kind, minor)| ((kind, minor), DevicesUsed::default().left_of(node, kind, minor)));
    let free = devices().map(|(kind, minor)| ((kind, minor), used.left_of(node, kind, minor)));
    let used = used.iter().map(|(kind, minor, of)| ((kind, minor), of.amounts.clone()));
    [total.collect::<PerMinor>(), free.collect(), used.collect()].map(|mut state| {
        state.retain(|_, amounts| !amounts.is_zero());
        state
    })
}
