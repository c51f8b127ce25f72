//! Which devices Koordinator's scheduler gives a pod that may use a Reservation.

use std::collections::BTreeMap;

use berth::{
    device::{DeviceAllocation, DeviceAllocations, DeviceType, DevicesUsed},
    dialect::koordinator::{record, request},
    scheduling::model::devices::{
        AllocatePolicy, AllocationSettings, ReservedDevices, allocate, allocate_within,
    },
};
use serde_json::{Value, json};

use super::{
    koordinator::{PerMinor, allocations, comparable, merged, node_of_totals, per_minor},
    table::{Case, Table, Verdict},
    upstream::pod_of,
};

const IGNORED: &str = "the label `reservation-ignored` lets a pod take what Reservations hold; Berth keeps that for their owners";
const PRE_ALLOCATED: &str =
    "a Reservation that takes over a running pod is Koordinator's scheduler's own to place";

#[test]
fn koordinator_reservation() {
    let table = Table {
        file: "koordinator_reservation.json",
        differences: &[],
        not_served: &[
            ("Test_tryAllocateFromReservation#11", IGNORED),
            ("Test_tryAllocateFromReservation#12", IGNORED),
            ("Test_tryAllocateFromReservation#13", PRE_ALLOCATED),
        ],
    };
    table.check(judge);
}

fn judge(case: &Case) -> Verdict {
    let (input, state) = (&case.input, &case.input["restoreState"]);
    let node = node_of_totals(&input["device_total"]);
    let pod = pod_of(&json!({}), &merged(&input["state"]["podRequests"]));
    let request = request::request(&pod).unwrap().unwrap();
    let settings = AllocationSettings { scoring: None, numa: None };
    let Some(matched) = state["matched"].as_array() else {
        // Upstream leaves a pod without a Reservation to the allocation on the whole node.
        let fits = allocate(&node, &DevicesUsed::default(), &request, &settings).is_ok();
        return Verdict::of(&(input["wantResult"].is_null(), fits), &(true, true));
    };
    let [matched] = &matched[..] else { panic!("{matched:?}") };
    let left = per_minor(&matched["remained"]);
    let used = beside(&input["deviceUsed"], &[&left, &per_minor(&state["mergedMatchedAllocated"])]);
    let policy = match matched["rInfo"]["reservation"]["spec"]["allocatePolicy"].as_str() {
        Some("Restricted") => AllocatePolicy::Restricted,
        _ => AllocatePolicy::Aligned,
    };
    let reserved = reserved(&matched["allocatable"], &left);
    let given = allocate_within(&node, &used, &request, &settings, (&reserved, policy));
    let given = given.map(comparable).map_err(|shortfalls| {
        shortfalls.iter().map(|one| format!("Reservation(s) {one}")).collect::<Vec<_>>()
    });
    let wanted = match &input["wantResult"] {
        Value::Null => Err(serde_json::from_value(input["wantStatus"]["reasons"].clone()).unwrap()),
        devices => Ok(comparable(allocations(devices))),
    };
    let text = |devices: DeviceAllocations| record::encode(&devices);
    Verdict::of(&given.map(text), &wanted.map(text))
}

/// What is in use beside what these say, of which upstream counts the Reservation and the pods in it twice.
fn beside(used: &Value, without: &[&PerMinor]) -> DevicesUsed {
    let mut held = DeviceAllocations::new();
    for (key, mut amounts) in per_minor(&json!({"gpu": used})) {
        for gone in without.iter().filter_map(|gone| gone.get(&key)) {
            amounts = amounts.left(gone);
        }
        let one = DeviceAllocation { minor: key.1, amounts, ..DeviceAllocation::default() };
        held.entry(key.0).or_default().push(one);
    }
    DevicesUsed::of([&held])
}

/// What is left of a Reservation that holds these devices.
fn reserved(allocatable: &Value, left: &PerMinor) -> ReservedDevices {
    let types: BTreeMap<DeviceType, _> =
        per_minor(allocatable).into_keys().map(|(kind, _)| (kind, BTreeMap::new())).collect();
    let mut reserved: ReservedDevices = types;
    for ((kind, minor), amounts) in left {
        reserved.entry(*kind).or_default().insert(*minor, amounts.clone());
    }
    reserved
}
