//! Which devices Koordinator's scheduler gives a pod.

use std::collections::BTreeMap;

use berth::{
    device::{Amounts, DeviceAllocation, DeviceType, DevicesUsed, JointRequest, TypedRequest},
    dialect::koordinator::{
        dimension::card,
        record,
        shape::{self, CountStrategy},
    },
    scheduling::model::devices::{AllocationSettings, allocate},
};
use serde_json::{Value, json};

use super::{
    fixtures,
    koordinator::{
        allocations, amounts, asked, comparable, node, node_of_totals, requests, scoring, templates,
    },
    table::{Case, Table, Verdict},
};

const GIVES_UP: &str = "upstream chooses GPUs without a look at the NICs and gives up; GPUs 2, 3 and 4 with NICs 2 and 3 are free together";
const EXCLUSIVE: &str =
    "upstream's PCIeLevel has no effect: it gives a second virtual function of a NIC that is in use";
const IN_RESERVE: &str =
    "upstream adds the NICs in a later phase, which the table does not reach; Berth decides once";

#[test]
fn koordinator_allocation() {
    let table = Table {
        file: "koordinator_allocation.json",
        differences: &[
            ("TestAutopilotAllocator#17", IN_RESERVE),
            ("TestAutopilotAllocatorWithExclusivePolicyAndRequiredScope#09", GIVES_UP),
            ("TestAllocateByTopology#01", EXCLUSIVE),
            ("TestAllocateSharedGPU#01", EXCLUSIVE),
        ],
        not_served: &[],
    };
    table.check(judge);
}

fn judge(case: &Case) -> Verdict {
    let input = &case.input;
    let mut labels = input["device_labels"].as_object().cloned().unwrap_or_default();
    labels.extend(input["node_labels"].as_object().cloned().unwrap_or_default());
    let node = node(&input["device"], &Value::Object(labels), &case.context["fixtures"]);
    let node = node.dividing(&templates(&input["gpu_shared_templates"]));
    let pod = &input["pod"];
    let request = asked(&pod["requests"], &pod["annotations_decoded"]);
    let held = (!input["assigned"].is_null()).then(|| allocations(&input["assigned"]));
    let settings = AllocationSettings { scoring: scoring(&input["scorer"]), numa: None };
    let given = allocate(&node, &DevicesUsed::of(held.as_ref()), &request, &settings);
    let wanted = (input["expect_error"] == json!(false)).then(|| comparable(allocations(&input["expect"])));
    let given = given.map(comparable);
    match (&given, wanted.is_none()) {
        (Err(_), true) => Verdict::Equal,
        _ => Verdict::of(&given.as_ref().ok().map(record::encode), &wanted.as_ref().map(record::encode)),
    }
}

#[test]
fn koordinator_allocation_raw() {
    let table = Table { file: "koordinator_allocation_raw.json", differences: &[], not_served: &[] };
    table.check(judge_raw);
}

fn judge_raw(case: &Case) -> Verdict {
    let input = &case.input;
    let node = node_of_totals(&input["device_total"]);
    let types = input["device_requests"].as_object().unwrap().iter();
    let types = types.map(|(kind, list)| typed(DeviceType::named(kind).unwrap(), list)).collect();
    let request = JointRequest { types, ..JointRequest::default() };
    let settings = AllocationSettings { scoring: scoring(&input["scorer"]), numa: None };
    let used = DevicesUsed::of([&remaining(&input["assigned"], &input["preemptible"])]);
    let given = allocate(&node, &used, &request, &settings).map(comparable);
    let given = given.map_err(|shortfalls| shortfalls.iter().map(ToString::to_string).collect::<Vec<_>>());
    let wanted = match input["expect_error"].as_str() {
        Some(error) => Err(vec![error.to_owned()]),
        None => Ok(allocations(&input["expect"])),
    };
    Verdict::of(&given, &wanted)
}

fn typed(kind: DeviceType, list: &Value) -> (DeviceType, TypedRequest) {
    let of = shape::per_device(kind, &requests(list), CountStrategy::Percentage, None).unwrap();
    let request = TypedRequest {
        card: (kind == DeviceType::Gpu).then(card),
        ..fixtures::typed_request(of.each, of.count, of.portion)
    };
    (kind, request)
}

/// What is held once pods that may be preempted are gone.
fn remaining(assigned: &Value, preemptible: &Value) -> BTreeMap<DeviceType, Vec<DeviceAllocation>> {
    let mut held = if assigned.is_null() { BTreeMap::new() } else { allocations(assigned) };
    for (kind, devices) in &mut held {
        for device in devices {
            let gone: Amounts = amounts(&preemptible[kind.name()][device.minor.to_string()]);
            device.amounts = device.amounts.left(&gone);
        }
    }
    held
}
