//! One run of one binder: load, wait, count, clear away.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    time::Duration,
};

use anyhow::{Context as _, ensure};
use berth_sandbox::agent::Fleet;
use kube::Client;
use serde::Serialize;
use tokio::time::Instant;

use super::{
    binder::{Kind, LockPolicy},
    child::Binder,
    load::{self, Asked, Load},
    observer::Observer,
    process::{self, Memory},
    requests::{self, Answered},
};
use crate::support::controlplane::ControlPlane;

/// How long to wait between two looks at counters that must have come to rest.
const REST: Duration = Duration::from_millis(300);
/// After the last Binding, how long the agents may take.
const ANSWER_LIMIT: Duration = Duration::from_mins(1);

/// The user name of the binders at the API server.
pub(crate) const BINDER: &str = "binder";

/// One run: which binder runs, and how fast pods are created.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) kind: Kind,
    /// Of Berth, writes under way; of the blind binder, pods in flight.
    pub(crate) at_once: usize,
    /// How many pods are created in a second; `None`: as many as the writers can.
    pub(crate) per_second: Option<f64>,
}

/// Who binds, while it runs.
enum Running {
    /// A process of this program.
    Binder(Binder),
    /// kube-scheduler, with the number of its process.
    KubeScheduler(u32),
}

impl Running {
    fn pid(&self) -> u32 {
        match self {
            Self::Binder(binder) => binder.pid(),
            Self::KubeScheduler(pid) => *pid,
        }
    }
}

/// The cluster of a scenario, and who works on it.
pub(crate) struct Stage<'a> {
    pub(crate) plane: &'a mut ControlPlane,
    pub(crate) client: Client,
    pub(crate) fleet: &'a Fleet,
    pub(crate) observer: &'a mut Observer,
    pub(crate) kubeconfig: &'a Path,
    pub(crate) pods: usize,
    pub(crate) node_lock: LockPolicy,
    /// How many loads were created so far.
    pub(crate) loads: usize,
}

/// What one run came to.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Outcome {
    pub(crate) binds_per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// Writes of the binder for each pod: all on pods, nodes and events that the API server answered, without the load's and the agents'.
    pub(crate) writes_per_pod: f64,
    /// Writes of the agents for each pod, as they count them.
    pub(crate) agent_writes_per_pod: f64,
    /// Everything that the API server answered on pods, nodes and events, whoever asked.
    pub(crate) answered: BTreeMap<String, u64>,
    /// What the binder asked, as its own client counted.
    pub(crate) asked: BTreeMap<String, u64>,
    pub(crate) memory: Memory,
    /// Seconds of processor time from the first create to rest.
    pub(crate) processor_seconds: BTreeMap<String, f64>,
}

/// What is counted before and after.
struct Counters {
    answered: Answered,
    agents: u64,
    times: BTreeMap<String, Duration>,
}

impl Stage<'_> {
    /// Lets one binder bind the load, on nodes that hold no pods.
    pub(crate) async fn run(&mut self, turn: Turn) -> anyhow::Result<Outcome> {
        let Turn { kind, at_once, per_second } = turn;
        let (running, wanted) = if kind == Kind::KubeScheduler {
            (self.start_kube_scheduler().await?, Asked::Cpu)
        } else {
            let binder = Binder::start((kind, at_once), self.node_lock, self.kubeconfig).await?;
            (Running::Binder(binder), Asked::Share)
        };
        let before = self.at_rest().await?;
        let answered = self.fleet.admitted() + self.fleet.rejected() + self.pods as u64;
        let load = Load { pods: self.pods, asked: wanted, per_second };
        let created = self.create(load).await?;
        let bound = self.observer.bound(self.pods).await?;
        let agents = tokio::time::timeout(ANSWER_LIMIT, self.fleet.answered(answered)).await;
        agents.context("the agents have not answered for all pods that were bound")?;
        let after = self.at_rest().await?;
        let memory = process::memory(running.pid())?;
        let asked = match running {
            Running::Binder(binder) => binder.stop().await?,
            Running::KubeScheduler(_) => {
                self.plane.stop_schedulers();
                BTreeMap::new()
            }
        };
        let outcome = self.outcome(&created, &bound, (&before, &after), asked, memory)?;
        self.judge(kind)?;
        self.clear().await?;
        Ok(outcome)
    }

    /// Starts kube-scheduler with a profile for pods without a GPU; returns once it has bound one.
    async fn start_kube_scheduler(&mut self) -> anyhow::Result<Running> {
        let started = self.plane.start_limitless_scheduler(BINDER, load::PLAIN_SCHEDULER);
        let pid = started.map_err(anyhow::Error::msg)?;
        let answered = self.fleet.admitted() + self.fleet.rejected() + 1;
        self.create(Load { pods: 1, asked: Asked::Cpu, per_second: None }).await?;
        self.observer.bound(1).await?;
        let answer = tokio::time::timeout(ANSWER_LIMIT, self.fleet.answered(answered)).await;
        answer.context("the agents have not answered for the first pod")?;
        self.clear().await?;
        Ok(Running::KubeScheduler(pid))
    }

    /// Creates the pods of a load under names of their own; when the request for each was sent.
    async fn create(&mut self, load: Load) -> anyhow::Result<HashMap<String, Instant>> {
        self.loads += 1;
        load::create_load(&self.client, self.loads, load).await
    }

    /// Deletes all pods, and returns when they are gone.
    async fn clear(&mut self) -> anyhow::Result<()> {
        load::delete_all(&self.client).await?;
        self.observer.empty().await
    }

    /// Counters once no more writes come.
    async fn at_rest(&self) -> anyhow::Result<Counters> {
        let mut last = None;
        loop {
            let answered = Answered::read(
                &self.plane.metrics().await.context("metrics of the API server")?,
                requests::RESOURCES,
            );
            if last.replace(answered.writes()) == Some(answered.writes()) {
                return Ok(Counters { answered, agents: self.fleet.writes(), times: process::times()? });
            }
            tokio::time::sleep(REST).await;
        }
    }

    fn outcome(
        &self,
        created: &HashMap<String, Instant>,
        bound: &HashMap<String, Instant>,
        (before, after): (&Counters, &Counters),
        asked: BTreeMap<String, u64>,
        memory: Memory,
    ) -> anyhow::Result<Outcome> {
        let first = created.values().min().context("no pods")?;
        let last = bound.values().max().context("no pods")?;
        let mut waits = Vec::with_capacity(created.len());
        for (name, sent) in created {
            let seen = bound.get(name).with_context(|| format!("pod {name} was not seen bound"))?;
            waits.push(seen.duration_since(*sent).as_secs_f64() * 1000.0);
        }
        waits.sort_by(f64::total_cmp);
        let answered = after.answered.since(&before.answered);
        let (pods, agents) = (self.pods as u64, after.agents - before.agents);
        let all = requests::writes(&answered);
        let own = all.checked_sub(pods + agents).context("the API server answered less than was asked")?;
        let used = |(name, time): (&String, &Duration)| {
            let earlier = before.times.get(name).copied().unwrap_or_default();
            (name.clone(), time.saturating_sub(earlier).as_secs_f64())
        };
        Ok(Outcome {
            binds_per_second: each(pods, last.duration_since(*first).as_secs_f64()),
            p50_ms: quantile(&waits, 50),
            p99_ms: quantile(&waits, 99),
            writes_per_pod: each(own, number(pods)),
            agent_writes_per_pod: each(agents, number(pods)),
            answered,
            asked,
            memory,
            processor_seconds: after.times.iter().map(used).collect(),
        })
    }

    /// The agents saw no wrong assignment and had no trouble; the blind binder is held to that too.
    fn judge(&self, kind: Kind) -> anyhow::Result<()> {
        let (violations, troubles) = (self.fleet.violations(), self.fleet.troubles());
        for violation in &violations {
            eprintln!("VIOLATION ({kind:?}): {violation}");
        }
        for trouble in &troubles {
            eprintln!("TROUBLE ({kind:?}): {trouble}");
        }
        let rejected = self.fleet.rejected();
        ensure!(
            violations.is_empty() && troubles.is_empty() && rejected == 0,
            "{} violations, {} troubles, {rejected} pods rejected by kubelets under {kind:?}",
            violations.len(),
            troubles.len(),
        );
        Ok(())
    }
}

fn quantile(sorted: &[f64], percent: usize) -> f64 {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or_default()
}

fn each(count: u64, of: f64) -> f64 {
    number(count) / of
}

#[expect(clippy::cast_precision_loss, reason = "counts of a bench are far below 2^52")]
fn number(count: u64) -> f64 {
    count as f64
}
