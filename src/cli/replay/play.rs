//! One replay: arrivals and ends come to the scheduler at their times, and the clock jumps from one to the next.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, HashMap},
    sync::Arc,
    time::Duration,
};

use anyhow::{Result, bail};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    arrivals::{self, Arrival, Order, RUN_SECONDS, START},
    gpus::{ClusterGpus, share, size},
    report::{Curve, PolicyRow},
    tally::{Period, ReplayTally},
};
use crate::{
    cli::{
        documents::{Document, DocumentError},
        output,
        simulate::{PreparedSimulation, prepare, why_left_out},
    },
    config::Config,
    dialect::Dialects,
    scheduling::{Effect, NodeName, PodKey, Uid, world::node_state::NodeState},
    simulation::SimulatedCluster,
};

/// So many turns are taken at one time at most.
const TURNS: usize = 1_000_000;

/// So long after the last arrival and the last end the scheduler goes on with pods that are in its queue.
const REST: SignedDuration = SignedDuration::from_secs(60);

/// A replay under way.
struct Play<'a> {
    cluster: SimulatedCluster,
    dialects: &'a Dialects,
    gpus: ClusterGpus,
    /// When pods end.
    ends: BinaryHeap<Reverse<(Timestamp, Uid)>>,
    tally: ReplayTally,
    arrived: usize,
    /// The GPUs that have been asked for.
    demand: f64,
    curve: Curve,
    deciding: Duration,
}

/// Plays the pods under these settings.
pub(super) fn play(
    name: String,
    documents: &[Document],
    config: &Config,
    order: Order,
    period: Period,
) -> Result<PolicyRow> {
    let documents = named(documents, &config.scheduler_name);
    let PreparedSimulation { reader, settings, lists, incoming, left_out, warnings, .. } =
        prepare(&documents, config, START)?;
    for warning in warnings.into_iter().chain(left_out.iter().filter_map(why_left_out)) {
        output::remark(&format!("warning: {warning}"));
    }
    let runs = run_times(&documents)?;
    let start = incoming.iter().map(|pod| pod.lifetime.created).min().unwrap_or(START);
    let running = lists.pods.iter().filter(|pod| pod.holding.is_some()).map(|pod| pod.key.clone());
    let running: Vec<PodKey> = running.collect();
    let cluster = SimulatedCluster::new(settings, lists, start).with_victims_that_leave();
    let dialects = reader.dialects();
    let nodes = || cluster.scheduler().snapshot().nodes().map(|state| &**state);
    let gpus = ClusterGpus::new(nodes(), dialects, incoming.iter());
    let mut sizes: HashMap<_, f64> = HashMap::new();
    let mut arrivals = Vec::new();
    for pod in incoming {
        let asked = pod.demand().and_then(|demand| share(&demand.ask));
        let gpus = asked.map_or(0.0, |asked| match sizes.get(&asked) {
            Some(known) => *known,
            None => *sizes.entry(asked.clone()).or_insert(size(&asked, nodes(), dialects)),
        });
        let runs = runs.get(&pod.key.to_string()).copied();
        arrivals.push(Arrival { at: pod.lifetime.created, pod, runs, gpus });
    }
    let arrivals = arrivals::ordered(arrivals, order, gpus.capacity())?;
    let curve = Curve::new(gpus.capacity());
    let first = arrivals.first().map_or(START, |arrival| arrival.at);
    let from = first.checked_add(period.warm_up)?;
    let mut play = Play {
        cluster,
        dialects,
        gpus,
        ends: BinaryHeap::new(),
        tally: ReplayTally::new(from),
        arrived: 0,
        demand: 0.0,
        curve,
        deciding: Duration::ZERO,
    };
    for pod in running {
        if let Some(end) = runs.get(&pod.to_string()).and_then(|runs| start.checked_add(*runs).ok()) {
            play.ends.push(Reverse((end, pod.uid)));
        }
    }
    play.run(arrivals, period.until)?;
    Ok(play.row(name))
}

/// The documents, in which each pod that names no scheduler is Berth's.
fn named(documents: &[Document], scheduler: &str) -> Vec<Document> {
    let mut documents = documents.to_vec();
    for document in documents.iter_mut().filter(|document| document.kind() == "Pod") {
        if let Some(Value::Object(spec)) = document.value.get_mut("spec") {
            spec.entry("schedulerName").or_insert_with(|| scheduler.into());
        }
    }
    documents
}

/// How long each pod runs, by its namespace and name.
fn run_times(documents: &[Document]) -> Result<HashMap<String, SignedDuration>, DocumentError> {
    let mut times = HashMap::new();
    for document in documents.iter().filter(|document| document.kind() == "Pod") {
        let stated =
            document.value.pointer("/metadata/annotations").and_then(|all| all.get(RUN_SECONDS)?.as_str());
        let (Some(stated), Some(name)) = (stated, document.name()) else { continue };
        let pod = format!("{}/{name}", document.namespace_or_default());
        let seconds: Option<f64> = stated.parse().ok().filter(|seconds| *seconds >= 0.0);
        let time = seconds.and_then(|seconds| SignedDuration::try_from_secs_f64(seconds).ok());
        let field = format!("metadata.annotations[{RUN_SECONDS}]");
        times.insert(pod, time.ok_or_else(|| document.error(&field, "must be a number of seconds"))?);
    }
    Ok(times)
}

impl Play<'_> {
    fn run(&mut self, arrivals: Vec<Arrival>, until: Option<SignedDuration>) -> Result<()> {
        let mut arrivals = arrivals.into_iter().peekable();
        let first = arrivals.peek().map_or(START, |arrival| arrival.at);
        let stop = until.and_then(|until| first.checked_add(until).ok()).unwrap_or(Timestamp::MAX);
        let mut last = first;
        loop {
            let next_end = self.ends.peek().map(|Reverse((at, _))| *at);
            let next = arrivals.peek().map(|arrival| arrival.at).into_iter().chain(next_end).min();
            let deadline = self.cluster.scheduler().next_deadline();
            let rest = last.checked_add(REST).unwrap_or(last);
            let due = deadline.filter(|at| next.map_or(*at <= rest, |next| *at < next));
            let Some(now) = due.or(next).filter(|now| *now <= stop) else {
                self.tally.pass(if until.is_some() { stop } else { last }, self.gpus.allocated());
                return Ok(());
            };
            if due.is_none() {
                last = now;
            }
            self.tally.pass(now, self.gpus.allocated());
            self.cluster.advance(now);
            while let Some(Reverse((_, uid))) =
                self.ends.peek().filter(|Reverse((at, _))| *at <= now).cloned()
            {
                self.ends.pop();
                self.leave(&uid);
            }
            let mut has_arrived = false;
            while let Some(arrival) = arrivals.next_if(|arrival| arrival.at <= now) {
                self.arrived += 1;
                self.demand += arrival.gpus;
                let asked = arrival.pod.demand().and_then(|demand| share(&demand.ask));
                self.tally.arrive(&arrival, asked.map_or(0, |(_, share)| share.cards.get()));
                self.cluster.arrive(arrival.pod);
                has_arrived = true;
            }
            self.settle()?;
            if has_arrived {
                self.curve.add(self.demand, self.gpus.allocated(), self.gpus.fragmented());
            }
        }
    }

    fn leave(&mut self, uid: &Uid) {
        let holding = self.cluster.pod(uid).and_then(|pod| pod.holding.as_ref());
        let node = holding.map(|holding| holding.node.clone());
        self.cluster.end(uid);
        if let Some(node) = node {
            self.update(&node);
        }
    }

    /// Lets the scheduler decide until nothing is left to do at this time.
    fn settle(&mut self) -> Result<()> {
        for _ in 0..TURNS {
            let began = Instant::now();
            let effects = self.cluster.turn();
            self.deciding += began.elapsed();
            for effect in &effects {
                self.note(effect);
            }
            let now = self.cluster.now();
            if effects.is_empty() && self.cluster.scheduler().next_deadline().is_none_or(|at| at > now) {
                return Ok(());
            }
        }
        bail!("the scheduler has not come to an end after {TURNS} turns")
    }

    fn note(&mut self, effect: &Effect) {
        match effect {
            Effect::Bind { pod, node, .. } => {
                let now = self.cluster.now();
                let runs = self.tally.bind(&pod.uid, now).and_then(|pod| pod.runs);
                if let Some(end) = runs.and_then(|runs| now.checked_add(runs).ok()) {
                    self.ends.push(Reverse((end, pod.uid.clone())));
                }
                self.update(node);
            }
            Effect::Preempt { node, .. } => self.update(node),
            Effect::EvictFromZone { eviction } => self.update(&eviction.node),
            _ => {}
        }
    }

    fn update(&mut self, node: &NodeName) {
        let Some(state) = self.cluster.scheduler().snapshot().node(node) else { return };
        self.gpus.update(state, self.dialects);
    }

    fn row(mut self, name: String) -> PolicyRow {
        let nodes = self.cluster.scheduler().snapshot().nodes().map(|state: &Arc<NodeState>| &**state);
        let stranded: BTreeMap<_, _> = self.gpus.stranded(nodes, self.dialects);
        PolicyRow::new(
            name,
            self.arrived,
            (self.gpus.capacity(), self.gpus.allocated(), stranded),
            self.tally.finish(),
            self.deciding,
            &self.curve,
        )
    }
}
