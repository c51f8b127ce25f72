//! The scenarios, and the turns that the binders take on each.

use std::{path::Path, time::Duration};

use anyhow::Context as _;
use berth_sandbox::agent::{Answer, Behaviour, Fleet};

use super::{
    binder::{Kind, LockPolicy},
    load,
    observer::Observer,
    report::{self, Line, Results},
    round::Stage,
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
    pub(crate) writes_at_once: usize,
    pub(crate) node_lock: LockPolicy,
}

const BINDER: &str = "binder";

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
    let plane = plane.context("there is no real control plane here")?;
    let kubeconfig = plane.kubeconfig(BINDER);
    let nodes = (0..scenario.nodes).map(load::node).collect();
    let fleet = Fleet::start(plane.admin(), nodes).await?;
    for node in 0..scenario.nodes {
        let behaviour = Behaviour { answer: Answer::After(plan.agent), ..Behaviour::default() };
        fleet.behave(&format!("node-{node:04}"), behaviour)?;
    }
    let mut observer = Observer::start(plane.admin());
    let mut stage = Stage {
        plane: &plane,
        client: plane.admin(),
        fleet: &fleet,
        observer: &mut observer,
        kubeconfig: &kubeconfig,
        pods: scenario.pods,
        node_lock: plan.node_lock,
    };
    let mut lines = Vec::new();
    for round in 1..=plan.rounds {
        for (kind, at_once) in turns(plan) {
            let outcome = stage.run(kind, at_once, lines.len()).await?;
            let line = Line { round, kind, at_once, outcome };
            report::progress(&line);
            lines.push(line);
        }
    }
    Ok(Results::new(scenario, lines))
}

/// Each level of the blind binder has a run of Berth beside it, before or after in turns: a machine that slows down harms both.
fn turns(plan: &Plan) -> Vec<(Kind, usize)> {
    let pair = |(at, &level): (usize, &usize)| {
        let (blind, berth) = ((Kind::Blind, level), (Kind::Berth, plan.writes_at_once));
        if at % 2 == 0 { [blind, berth] } else { [berth, blind] }
    };
    plan.levels.iter().enumerate().flat_map(pair).collect()
}
