//! What a HAMi pod with init containers holds of each card.

use std::collections::BTreeMap;

use berth::device::{InitPhase, Usage};
use serde_json::Value;

use super::{
    table::{Case, Table, Verdict},
    upstream::{assignment, list, number, text},
};

#[test]
fn hami_init_containers() {
    let table = Table { file: "hami_init_containers.json", differences: &[], not_served: &[] };
    table.check(judge);
}

type Cards = BTreeMap<String, (u32, u64, u32)>;

fn judge(case: &Case) -> Verdict {
    let init = if text(&case.input, "function") == "CollapseInitContainerUsage" {
        InitPhase::Ahead
    } else {
        InitPhase::Done
    };
    let count = number(&case.input, "init_containers") as usize;
    let vendors = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let held = vendors(&case.input["raw"]).values().map(|raw| held(raw, count, init)).collect::<Vec<_>>();
    let wanted = vendors(&case.expect).values().map(wanted).collect::<Vec<_>>();
    Verdict::of(&held, &wanted)
}

fn held(raw: &Value, init_containers: usize, init: InitPhase) -> Cards {
    let usage = Usage::of([(&assignment(raw, init_containers), init)]);
    let card = |(id, used): (&berth::device::CardId, berth::device::CardUsage)| {
        (id.to_string(), (used.slots, used.memory.get(), used.cores.get()))
    };
    usage.cards().map(card).collect()
}

fn wanted(containers: &Value) -> Cards {
    let devices = list(containers).iter().flat_map(list);
    let card = |device: &Value| {
        let used = (number(device, "Slots"), number(device, "Usedmem").into(), number(device, "Usedcores"));
        (text(device, "UUID").to_owned(), used)
    };
    devices.map(card).collect()
}
