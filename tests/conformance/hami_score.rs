//! HAMi's scores of cards and nodes, the order of cards, and what whole pods are given.

use berth::{
    device::{
        Assignment, CardPolicy, Inventory, MemoryRequest, MiB, NodePolicy, Percent, PodRequest, Quota, Role,
        ShareRequest, Weights,
    },
    dialect::hami::{Hami, names},
    scheduling::plugin::{
        allocate::{CardScene, HeldByPod, allocate, order::preferred},
        score,
    },
};
use serde_json::{Value, json};

use super::{
    call::{plain, words},
    table::{Case, Table, Verdict},
    upstream::{assignment, card, container, list, request, shares, text, usage},
};

const KUNLUN: &str = "a vendor with a choice of its own, which is not served";

#[test]
fn hami_score() {
    let table = Table {
        file: "hami_score.json",
        differences: DIFFERENCES,
        not_served: &[
            ("TestOverrideScore", "scores of vendors that are not served"),
            ("TestLess", "upstream takes the last of a sorted list; Berth compares nodes as it goes"),
        ],
    };
    table.check(judge);
}

const DIFFERENCES: &[(&str, &str)] = &[
    ("Test_calcScore / one node one device one pod one container use one device for kunlun.", KUNLUN),
    ("Test_calcScore / two node eight device one pod two container use one device for kunlun.", KUNLUN),
];

fn judge(case: &Case) -> Verdict {
    let (input, expect) = (&case.input, &case.expect);
    match case.test.as_str() {
        "TestDeviceUsageList_Less" => {
            let second_first = first_card(input) == "1";
            Verdict::of(&json!(second_first), &expect["expectedLess"])
        }
        "TestComputeScore" => {
            Verdict::of(&close(card_score(input)), &close(expect["expectedScore"].as_f64().unwrap()))
        }
        "TestComputeDefaultScore" => {
            Verdict::of(&close(node_score(input)), &close(expect["wantScore"].as_f64().unwrap()))
        }
        "Test_calcScore" => {
            let nodes = input["nodes"].as_object().unwrap();
            let outcomes = nodes.iter().map(|(name, node)| (name.clone(), given(input, node)));
            Verdict::of(&outcomes.collect::<Vec<_>>(), &wanted(nodes.keys(), &expect["wants"]))
        }
        other => panic!("no adapter for {other}"),
    }
}

/// Scores to a thousandth.
fn close(score: f64) -> String {
    format!("{score:.3}")
}

/// Which of the two cards is tried first. Upstream hands in scores; here memory in use makes them, nothing else weighing.
fn first_card(input: &Value) -> String {
    let devices: Vec<Value> = list(&input["deviceLists"])
        .iter()
        .enumerate()
        .map(|(at, entry)| {
            let mut device = entry["Device"].clone();
            device["ID"] = json!(at.to_string());
            device["Count"] = json!(100);
            device["Totalmem"] = json!(1000);
            device["Totalcore"] = json!(100);
            device["Usedmem"] = entry["Score"].clone();
            device
        })
        .collect();
    let annotations = json!({
        names::CARD_POLICY: input["policy"],
        names::NUMA_BIND: input["numaBind"].to_string(),
        names::WEIGHTS: "slot=0,core=0,memory=1",
    });
    let asked = super::hami_selectors::asked(&annotations);
    let inventory = Inventory::new(devices.iter().map(card).collect());
    let scene = CardScene {
        request: &asked,
        inventory: &inventory,
        usage: &usage(&devices),
        profile: &Hami::profile(),
        quota: Quota::default(),
        held: HeldByPod::default(),
        first: None,
    };
    preferred(&scene, request(&json!({"Nums": 1, "MemPercentagereq": 101})).unwrap())[0].0.id.to_string()
}

/// Upstream adds up what all requests of the card's own type ask, but one slot each whatever their number.
fn card_score(input: &Value) -> f64 {
    let device = &input["device"];
    let own = input["requests"].as_object().into_iter().flatten().map(|(_, ask)| ask);
    let own: Vec<&Value> = own.filter(|ask| ask["Type"] == device["Type"]).collect();
    let card = card(device);
    let mut used = usage(std::slice::from_ref(device)).card(&card.id);
    for ask in own {
        let ShareRequest { memory, cores, .. } = request(ask).unwrap();
        let memory = match memory {
            MemoryRequest::Part(part) if part == Percent::NONE => MiB::default(),
            memory => memory.of(card.memory),
        };
        used = used.with(&berth::device::Share {
            card: card.id.clone(),
            memory,
            cores: cores.of(card.cores),
            slice: None,
        });
    }
    10.0 * score::fullness(used, &card, card.cores, Weights::default())
}

/// Upstream's node score runs from 0 to 30 and leaves the pod out; Berth's from 0 to 100, here for a pod without shares.
fn node_score(input: &Value) -> f64 {
    let devices: Vec<Value> =
        list(&input["devices"]["DeviceLists"]).iter().map(|entry| entry["Device"].clone()).collect();
    let inventory = Inventory::new(devices.iter().map(card).collect());
    let pod = Assignment::default();
    0.3 * score::of_request(&Hami::profile(), NodePolicy::Binpack, &inventory, &usage(&devices), &pod)
}

type Outcome = Result<Vec<Vec<(String, u64, u32)>>, String>;

fn given(input: &Value, node: &Value) -> Outcome {
    let devices: Vec<Value> =
        list(&node["Devices"]["DeviceLists"]).iter().map(|entry| entry["Device"].clone()).collect();
    let policy =
        if text(&node["Devices"], "Policy") == "binpack" { CardPolicy::Binpack } else { CardPolicy::Spread };
    let init = list(&input["task"]["spec"]["initContainers"]).len();
    let role = |at| if at < init { Role::Init } else { Role::App };
    let ask = |ask: &Value| ask.as_object().into_iter().flatten().find_map(|(_, ask)| request(ask));
    let containers = list(&input["nums"]).iter().enumerate().map(|(at, one)| container(role(at), ask(one)));
    let asked = PodRequest { containers: containers.collect(), ..plain(policy) };
    let inventory = Inventory::new(devices.iter().map(card).collect());
    let assignment = allocate(&asked, &inventory, &usage(&devices), &Hami::profile(), Quota::default());
    assignment.map(|assignment| flat(&assignment)).map_err(|reasons| words(&reasons))
}

fn flat(assignment: &Assignment) -> Vec<Vec<(String, u64, u32)>> {
    let plain =
        |share: &berth::device::Share| (share.card.to_string(), share.memory.get(), share.cores.get());
    shares(assignment).iter().map(|shares| shares.iter().map(plain).collect()).collect()
}

fn wanted<'a>(names: impl Iterator<Item = &'a String>, wants: &Value) -> Vec<(String, Outcome)> {
    let of = |name: &String| {
        let node = list(&wants["want"]["NodeList"]).iter().find(|node| node["NodeID"] == json!(name));
        let failed = || text(&wants["failedNodes"], name).to_owned();
        (name.clone(), node.map(|node| flat(&assignment(&node["Devices"]["NVIDIA"], 0))).ok_or_else(failed))
    };
    names.map(of).collect()
}
