//! Every call of HAMi's fit that its own tests make.

use serde_json::{Value, json};

use super::{
    call::{Call, Outcome, devices, held, links, quota},
    table::{Table, Verdict},
    upstream::{list, number, text},
};

const OTHER_TYPE: &str =
    "upstream's caller asks for another vendor's type; Berth's request has no type of its own";
const SLICE: &str =
    "upstream returns what was asked and charges the MIG slice later; Berth's share is the slice at once";

#[test]
fn hami_recorded_fit_calls() {
    let table = Table { file: "hami_recorded_fit_calls.json", differences: DIFFERENCES, not_served: &[] };
    table.check(|case| Verdict::of(&berth(&case.input), &upstream(&case.expect)));
}

const DIFFERENCES: &[(&str, &str)] = &[
    ("nvidia.TestDevices_Fit.func1#4", OTHER_TYPE),
    ("scheduler.TestFitInDevicesAllowsMultipleMigPlacementsOnSingleGPU#1", SLICE),
    ("scheduler.TestFitInDevicesAllowsMultipleMigPlacementsOnSingleGPU#2", SLICE),
    ("scheduler.Test_fitInCertainDevice.func1#2", OTHER_TYPE),
];

fn berth(input: &Value) -> Outcome {
    let call = Call {
        devices: list(&input["devices_in_call_order"]).iter().collect(),
        request: &input["request"],
        annotations: &input["pod_annotations"],
        node: &input["node_annotations"],
        links: links(&list(&input["pair_scores"]).iter().collect::<Vec<_>>()),
        quota: quota(&input["quota_cache"], text(input, "pod_namespace")),
        held: held(&input["already_allocated_in_pod"], number(input, "pod_init_containers") as usize),
    };
    call.outcome()
}

fn upstream(expect: &Value) -> Outcome {
    if expect["fit"] == json!(true) {
        Ok(devices(&expect["devices"]))
    } else {
        Err(text(expect, "reason").to_owned())
    }
}
