//! How well a pod would sit on a node, by its devices.

use berth::{
    device::DevicesUsed,
    scheduling::model::devices::{AllocationSettings, score},
};
use serde_json::Value;

use super::{
    koordinator::{asked, default_scoring, merged, node_of_totals, per_minor},
    table::{Case, Table, Verdict},
    upstream::list,
};

const RESERVED: &str = "about a Reservation; Berth places none";
const NOTHING_ASKED: &str = "the pod asks for no device, or the node has none: its devices are not scored";

#[test]
fn koordinator_scoring() {
    let table = Table {
        file: "koordinator_scoring.json",
        differences: &[],
        not_served: &[
            ("TestScore#01", NOTHING_ASKED),
            ("TestScore#02", NOTHING_ASKED),
            ("TestScore#03", NOTHING_ASKED),
            ("TestScore#04", NOTHING_ASKED),
            ("TestScore#14", RESERVED),
            ("cases_score_reservation", RESERVED),
        ],
    };
    table.check(judge);
}

fn judge(case: &Case) -> Verdict {
    let input = &case.input;
    let cache = &input["nodeDeviceCache"]["nodeDeviceInfos"]["test-node"];
    let request = asked(&merged(&input["state"]["podRequests"]), &Value::Null);
    let gone = per_minor(&input["state"]["preemptibleDevices"]["test-node"]);
    let used = per_minor(&cache["deviceUsed"]).into_iter().map(|(key, amounts)| {
        (key, gone.get(&key).map_or_else(|| amounts.clone(), |gone| amounts.left(gone)))
    });
    let held: Vec<_> = used
        .map(|((kind, minor), amounts)| {
            let device = berth::device::DeviceAllocation { minor, amounts, ..Default::default() };
            berth::device::DeviceAllocations::from([(kind, vec![device])])
        })
        .collect();
    let settings = AllocationSettings { scoring: Some(default_scoring(&input["strategy"])), numa: None };
    let score = score(&node_of_totals(&cache["deviceTotal"]), &DevicesUsed::of(&held), &request, &settings);
    let wanted = match list(&input["wantStatus"]["reasons"]) {
        [] => Ok(input["wantScore"].as_u64().unwrap()),
        reasons => Err(reasons.iter().map(|reason| reason.as_str().unwrap().to_owned()).collect()),
    };
    Verdict::of(&score.map_err(|of| of.iter().map(ToString::to_string).collect::<Vec<_>>()), &wanted)
}
