//! Whether Berth finds the same nodes feasible as kube-scheduler's own Filter plugins do, on generated clusters.
//!
//! Cards decide nothing here: every node has plenty, and kube-scheduler's plugins do not see the pods' shares. It must not hold
//! a rule of Kubernetes itself: what is right is what the plugins say.
#![cfg(feature = "sandbox")]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

#[path = "simulation/dice.rs"]
#[allow(dead_code, reason = "the simulation uses all of it")]
mod dice;
mod difference;
mod family;
mod gated;
mod plugins;
mod preemption;
mod run;
mod selectors;
mod shrink;
mod simulate;
mod world;

use std::{fmt::Write as _, fs, path::Path};

use serde_json::{Value, json};

use difference::{Difference, NAMED};
use family::Family;
use gated::Gated;
use plugins::{Judge, Plugins};
use run::{Findings, Plan, run};
use simulate::Settings;
use world::Case;

use crate::support::{
    build::{self, Release},
    controlplane::absent,
    server::say,
};

/// Clusters of an ordinary run.
const CLUSTERS: u64 = 400;
/// The first cluster of an ordinary run.
const SEED: u64 = 1;

fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.into_string().expect("it is text"))
}

fn number(name: &str, default: u64) -> u64 {
    variable(name)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: not a number")))
}

fn plan() -> Plan {
    let families = variable("BERTH_PARITY_FAMILIES").map_or_else(
        || Family::all().collect(),
        |names| {
            let named = |name: &str| Family::named(name).unwrap_or_else(|| panic!("no family {name}"));
            names.split(',').map(named).collect()
        },
    );
    Plan {
        clusters: number("BERTH_PARITY_CLUSTERS", CLUSTERS),
        seed: number("BERTH_PARITY_SEED", SEED),
        families,
    }
}

/// kube-scheduler's plugins of this release; `None`: they can't be built here, or the environment leaves the release out.
fn judge(release: Release) -> Option<Judge> {
    let named = format!("1.{}", release.minor());
    if variable("BERTH_LEAVE_OUT_KUBERNETES").is_some_and(|left_out| left_out == named) {
        say(&format!("NOT RUN: comparison with kube-scheduler {named}: it is left out"));
        return None;
    }
    match build::ours(release) {
        Ok(program) => Some(Judge { program, release, gates: "" }),
        Err(reason) => {
            absent("kube-scheduler's plugins", &reason);
            None
        }
    }
}

#[test]
fn berth_finds_the_nodes_feasible_that_kube_scheduler_does() {
    nodes_are_found_feasible_as_by(Release::Usual);
}

#[test]
fn berth_finds_the_nodes_feasible_that_kube_scheduler_1_37_does() {
    nodes_are_found_feasible_as_by(Release::V1_37);
}

fn nodes_are_found_feasible_as_by(release: Release) {
    let Some(judge) = judge(release) else { return };
    let plan = plan();
    let findings = run(&judge, &plan);
    say(&format!("{} clusters from seed {}\n{}", plan.clusters, plan.seed, findings.table()));
    for (name, count) in &findings.named {
        say(&format!("{count} times: {}", NAMED[*name]));
    }
    assert!(findings.unanswered.is_empty(), "{}", findings.unanswered.join("\n"));
    assert!(findings.unnamed.is_empty(), "{}", report(&judge, &findings));
    // Another run of some hundred clusters, or one of some families, need not meet everything.
    let enough = if plan.seed == SEED { CLUSTERS } else { 5 * CLUSTERS };
    if plan.clusters >= enough && plan.families.len() == Family::all().count() {
        let idle = findings.idle(&plan.families);
        assert!(idle.is_empty(), "these families decide nothing: {idle:?}");
        let gone: Vec<_> = NAMED
            .iter()
            .enumerate()
            .filter(|(at, _)| !findings.named.contains_key(at))
            .map(|(_, named)| named.to_string())
            .collect();
        assert!(gone.is_empty(), "no longer different, delete it from NAMED: {gone:#?}");
    }
}

#[test]
fn berth_preempts_the_pods_that_kube_scheduler_does() {
    pods_are_preempted_as_by(Release::Usual);
}

#[test]
fn berth_preempts_the_pods_that_kube_scheduler_1_37_does() {
    pods_are_preempted_as_by(Release::V1_37);
}

fn pods_are_preempted_as_by(release: Release) {
    let Some(judge) = judge(release) else { return };
    let findings =
        preemption::run(&judge, number("BERTH_PARITY_PREEMPTIONS", 500), number("BERTH_PARITY_SEED", SEED));
    let preemption::Findings { unfit, preempting, violating, choosing, differences } = findings;
    say(&format!(
        "{unfit} pods fit nowhere: {preempting} preempt others, {choosing} have a choice of nodes, {violating} violate a budget"
    ));
    assert!(
        differences.is_empty(),
        "{} differences:\n{}",
        differences.len(),
        differences[..8.min(differences.len())].join("\n")
    );
    let least = [unfit, preempting, choosing, violating].map(|count| count > 10);
    assert_eq!(least, [true; 4], "the clusters decide too little");
}

#[test]
fn berth_finds_the_nodes_feasible_that_kube_scheduler_does_with_rules_that_taint_devices() {
    gated_nodes_are_found_feasible_as_by(Release::Usual, Gated::GroupsAndRules);
}

#[test]
fn berth_finds_the_nodes_feasible_that_kube_scheduler_1_37_does_with_groups_and_rules_of_devices() {
    gated_nodes_are_found_feasible_as_by(Release::V1_37, Gated::GroupsAndRules);
}

#[test]
fn berth_finds_the_nodes_feasible_that_kube_scheduler_1_37_does_with_devices_that_take_of_their_nodes() {
    gated_nodes_are_found_feasible_as_by(Release::V1_37, Gated::NodeResources);
}

#[test]
fn berth_finds_the_nodes_feasible_that_kube_scheduler_1_37_does_with_attributes_that_claims_compute() {
    gated_nodes_are_found_feasible_as_by(Release::V1_37, Gated::DerivedAttributes);
}

#[test]
fn berth_finds_the_nodes_feasible_that_kube_scheduler_1_37_does_with_devices_for_which_drivers_need_not_act()
{
    gated_nodes_are_found_feasible_as_by(Release::V1_37, Gated::NodeOperations);
}

fn gated_nodes_are_found_feasible_as_by(release: Release, gated: Gated) {
    let Some(judge) = judge(release) else { return };
    let judge = Judge { gates: gated.gates(release), ..judge };
    let (clusters, seed) = (number("BERTH_PARITY_GATED", 300), number("BERTH_PARITY_SEED", SEED));
    let gated::Findings { kept_away, fit, differences } = gated::run(&judge, gated, clusters, seed);
    say(&format!("{gated:?}: {kept_away} nodes are refused for it, {fit} fit all the same"));
    assert!(
        differences.is_empty(),
        "{} differences:\n{}",
        differences.len(),
        differences[..8.min(differences.len())].join("\n")
    );
    assert!(kept_away > 50 && fit > 50, "the clusters decide too little: {kept_away} and {fit}");
}

/// The first differences, each with a file that holds a smaller cluster.
fn report(judge: &Judge, findings: &Findings) -> String {
    let mut plugins = Plugins::start(judge);
    let mut report = format!("{} kinds of differences", findings.unnamed.len());
    for (case, difference) in findings.unnamed.values().take(8) {
        let (smaller, same) = shrink::shrink(&mut plugins, case, difference);
        let path = keep(&mut plugins, case, &smaller, &same);
        let families: Vec<_> = case.families.iter().map(|family| family.name()).collect();
        let seed = case.seed;
        write!(report, "\nseed {seed}, {}: {same}\n    {path}", families.join(",")).unwrap();
    }
    report
}

/// Writes the smaller cluster, as the API server would have stored it, and beside it both answers.
fn keep(plugins: &mut Plugins, case: &Case, smaller: &Case, difference: &Difference) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kube_scheduler");
    fs::create_dir_all(&folder).unwrap();
    let settings = Settings::of(smaller.seed, plugins.release);
    let answer = plugins.judge(&smaller.items, settings).unwrap();
    let objects: Vec<&Value> = answer.objects.iter().flatten().collect();
    let ours = simulate::simulate(&objects, &difference.pod, settings).unwrap();
    let name = format!("seed-{}-{}-{}", case.seed, difference.pod, difference.by.replace([' ', '/'], "-"));
    let cluster = folder.join(format!("{name}.json"));
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    fs::write(&cluster, serde_json::to_string_pretty(&list).unwrap()).unwrap();
    let answers = format!("{difference}\nkube-scheduler: {:#?}\nberth: {ours:#?}\n", answer.pods);
    fs::write(folder.join(format!("{name}.txt")), answers).unwrap();
    cluster.display().to_string()
}

#[test]
fn a_cluster_is_decided_by_its_seed() {
    let all: Vec<_> = Family::all().collect();
    let items = |seed| Case::generate(seed, &all).items;
    assert_eq!(items(7), items(7));
    assert_ne!(items(7), items(8));
}
