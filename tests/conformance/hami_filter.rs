//! HAMi's filter: which node and which card a pod is given, and what quota leaves.

use berth::{
    device::{Assignment, Inventory, Quota},
    dialect::{
        Dialect as _,
        hami::{Hami, HamiSettings},
    },
    scheduling::plugin::{allocate::allocate, score},
};
use serde_json::{Value, json};

use super::{
    call::{quota, words},
    table::{Case, Table, Verdict},
    upstream::{card, hami_settings, list, pod, usage},
};

#[test]
fn hami_filter() {
    let table = Table { file: "hami_filter.json", differences: &[], not_served: &[] };
    table.check(|case| match case.test.as_str() {
        "Test_Filter" => filter(case),
        "Test_ResourceQuota" => resource_quota(case),
        other => panic!("no adapter for {other}"),
    });
}

/// HAMi with the resource names of these tests.
fn dialect() -> Hami {
    Hami::new(HamiSettings {
        count: "hami.io/gpu".to_owned(),
        memory: "hami.io/gpumem".to_owned(),
        memory_percentage: "hami.io/gpumem-percentage".to_owned(),
        cores: "hami.io/gpucores".to_owned(),
        ..hami_settings()
    })
}

fn device(id: &str, memory: u32, used: (u32, u32)) -> Value {
    let slots = u32::from(used.0 > 0);
    json!({
        "ID": id, "Count": 10, "Totalmem": memory, "Totalcore": 100, "Type": "NVIDIA", "Health": true,
        "Used": slots, "Usedmem": used.0, "Usedcores": used.1,
    })
}

/// Two nodes, the second fuller than the first.
fn cluster() -> Vec<(&'static str, Vec<Value>)> {
    vec![
        ("node1", vec![device("device1", 8000, (2000, 25)), device("device2", 8000, (0, 0))]),
        ("node2", vec![device("device3", 8000, (0, 0)), device("device4", 8000, (6000, 75))]),
    ]
}

fn filter(case: &Case) -> Verdict {
    let asked =
        dialect().request(&pod(&case.input["Pod"]), berth::dialect::MissingCount::Refuse).unwrap().unwrap();
    let mut best: Option<(f64, &str, Assignment)> = None;
    for (name, devices) in cluster() {
        let inventory = Inventory::new(devices.iter().map(card).collect());
        let usage = usage(&devices);
        let Ok(given) = allocate(&asked, &inventory, &usage, &Hami::profile(), Quota::default()) else {
            continue;
        };
        let score = score::of_request(&Hami::profile(), asked.node_policy, &inventory, &usage, &given);
        if best.as_ref().is_none_or(|best| score > best.0) {
            best = Some((score, name, given));
        }
    }
    let (_, node, given) = best.unwrap();
    let chosen = given.shares().next().unwrap().card.to_string();
    let right = list(&case.expect["wantPodAnnotationDeviceIDs"]).contains(&json!(chosen));
    Verdict::of(&(json!([node]), right), &(case.expect["want"]["NodeNames"].clone(), true))
}

fn resource_quota(case: &Case) -> Verdict {
    let hard = case.input["quota"]["spec"]["hard"].as_object().unwrap();
    let state = |(key, limit): (&String, &Value)| {
        let limit: u32 = limit.as_str().unwrap().parse().unwrap();
        (key.trim_start_matches("limits.").to_owned(), json!({"Limit": limit, "LimitSet": true}))
    };
    let cache = json!({"default": hard.iter().map(state).collect::<serde_json::Map<_, _>>()});
    let devices = [2000, 8000, 4000, 6000];
    let devices: Vec<_> = devices
        .iter()
        .enumerate()
        .map(|(at, &memory)| device(&format!("device{}", at + 1), memory, (0, 0)))
        .collect();
    let asked = dialect()
        .request(&pod(&case.input["args"]["Pod"]), berth::dialect::MissingCount::Refuse)
        .unwrap()
        .unwrap();
    let inventory = Inventory::new(devices.iter().map(card).collect());
    let outcome = allocate(&asked, &inventory, &usage(&devices), &Hami::profile(), quota(&cache, "default"));
    let failed = case.expect["want"]["FailedNodes"]["node1"].as_str().map(str::to_owned);
    Verdict::of(&outcome.err().map(|reasons| words(&reasons)), &failed)
}
