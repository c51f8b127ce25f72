//! The cluster of a simulation and how it fills up, pod by pod in queue order.

use std::{collections::BTreeMap, ops::ControlFlow, sync::Arc};

use anyhow::Result;
use jiff::Timestamp;

use super::{
    admit::{self, Entered, Entrance},
    input::{Incoming, Input, called},
    report::{NodeVerdict, Outcome, PodRow, ReasonRow, Simulation},
    volume::{self, VolumeRow},
};
use crate::{
    cluster::{Reader, ledger},
    config::Config,
    device::{Allocation, Answer, InitPhase, LockOwner, ProfileName, Quota},
    dialect::{Dialect, Unreadable},
    scheduling::{
        Ask, Claim, Demand, NodeReasons, PodInfo, Reason, Snapshot, Stage, Uid,
        allocate::explain,
        class::Classes,
        decide::{Decision, Filters, Refusal},
        evaluation::Evaluation,
        ledger::{Charge, Commitment},
        node::NodeName,
        object::Kind,
        pod::Binding,
        pod_counts::PodCounts,
        queue::Queue,
        remedy::remedy,
        score::{ScoreWeights, Scores},
        snapshot::NodeState,
    },
};

/// What is told of the nodes that were not taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Explain {
    /// Nothing.
    Nothing,
    /// Whether each would do, and why not.
    EveryNode,
}

/// A simulation under way.
struct Run<'a> {
    reader: Reader,
    snapshot: Snapshot,
    classes: Classes,
    weights: ScoreWeights,
    explain: Explain,
    now: Timestamp,
    /// Every pod's name, for the picture of the cards.
    names: BTreeMap<Uid, String>,
    warnings: Vec<String>,
    input: &'a Input,
}

/// Places every pod that wants a place; beside the result, what could not be read.
pub(super) fn simulate(
    input: &Input,
    config: &Config,
    entrance: Entrance,
    explain: Explain,
    now: Timestamp,
) -> Result<(Simulation, Vec<String>)> {
    let reader = config.reader();
    let mut run = Run {
        snapshot: Snapshot::new(reader.device_resources()),
        reader,
        classes: Classes::new(config.score_weights()),
        weights: config.score_weights(),
        explain,
        now,
        names: BTreeMap::new(),
        warnings: Vec::new(),
        input,
    };
    run.set_cluster();
    let mut rows: BTreeMap<u64, PodRow> = BTreeMap::new();
    let mut waiting: BTreeMap<Uid, (u64, PodRow, PodInfo)> = BTreeMap::new();
    let mut queue = Queue::default();
    for incoming in &input.pods {
        match run.enter(incoming, entrance)? {
            (row, Some(info)) => {
                queue.push(&info, incoming.position);
                waiting.insert(info.key.uid.clone(), (incoming.position, row, info));
            }
            (row, None) => {
                rows.insert(incoming.position, row);
            }
        }
    }
    while let Some(uid) = queue.pop() {
        let (position, row, info) = waiting.remove(&uid).expect("whatever is queued waits");
        rows.insert(position, run.place(row, &info));
    }
    let nodes = ledger::nodes(&run.snapshot, run.reader.dialects(), &run.names);
    Ok((Simulation { pods: rows.into_values().collect(), nodes }, run.warnings))
}

impl Run<'_> {
    /// Takes in the nodes, and charges what pods already hold.
    fn set_cluster(&mut self) {
        for (node, called) in &self.input.nodes {
            let (info, troubles) = self.reader.node(node);
            self.warn(called, &troubles);
            self.snapshot.set_node(info);
        }
        for (pod, called) in &self.input.state {
            let (info, troubles) = self.reader.pod(pod);
            self.warn(called, &troubles);
            self.names.insert(info.key.uid.clone(), info.key.to_string());
            if let Some(charge) = held(&info, self.now) {
                self.snapshot.charge(info.key.uid, charge);
            }
        }
        for object in &self.input.objects {
            self.snapshot.set_object(object.clone());
        }
        for kind in Kind::ALL {
            self.snapshot.note_listed(*kind);
        }
        for Incoming { document, .. } in &self.input.pods {
            if let Ok(pod) = document.read() {
                self.snapshot.nominate(&self.reader.pod(&pod).0);
            }
        }
        for (quota, called) in &self.input.quotas {
            let (info, troubles) = self.reader.quota(quota);
            self.warn(called, &troubles);
            self.snapshot.set_quota(info);
        }
    }

    fn warn(&mut self, called: &str, troubles: &[Unreadable]) {
        self.warnings.extend(troubles.iter().map(|trouble| format!("{called}: {trouble}")));
    }

    /// The pod's row so far, and what the queue is told where it wants a place.
    fn enter(&mut self, incoming: &Incoming, entrance: Entrance) -> Result<(PodRow, Option<PodInfo>)> {
        let document = &incoming.document;
        let mut row = PodRow::new(document);
        let mut pod = match admit::enter(document, entrance, &self.input.facts)? {
            Entered::Ignored(warnings) => {
                row.warnings = warnings;
                return Ok((row, None));
            }
            Entered::Denied(violations, warnings) => return Ok((row.denied(violations, warnings), None)),
            Entered::Ours(pod, warnings) => {
                row.warnings = warnings;
                pod
            }
        };
        let called = called(document);
        pod.spec.priority = Some(self.input.priorities.of(&pod).unwrap_or_else(|class| {
            let message = format!("{called}: spec.priorityClassName: no PriorityClass {class}; taken as 0");
            self.warnings.push(message);
            0
        }));
        pod.metadata.creation_timestamp.get_or_insert(self.now);
        let (info, troubles) = self.reader.pod(&pod);
        self.warn(&called, &troubles);
        self.names.insert(info.key.uid.clone(), info.key.to_string());
        match &info.claim {
            Claim::Place(_) => Ok((row, Some(info))),
            Claim::Unreadable(message) => Ok((row.unschedulable(message.clone()), None)),
            Claim::None if admit::is_gated(document) => {
                row.outcome = Outcome::Unschedulable;
                row.message = Some("Scheduling is blocked due to non-empty scheduling gates".to_owned());
                Ok((row, None))
            }
            Claim::None => {
                row.warnings.push("the pod has ended or is being deleted".to_owned());
                Ok((row, None))
            }
        }
    }

    /// Gives the pod its place, if any node would have it.
    fn place(&mut self, mut row: PodRow, info: &PodInfo) -> PodRow {
        let Some(demand) = info.demand() else { return row };
        let ask = &demand.ask;
        if self.explain == Explain::EveryNode {
            row.nodes = Some(self.verdicts(&demand));
        }
        let decided = self.classes.decide(&demand, &self.snapshot, |_| 0);
        let Decision { node, assignment, volumes } = match decided {
            Ok(decided) => decided,
            Err(error) => return row.unfit(&error),
        };
        for choice in &volumes {
            volume::bind(&mut self.snapshot, &info.key.namespace, choice, &node);
        }
        let dialect = self.dialect(&ask.profile.name).clone();
        let record = dialect.record(&assignment, &node, self.now);
        let owner = LockOwner { namespace: info.key.namespace.to_string(), name: info.key.name.to_string() };
        let lock = dialect.lock().map(|lock| (lock.key.clone(), lock.value(&owner, self.now)));
        let held = Arc::new(assignment.clone());
        let allocation = Allocation::new(ask.profile.name.clone(), held, Answer::Succeeded);
        self.snapshot.charge(info.key.uid.clone(), placed(info, node.clone(), allocation, self.now));
        row.volumes = (!volumes.is_empty()).then(|| VolumeRow::of(&volumes, &node));
        row.bound(&node, (&assignment, ask.profile.core_budget.unit()), record, lock)
    }

    fn dialect(&self, name: &ProfileName) -> &Arc<dyn Dialect> {
        self.reader.dialects().named(name).expect("an ask is of one of the dialects")
    }

    /// What each node, by name, makes of the pod.
    fn verdicts(&self, demand: &Demand) -> Vec<NodeVerdict> {
        let mut counts = PodCounts::default();
        let filters = Filters::prepare(demand, self.snapshot.surroundings(), &mut counts);
        let evaluation = Evaluation::of(filters, &mut counts, &self.weights, || ControlFlow::Continue(()));
        let evaluation = evaluation.expect("it was not told to stop");
        let (filters, dialect) = (evaluation.filters(), self.dialect(&demand.ask.profile.name));
        let verdict = |(state, scores): (&Arc<NodeState>, Result<Scores, &Refusal>)| match scores {
            Ok(scores) => {
                let record = dialect.record(&filters.decision(state).assignment, &state.info.name, self.now);
                (state.info.name.clone(), NodeVerdict::fits(&state.info.name, scores, &self.weights, record))
            }
            Err(refusal) => {
                let failed = self.failed(refusal.reasons(), &demand.ask, state, filters.quota());
                (state.info.name.clone(), failed)
            }
        };
        let by_name: BTreeMap<_, _> = evaluation.nodes().into_iter().map(verdict).collect();
        by_name.into_values().collect()
    }

    fn failed(&self, reasons: &NodeReasons, ask: &Ask, state: &NodeState, quota: Quota) -> NodeVerdict {
        let verdict = NodeVerdict::fails(&state.info.name, reasons.iter().map(ReasonRow::of).collect());
        if reasons.iter().any(Reason::is_of_cards) {
            return self.explained(verdict, ask, state, quota);
        }
        verdict
    }

    /// With each card's failure and what would help.
    fn explained(&self, verdict: NodeVerdict, ask: &Ask, state: &NodeState, quota: Quota) -> NodeVerdict {
        let offer = state.info.offer(&ask.profile.name);
        let inventory = offer.and_then(|offer| offer.inventory.as_ref());
        let failures = inventory
            .map(|inventory| explain::failures(&ask.request, inventory, &state.usage, &ask.profile, quota));
        let remedy = remedy(ask, state, self.snapshot.device_resources(), quota);
        verdict.explained(failures.unwrap_or_default(), remedy)
    }
}

/// What a pod of the input holds; nothing once it has ended.
pub(in crate::cli) fn held(info: &PodInfo, now: Timestamp) -> Option<Charge> {
    let holding = info.holding.as_ref().filter(|_| info.stage != Stage::Ended)?;
    Some(Charge {
        node: holding.node.clone(),
        namespace: info.key.namespace.clone(),
        allocations: holding.allocations.clone(),
        init: holding.init,
        footprint: info.footprint.clone(),
        volumes: Vec::new(),
        commitment: match holding.binding {
            Binding::Bound => Commitment::Bound,
            Binding::Intended => Commitment::Intended,
        },
        stage: info.stage,
        since: now,
    })
}

/// What a pod holds that has just been placed: its agent has allocated at once.
fn placed(info: &PodInfo, node: NodeName, allocation: Allocation, now: Timestamp) -> Charge {
    Charge {
        node,
        namespace: info.key.namespace.clone(),
        allocations: vec![allocation],
        init: InitPhase::Ahead,
        footprint: info.footprint.clone(),
        volumes: Vec::new(),
        commitment: Commitment::Bound,
        stage: Stage::Pending,
        since: now,
    }
}
