//! The scenarios, and the turns that the binders take on each.

use std::{path::Path, time::Duration};

use anyhow::Context as _;
use berth_sandbox::agent::{Answer, Behaviour, Fleet};

use super::{
    binder::{Kind, LockPolicy},
    load,
    observer::Observer,
    report::{self, Line, Results},
    round::{BINDER, Stage, Turn},
};
use crate::support::{
    controlplane::{ControlPlane, GarbageCollection, LIMITLESS, Options},
    identity::Identity,
};

/// How large a cluster and a load.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(crate) struct Scenario {
    pub(crate) nodes: usize,
    pub(crate) pods: usize,
}

/// What is to be measured.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) scenarios: Vec<Scenario>,
    pub(crate) rounds: usize,
    pub(crate) agent: Duration,
    pub(crate) levels: Vec<usize>,
    /// Only Berth is measured, with so many pods created in a second each time; empty: all are.
    pub(crate) rates: Vec<f64>,
    pub(crate) writes_at_once: usize,
    pub(crate) node_lock: LockPolicy,
}

/// Measures everything, prints it, and writes it to a file if there is one.
pub(crate) async fn all(plan: &Plan, json: Option<&Path>) -> anyhow::Result<()> {
    report::conditions(plan);
    let mut all = Vec::new();
    for scenario in &plan.scenarios {
        let results = measure(plan, *scenario).await?;
        report::print(&results);
        all.push(results);
    }
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(&all).context("results")?;
        std::fs::write(path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

async fn measure(plan: &Plan, scenario: Scenario) -> anyhow::Result<Results> {
    let identities = vec![Identity::new(BINDER, &["system:masters"])];
    let apiserver_flags = LIMITLESS.map(str::to_owned).to_vec();
    let options = Options {
        identities,
        apiserver_flags,
        garbage_collection: GarbageCollection::Usual,
        ..Options::default()
    };
    let plane = ControlPlane::start(options).await;
    let mut plane = plane.context("there is no real control plane here")?;
    let kubeconfig = plane.kubeconfig(BINDER);
    let nodes = (0..scenario.nodes).map(load::node).collect();
    let fleet = Fleet::start(plane.admin(), nodes).await?;
    for node in 0..scenario.nodes {
        let behaviour = Behaviour { answer: Answer::After(plan.agent), ..Behaviour::default() };
        fleet.behave(&format!("node-{node:04}"), behaviour)?;
    }
    let mut observer = Observer::start(plane.admin());
    let client = plane.admin();
    let mut stage = Stage {
        plane: &mut plane,
        client,
        fleet: &fleet,
        observer: &mut observer,
        kubeconfig: &kubeconfig,
        pods: scenario.pods,
        node_lock: plan.node_lock,
        loads: 0,
    };
    if !plan.rates.is_empty() {
        let mut results = Results::new(scenario, Vec::new(), Vec::new());
        for rate in &plan.rates {
            let turn = Turn { kind: Kind::Berth, at_once: plan.writes_at_once, per_second: Some(*rate) };
            results.paced.push(line(&mut stage, 1, turn).await?);
        }
        return Ok(results);
    }
    let (mut lines, mut kube_scheduler) = (Vec::new(), Vec::new());
    for round in 1..=plan.rounds {
        for turn in turns(plan) {
            lines.push(line(&mut stage, round, turn).await?);
        }
        let turn = Turn { kind: Kind::KubeScheduler, at_once: 0, per_second: None };
        kube_scheduler.push(line(&mut stage, round, turn).await?);
    }
    let mut results = Results::new(scenario, lines, kube_scheduler);
    let half = Turn {
        kind: Kind::Berth,
        at_once: plan.writes_at_once,
        per_second: Some(results.berth_binds_per_second / 2.0),
    };
    results.paced = vec![line(&mut stage, plan.rounds, half).await?];
    Ok(results)
}

async fn line(stage: &mut Stage<'_>, round: usize, turn: Turn) -> anyhow::Result<Line> {
    let outcome = stage.run(turn).await?;
    let Turn { kind, at_once, per_second } = turn;
    let line = Line { round, kind, at_once, per_second, outcome };
    report::progress(&line);
    Ok(line)
}

/// Each level of the blind binder has a run of Berth beside it, before or after in turns: a machine that slows down harms both.
fn turns(plan: &Plan) -> Vec<Turn> {
    let turn = |kind, at_once| Turn { kind, at_once, per_second: None };
    let pair = |(at, &level): (usize, &usize)| {
        let (blind, berth) = (turn(Kind::Blind, level), turn(Kind::Berth, plan.writes_at_once));
        if at % 2 == 0 { [blind, berth] } else { [berth, blind] }
    };
    plan.levels.iter().enumerate().flat_map(pair).collect()
}
