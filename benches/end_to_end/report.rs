//! The results, for people and for programs.

use std::collections::BTreeMap;

use comfy_table::{Table, presets};
use serde::Serialize;

use super::{
    binder::Kind,
    round::Outcome,
    run::{Plan, Scenario},
};

/// What the blind binder's speed is multiplied with, to say what Berth should reach.
const GOAL: f64 = 0.95;

/// One run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Line {
    pub(crate) round: usize,
    pub(crate) kind: Kind,
    pub(crate) at_once: usize,
    /// How many pods were created in a second; `None`: as many as the writers could.
    pub(crate) per_second: Option<f64>,
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
}

/// A scenario's runs and what they come to.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    scenario: Scenario,
    /// The median over the rounds of the blind binder's best level.
    blind_binds_per_second: f64,
    /// The median over the rounds of the median of Berth's runs.
    pub(super) berth_binds_per_second: f64,
    ratio: f64,
    /// The median over the rounds of kube-scheduler, with pods without a GPU.
    kube_scheduler_binds_per_second: f64,
    /// For each level of the blind binder: the median of its runs, each divided into Berth's run beside it.
    pairs: BTreeMap<usize, f64>,
    runs: Vec<Line>,
    /// kube-scheduler's.
    kube_scheduler: Vec<Line>,
    /// Berth's where pods were created at a given rate.
    pub(super) paced: Vec<Line>,
}

impl Results {
    pub(crate) fn new(scenario: Scenario, runs: Vec<Line>, kube_scheduler: Vec<Line>) -> Self {
        let best = |figures: Vec<f64>| figures.into_iter().fold(0.0, f64::max);
        let blind_binds_per_second = median(rounds(&runs, Kind::Blind).into_iter().map(best).collect());
        let berth_binds_per_second = median(rounds(&runs, Kind::Berth).into_iter().map(median).collect());
        let ratio = berth_binds_per_second / blind_binds_per_second;
        let pairs = pairs(&runs);
        let plain_rates = kube_scheduler.iter().map(|line| line.outcome.binds_per_second).collect();
        Self {
            scenario,
            blind_binds_per_second,
            berth_binds_per_second,
            ratio,
            kube_scheduler_binds_per_second: median(plain_rates),
            pairs,
            runs,
            kube_scheduler,
            paced: Vec::new(),
        }
    }
}

/// How it is measured: the reader of a figure must know.
pub(crate) fn conditions(plan: &Plan) {
    println!(
        "etcd (without fsync) and kube-apiserver (without limits on requests in flight), the agents, the load of 32 writers and \
         the observer share this machine; agents, load and observer are one process, the binder is another.\n\
         binds/s: from the first create to the last bind that a watch shows. create→bound: from sending the create to that watch.\n\
         Nodes: 8 cards of 80 GB, 10 slots each; agents answer after {:?}. Pods: 1 card, 1 to 4.5 GB, 5 % of its cores.\n\
         Berth takes node locks: {:?}.",
        plan.agent, plan.node_lock
    );
    if plan.rates.is_empty() {
        println!(
            "The blind binder takes node locks: Always.\n\
         kube-scheduler binds pods with 10 thousandths of a cpu and without a GPU, for which no agent writes but the kubelet. At last pods are \
         created at half of Berth's rate."
        );
    }
}

/// One run, as soon as it is done.
pub(crate) fn progress(line: &Line) {
    let Line { round, kind, at_once, outcome, .. } = line;
    eprintln!("round {round}: {kind:?}, {at_once} at once: {:.0} binds/s", outcome.binds_per_second);
}

/// A table of all runs, and the ratio.
pub(crate) fn print(results: &Results) {
    let Scenario { nodes, pods } = results.scenario;
    let all = || results.runs.iter().chain(&results.kube_scheduler).chain(&results.paced);
    println!("\n{nodes} nodes, {pods} pods\n{}", runs(all()));
    for kind in [Kind::Blind, Kind::Berth] {
        details(&results.runs, kind);
    }
    details(&results.kube_scheduler, Kind::KubeScheduler);
    if !results.runs.is_empty() {
        compared(results);
    }
    for Line { per_second, outcome, .. } in &results.paced {
        let (rate, p50, p99) = (per_second.unwrap_or_default(), outcome.p50_ms, outcome.p99_ms);
        println!("Berth, {rate:.0} pods/s created: create→bound p50 {p50:.0} ms, p99 {p99:.0} ms");
    }
}

fn compared(results: &Results) {
    let Results { blind_binds_per_second: blind, berth_binds_per_second: berth, ratio, .. } = results;
    let verdict = if *ratio >= GOAL { "reached" } else { "MISSED" };
    println!("medians: blind (best level of each round) {blind:.0} binds/s, Berth {berth:.0} binds/s");
    println!("Berth / blind = {ratio:.2}; the goal of {GOAL} is {verdict}");
    let pairs = results.pairs.iter().map(|(level, ratio)| format!("{level}: {ratio:.2}"));
    println!("the same beside each level, run by run: {}", pairs.collect::<Vec<_>>().join(", "));
    let plain = results.kube_scheduler_binds_per_second;
    println!(
        "kube-scheduler, pods without a GPU: {plain:.0} binds/s; Berth / kube-scheduler = {:.2}",
        berth / plain
    );
}

fn runs<'a>(lines: impl Iterator<Item = &'a Line>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header([
        "round",
        "binder",
        "at once",
        "created/s",
        "binds/s",
        "p50 ms",
        "p99 ms",
        "writes/pod",
        "agents' writes/pod",
        "refused",
        "RSS MiB",
        "peak MiB",
        "processor s",
    ]);
    for Line { round, kind, at_once, per_second, outcome } in lines {
        table.add_row([
            round.to_string(),
            format!("{kind:?}"),
            if *kind == Kind::KubeScheduler { "–".to_owned() } else { at_once.to_string() },
            per_second.map_or_else(|| "–".to_owned(), |rate| format!("{rate:.0}")),
            format!("{:.0}", outcome.binds_per_second),
            format!("{:.0}", outcome.p50_ms),
            format!("{:.0}", outcome.p99_ms),
            format!("{:.3}", outcome.writes_per_pod),
            format!("{:.3}", outcome.agent_writes_per_pod),
            refused(&outcome.answered).to_string(),
            (outcome.memory.rss_kib / 1024).to_string(),
            (outcome.memory.peak_kib / 1024).to_string(),
            processor(&outcome.processor_seconds),
        ]);
    }
    table
}

/// Requests of the last run of a binder, by the API server and by its own client.
fn details(lines: &[Line], kind: Kind) {
    if let Some(line) = lines.iter().rev().find(|line| line.kind == kind) {
        println!("{kind:?}'s last run, answered by the API server: {}", listed(&line.outcome.answered));
        if !line.outcome.asked.is_empty() {
            println!("{kind:?}'s last run, asked by the binder: {}", listed(&line.outcome.asked));
        }
    }
}

fn listed(requests: &BTreeMap<String, u64>) -> String {
    let all: Vec<String> = requests.iter().map(|(name, count)| format!("{name}: {count}")).collect();
    all.join(", ")
}

/// Requests on pods, nodes and events that the API server refused, whoever asked.
fn refused(answered: &BTreeMap<String, u64>) -> u64 {
    let is_refused = |name: &str| name.split(' ').nth(2).is_some();
    answered.iter().filter(|(name, _)| is_refused(name)).map(|(_, count)| count).sum()
}

fn processor(seconds: &BTreeMap<String, f64>) -> String {
    let all: Vec<String> = seconds.iter().map(|(name, seconds)| format!("{name} {seconds:.1}")).collect();
    all.join(", ")
}

/// Binds a second of all runs of each round.
fn rounds(lines: &[Line], kind: Kind) -> Vec<Vec<f64>> {
    let mut rounds: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.kind == kind) {
        rounds.entry(line.round).or_default().push(line.outcome.binds_per_second);
    }
    rounds.into_values().collect()
}

/// Berth's runs by the blind ones beside them, for each level.
fn pairs(lines: &[Line]) -> BTreeMap<usize, f64> {
    let mut ratios: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for pair in lines.chunks_exact(2) {
        let of = |kind| pair.iter().find(|line| line.kind == kind);
        if let (Some(blind), Some(berth)) = (of(Kind::Blind), of(Kind::Berth)) {
            let ratio = berth.outcome.binds_per_second / blind.outcome.binds_per_second;
            ratios.entry(blind.at_once).or_default().push(ratio);
        }
    }
    ratios.into_iter().map(|(level, ratios)| (level, median(ratios))).collect()
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() % 2 {
        _ if figures.is_empty() => f64::NAN,
        1 => figures[middle],
        _ => f64::midpoint(figures[middle - 1], figures[middle]),
    }
}
