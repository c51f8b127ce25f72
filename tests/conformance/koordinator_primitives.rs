//! Koordinator's small functions, as far as Berth has them.

use std::{collections::BTreeSet, sync::Arc};

use berth::{
    device::TopologyScope,
    dialect::koordinator::partitions,
    scheduling::model::devices::{self, scoring},
};
use serde_json::{Value, json};

use super::{
    koordinator::{amounts, default_scoring, of},
    table::{Case, Table, Verdict},
    upstream::list,
};

const RESERVED: &str = "about what a Reservation holds; Berth places none";

#[test]
fn koordinator_primitives() {
    let table = Table {
        file: "koordinator_primitives.json",
        differences: &[],
        not_served: &[
            ("cases_append_by_hints", RESERVED),
            ("cases_free_with_preemptible", RESERVED),
            ("cases_allocation_includes", RESERVED),
            (
                "cases_remove_zero",
                "what an unhealthy device has is never looked at; the allocation table covers it",
            ),
            ("Test_sortDeviceResourcesByMinor#02", RESERVED),
            ("Test_sortDeviceResourcesByMinor#03", RESERVED),
            ("Test_sortDeviceResourcesByMinor#04", RESERVED),
            ("cases_minor_string", "a part of texts that the table of device plugins compares whole"),
        ],
    };
    table.check(judge);
}

fn judge(case: &Case) -> Verdict {
    match case.test.as_str() {
        "cases_partition_indexer" => partition_table(&case.input),
        "cases_sort_by_minor" | "cases_sort_by_preferred_pcie" => sorted(&case.input),
        "cases_topology_scope" => scopes(&case.input),
        "cases_device_scorer" => score(&case.input),
        "cases_normalize_score" => {
            let of = |scores: &Value| -> Vec<u64> {
                list(scores).iter().map(|node| node["score"].as_u64().unwrap()).collect()
            };
            Verdict::of(&scoring::normalized(&of(&case.input["nodeScoreList"])), &of(&case.input["want"]))
        }
        other => panic!("no adapter for {other}"),
    }
}

/// One score stands for each number of cards, so that the order of scores does not show.
fn partition_table(input: &Value) -> Verdict {
    let annotation = input["table"].to_string();
    let device = of(&json!({"annotations": {"scheduling.koordinator.sh/gpu-partitions": annotation}}));
    let table = partitions::annotated(&device).unwrap().unwrap();
    let mut read = json!({});
    for count in [1, 2, 4, 8] {
        let groups = table.of(count).unwrap().map(|group| {
            json!(
                group.iter().map(|one| json!({"minors": one.minors, "score": one.score})).collect::<Vec<_>>()
            )
        });
        read[count.to_string()] = json!(groups.collect::<Vec<_>>());
    }
    let mut wanted = json!({});
    for (count, groups) in input["expect"].as_object().unwrap() {
        let group = |group: &Value| {
            let one = |one: &Value| json!({"minors": one["minors"], "score": one["allocationScore"]});
            json!(list(&group["partitions"]).iter().map(one).collect::<Vec<_>>())
        };
        wanted[count] = json!(list(groups).iter().map(group).collect::<Vec<_>>());
    }
    Verdict::of(&read, &wanted)
}

fn sorted(input: &Value) -> Verdict {
    let preferred: BTreeSet<Arc<str>> =
        list(&input["preferredPCIe"]).iter().map(|id| Arc::from(id.as_str().unwrap())).collect();
    let read = |device: &Value| {
        let minor = device["minor"].as_u64().unwrap();
        let switch =
            input["deviceInfos"][minor.to_string()]["topology"]["pcieID"].as_str().map(Arc::<str>::from);
        (u32::try_from(minor).unwrap(), of::<u64>(&device["score"]), switch)
    };
    let devices: Vec<_> = list(&input["resources"]).iter().map(read).collect();
    let devices: Vec<_> =
        devices.iter().map(|(minor, score, switch)| (*minor, *score, switch.as_ref())).collect();
    Verdict::of(&json!(devices::order(&devices, &preferred)), &input["expectOrders"])
}

/// The tree is of the machine that the table of NUMA hints has too.
fn scopes(input: &Value) -> Verdict {
    let tree = devices::Scope::of(&super::koordinator_numa_hints::machine());
    Verdict::of(&shown(&tree.unwrap()), &wanted(&input["expect"]))
}

fn shown(scope: &devices::Scope) -> Value {
    let level = match scope.level {
        TopologyScope::Node => 1,
        TopologyScope::NumaNode => 2,
        TopologyScope::Pcie => 3,
        TopologyScope::Device => 4,
    };
    json!({"level": level, "minors": scope.minors, "parts": scope.parts.iter().map(shown).collect::<Vec<_>>()})
}

fn wanted(scope: &Value) -> Value {
    let parts: Vec<_> = list(&scope["childScopes"]).iter().map(wanted).collect();
    json!({"level": scope["scopeLevel"], "minors": scope["minors"], "parts": parts})
}

fn score(input: &Value) -> Verdict {
    let scoring = default_scoring(&input["strategy"]);
    let [requests, total, free] = ["requests", "total", "free"].map(|key| amounts(&input[key]));
    Verdict::of(&json!(scoring.of_one(&requests, &total, &free)), &input["wantScore"])
}
