//! HAMi's fit, quota and MIG placement, by its tables.

use std::cell::RefCell;

use berth::{
    device::{CardPolicy, Cores, MiB, PodRequest, Quota, Role, SlicePlacement, SliceProfile},
    dialect::hami::Hami,
    scheduling::plugin::allocate::{allocate, links::subsets, slice::free_place},
};
use serde_json::{Value, json};

use super::{
    call::{Call, Outcome, devices, held, links, plain, quota, words},
    table::{Case, Table, Verdict},
    upstream::{card, container, list, number, placement, request, text, usage},
};

#[test]
fn hami_fit() {
    let table = Table { file: "hami_fit.json", differences: DIFFERENCES, not_served: &[] };
    let occupied = RefCell::new(Vec::new());
    table.check(|case| judge(case, &occupied));
}

const OTHER_TYPE: &str =
    "upstream's caller asks for another vendor's type; Berth's request has no type of its own";

const DIFFERENCES: &[(&str, &str)] = &[
    ("TestDevices_Fit / fit fail: type mismatch", OTHER_TYPE),
    ("Test_fitInCertainDevice / card type don't match", OTHER_TYPE),
    ("Test_fitInDevices / device type the different from request type", OTHER_TYPE),
];

fn judge(case: &Case, occupied: &RefCell<Vec<SlicePlacement>>) -> Verdict {
    let (input, expect) = (&case.input, &case.expect);
    match case.test.as_str() {
        "TestDevices_Fit" => {
            let outcome = fit(list(&input["devices"]).iter().collect(), input, &input["annos"]);
            let chosen = |shares: Vec<(String, u64, u32)>| {
                json!(shares.into_iter().map(|share| share.0).collect::<Vec<_>>())
            };
            Verdict::of(
                &outcome.map(chosen),
                &answer(expect, "wantFit", expect["wantDevIDs"].clone(), text(expect, "wantReason")),
            )
        }
        "Test_fitInCertainDevice" | "Test_Nvidia_GPU_Topology" => {
            let outcome = fit(on_node(input), input, &input["pod"]["metadata"]["annotations"]);
            let reason = reason(&expect["want3"]);
            let stripped = outcome.map_err(|words| without_totals(&words));
            Verdict::of(&stripped, &answer(expect, "want1", devices(&expect["want2"]["NVIDIA"]), &reason))
        }
        "Test_fitInDevices" => {
            Verdict::of(&allocated(input), &answer(expect, "want1", (), text(expect, "want2")))
        }
        "TestFitQuota" => Verdict::of(&json!(fits_quota(input)), &expect["expectedResult"]),
        "TestGenerateCombinations" => {
            Verdict::of(&json!(subsets(4, number(input, "nums") as usize)), &expect["wantLen"])
        }
        "TestSelectMigPlacementUsesBalancedPacking" => {
            let place = free_place(&a100(text(input, "profile")), &occupied.borrow());
            occupied.borrow_mut().extend(place);
            Verdict::of(&place.map(|place| place.start), &Some(number(expect, "start")))
        }
        "TestCanPlaceMigProfilesA100" => Verdict::of(&json!(all_placed(input)), expect),
        other => panic!("no adapter for {other}"),
    }
}

fn fit(cards: Vec<&Value>, input: &Value, annotations: &Value) -> Outcome {
    let scores: Vec<_> =
        list(&input["nodeInfo"]["Devices"]["NVIDIA"]).iter().map(|card| &card["DevicePairScore"]).collect();
    let call = Call {
        devices: cards,
        request: &input["request"],
        annotations,
        node: &Value::Null,
        links: links(&scores),
        quota: Quota::default(),
        held: held(&input["allocated"], 0),
    };
    call.outcome()
}

fn answer<T>(expect: &Value, fits: &str, shares: T, reason: &str) -> Result<T, String> {
    if expect[fits] == json!(true) { Ok(shares) } else { Err(reason.to_owned()) }
}

fn on_node(input: &Value) -> Vec<&Value> {
    list(&input["node"]["Devices"]["DeviceLists"])
        .iter()
        .map(|entry| &entry["Device"])
        .filter(|card| text(card, "Type").contains("NVIDIA"))
        .collect()
}

/// Upstream's test takes its own message apart; here it is put together again, without totals.
fn reason(counts: &Value) -> String {
    let counts = counts.as_object().into_iter().flatten();
    let mut words: Vec<_> = counts.map(|(reason, count)| format!("{count} {reason}")).collect();
    words.sort();
    words.join(", ")
}

fn without_totals(words: &str) -> String {
    let mut parts: Vec<_> = words
        .split(", ")
        .map(|part| {
            let (count, reason) = part.split_once(' ').unwrap();
            format!("{} {reason}", count.split('/').next().unwrap())
        })
        .collect();
    parts.sort();
    parts.join(", ")
}

fn allocated(input: &Value) -> Result<(), String> {
    let given: Vec<Value> = on_node(input).into_iter().cloned().collect();
    let inventory = berth::device::Inventory::new(given.iter().map(card).collect());
    let asked = input["requests"].as_object().into_iter().flatten();
    let containers = asked.map(|(_, ask)| container(Role::App, request(ask))).collect();
    let asked = PodRequest { containers, ..plain(CardPolicy::Spread) };
    let outcome = allocate(&asked, &inventory, &usage(&given), &Hami::profile(), Quota::default());
    outcome.map(|_| ()).map_err(|reasons| words(&reasons))
}

fn fits_quota(input: &Value) -> bool {
    let init = list(&input["pod"]["spec"]["initContainers"]).len();
    let mut held = held(&input["allocated"], init);
    let chosen: Vec<_> = list(&input["tmpDevs"]["NVIDIA"]).iter().map(super::upstream::share).collect();
    held.take(Role::App, &chosen);
    let device = json!({"ID": input["devUUID"], "Count": 100, "Totalmem": 100_000, "Totalcore": 100, "Type": "NVIDIA", "Health": true});
    let request =
        json!({"Nums": 1, "Memreq": input["memreq"], "Coresreq": input["coresreq"], "Type": "NVIDIA"});
    let cache = json!({"default": {"nvidia.com/gpumem": {"Limit": 2048, "LimitSet": true}}});
    let call = Call {
        devices: vec![&device],
        request: &request,
        annotations: &Value::Null,
        node: &Value::Null,
        links: links(&[]),
        quota: quota(&cache, text(input, "ns")),
        held,
    };
    call.outcome().is_ok()
}

/// The profiles of an A100 with 40 GB that these tests have.
fn a100(name: &str) -> SliceProfile {
    let (slices, size, starts): (u32, u32, &[u32]) = match name {
        "1g.5gb" => (1, 1, &[0, 1, 2, 3, 4, 5, 6]),
        "2g.10gb" => (2, 2, &[0, 2, 4]),
        "3g.20gb" => (3, 4, &[0, 4]),
        other => panic!("no profile {other}"),
    };
    SliceProfile {
        name: name.into(),
        memory: MiB::new(u64::from(size) * 5120),
        cores: Cores::new(slices * 14),
        slices,
        placements: starts.iter().map(|&start| SlicePlacement { start, size }).collect(),
    }
}

fn all_placed(input: &Value) -> bool {
    let mut occupied: Vec<_> = list(&input["occupied"]).iter().map(placement).collect();
    list(&input["requested"]).iter().all(|profile| {
        let place = free_place(&a100(profile.as_str().unwrap()), &occupied);
        occupied.extend(place);
        place.is_some()
    })
}
