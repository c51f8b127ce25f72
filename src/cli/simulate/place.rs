//! The cluster of a simulation and how it fills up, pod by pod in queue order.

use std::{collections::BTreeMap, ops::ControlFlow, sync::Arc};

use anyhow::Result;
use jiff::Timestamp;

use super::{
    admit::{self, Entered, Entrance},
    charge::{held, placed},
    input::{Incoming, SimulationInput, called},
    reader,
    report::{EvictionRow, ReasonRow, SimulatedOutcome, SimulatedPod, SimulatedVerdict, Simulation},
    run::{Entries, Explain, Holders, SimulationRun},
    volume::{self, VolumeRow},
};
use crate::{
    admission::Facts,
    cluster::{ledger, read::devices},
    config::Config,
    device::{Allocation, LockOwner, ProfileName, Quota, Share},
    dialect::{Dialect, Record, Unreadable},
    scheduling::{
        Ask, Claim, Demand, FitError, NodeReasons, PodInfo, Reason, Snapshot, Uid,
        decide::{Decision, Filters, Refusal, class::Classes, evaluation::Evaluation, remedy::remedy},
        model::{claim_use::DeviceClaims, kind::Kind, name::NodeName, prebind_step::PrebindStep},
        plan::{
            eviction,
            preemption::{self, Candidate},
        },
        plugin::{allocate::explain, pod_counts::PodCounts, score::Scores},
        queue::Queue,
        world::{node_state::NodeState, object::Object},
    },
};

/// Places every pod that wants a place; beside the result, what could not be read.
pub(super) fn simulate(
    input: &SimulationInput,
    config: &Config,
    entrance: Entrance,
    explain: Explain,
    now: Timestamp,
) -> Result<(Simulation, Vec<String>)> {
    let reader = reader::of(input, config);
    let facts = Facts { dialects: reader.dialects().clone(), ..input.facts.clone() };
    let claims = config.scheduling.claims.served();
    let snapshot = Snapshot::new(reader.device_resources(), config.plugin_arguments());
    let snapshot = snapshot.divided(config.revocable_zones());
    let mut run = SimulationRun {
        // What the input does not hold is not there: nothing is awaited.
        snapshot: if claims == DeviceClaims::Off { snapshot.awaiting(claims) } else { snapshot },
        reader,
        classes: Classes::new(config.score_weights()),
        weights: config.score_weights(),
        preemption: config.scheduling.preemption.rules(),
        gangs: config.scheduling.gangs.enabled,
        holders: Holders::new(),
        explain,
        now,
        names: BTreeMap::new(),
        warnings: Vec::new(),
        facts,
        input,
    };
    if claims == DeviceClaims::Served {
        run.set_claims();
    }
    let evictions = run.set_cluster();
    let mut rows: BTreeMap<u64, SimulatedPod> = BTreeMap::new();
    let mut waiting = Entries::new();
    let mut with_claims = Vec::new();
    let mut queue = Queue::default();
    for incoming in &input.pods {
        match run.enter(incoming, entrance)? {
            (row, Some(info)) => {
                queue.push(&info, incoming.position);
                if !info.footprint.resource_claims.is_empty() || info.footprint.extended.is_some() {
                    with_claims.push((incoming.position, info.clone()));
                }
                waiting.insert(info.key.uid.clone(), (incoming.position, row, info));
            }
            (row, None) => {
                rows.insert(incoming.position, row);
            }
        }
    }
    while let Some(uid) = queue.pop(|_| false) {
        // Placed with the first of its gang.
        let Some(entry) = waiting.remove(&uid) else { continue };
        if let Some((member, membership)) = run.membership(&entry.2) {
            rows.extend(run.place_gang((&member, membership), entry, &mut waiting));
        } else {
            let (position, row, info) = entry;
            rows.insert(position, run.place(row, &info));
        }
    }
    for (position, info) in with_claims {
        if let Some(row) = rows.get_mut(&position) {
            row.claims = run.claims(&info);
        }
    }
    let nodes = ledger::nodes(&run.snapshot, run.reader.dialects(), &run.names);
    Ok((Simulation { pods: rows.into_values().collect(), evictions, nodes }, run.warnings))
}

impl SimulationRun<'_> {
    /// Takes in the nodes, and charges what pods already hold. Returns the pods that are to leave.
    fn set_cluster(&mut self) -> Vec<EvictionRow> {
        self.snapshot.set_now(self.now);
        let mut bound = Vec::new();
        if let Some(templates) = &self.input.templates {
            self.snapshot.set_object(templates.clone());
        }
        for (node, called) in &self.input.nodes {
            let (mut info, troubles) = self.reader.node(node);
            self.warn(called, &troubles);
            if let Some((device, called)) = self.input.devices.get(&node.metadata.name) {
                let (offer, troubles) = devices(device);
                self.warn(called, &troubles);
                self.snapshot.set_object(Object::Device(info.name.clone(), Arc::new(offer)));
            }
            self.snapshot.objects().join_devices(&mut info);
            self.snapshot.set_node(info);
        }
        for (pod, called) in &self.input.state {
            let (info, troubles) = self.reader.pod(pod);
            self.warn(called, &troubles);
            self.names.insert(info.key.uid.clone(), info.key.to_string());
            if let Some(charge) = held(&info, self.now) {
                self.note_holder(&info, &charge);
                self.snapshot.charge(info.key.uid.clone(), charge);
            }
            bound.push(info);
        }
        for object in &self.input.objects {
            self.snapshot.set_object(object.clone());
        }
        for kind in Kind::ALL {
            self.snapshot.note_listed(*kind);
        }
        for kind in Kind::POD_GROUPS {
            // Without a PodGroup of this API in the input, each pod is placed alone.
            if self.snapshot.objects().of_kind(*kind).next().is_none() {
                self.snapshot.note_unserved(*kind);
            }
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
        self.evictions(&bound)
    }

    /// The pods whose window has closed and whose budgets let them go.
    fn evictions(&self, bound: &[PodInfo]) -> Vec<EvictionRow> {
        let zone = |node: &NodeName| self.snapshot.node(node)?.zone.clone();
        let round = eviction::round(bound.iter(), zone, self.snapshot.objects(), |_| false);
        round.evictions.iter().map(EvictionRow::of).collect()
    }

    fn warn(&mut self, called: &str, troubles: &[Unreadable]) {
        self.warnings.extend(troubles.iter().map(|trouble| format!("{called}: {trouble}")));
    }

    /// The pod's row so far, and what the queue is told where it wants a place.
    fn enter(&mut self, incoming: &Incoming, entrance: Entrance) -> Result<(SimulatedPod, Option<PodInfo>)> {
        let document = &incoming.document;
        let mut row = SimulatedPod::new(document);
        let classes = self.snapshot.resource_claims().extended();
        let entered = match admit::with_claims(incoming, &self.facts, classes)? {
            Some(entered) => entered,
            None => admit::enter(incoming, entrance, &self.facts)?,
        };
        let mut pod = match entered {
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
        let missing = self.make_claims(&mut pod);
        self.warnings.extend(missing.into_iter().map(|trouble| format!("{called}: {trouble}")));
        let (info, troubles) = self.reader.pod(&pod);
        self.warn(&called, &troubles);
        self.names.insert(info.key.uid.clone(), info.key.to_string());
        match &info.claim {
            Claim::Place(_) => Ok((row, Some(info))),
            Claim::Unreadable(message) => Ok((row.unschedulable(message.clone()), None)),
            Claim::None if admit::is_gated(document) => {
                row.outcome = SimulatedOutcome::Unschedulable;
                row.message = Some("Scheduling is blocked due to non-empty scheduling gates".to_owned());
                Ok((row, None))
            }
            Claim::None => {
                row.warnings.push("the pod has ended or is being deleted".to_owned());
                Ok((row, None))
            }
        }
    }

    /// Says what each node makes of the pod, where that is asked for.
    pub(super) fn explain(&self, row: &mut SimulatedPod, info: &PodInfo) {
        if let (Explain::EveryNode, Some(demand)) = (self.explain, info.demand()) {
            row.nodes = Some(self.verdicts(&demand));
        }
    }

    /// Gives the pod its place, if any node would have it.
    fn place(&mut self, mut row: SimulatedPod, info: &PodInfo) -> SimulatedPod {
        let Some(demand) = info.demand() else { return row };
        self.explain(&mut row, info);
        let decided = self.classes.decide(&demand, &self.snapshot, |_| 0);
        match decided {
            Ok(decision) => self.carry_out(row, info, decision),
            Err(error) => self.preempt(row, info, &demand, error),
        }
    }

    /// The pod holds its place from now on.
    pub(super) fn carry_out(
        &mut self,
        mut row: SimulatedPod,
        info: &PodInfo,
        decision: Decision,
    ) -> SimulatedPod {
        let Decision { node, allocations, steps } = &decision;
        let volumes: Vec<_> = steps.iter().filter_map(PrebindStep::volume).collect();
        for choice in &volumes {
            volume::bind(&mut self.snapshot, &info.key.namespace, choice, node);
        }
        let record = self.record(&info.claim, allocations, node);
        let locks = self.locks(info, node);
        let shares = self.shares(allocations);
        row.volumes = (!volumes.is_empty()).then(|| VolumeRow::of(&volumes, node));
        let node = node.clone();
        let charge = placed(info, decision, self.now);
        self.note_holder(info, &charge);
        self.snapshot.charge(info.key.uid.clone(), charge);
        row.bound(&node, &shares, record, locks)
    }

    /// Names the pods that would be preempted for one that fits nowhere, and keeps their node for it. They stay: a live cluster deletes
    /// them before the pod is placed.
    fn preempt(
        &mut self,
        row: SimulatedPod,
        info: &PodInfo,
        demand: &Demand,
        error: FitError,
    ) -> SimulatedPod {
        let Some(rules) = self.preemption else { return row.unfit(&error) };
        if !preemption::is_tried(demand, &error, &self.snapshot) {
            return row.unfit(&error);
        }
        let names = &self.names;
        let name = |pod: &Uid| names.get(pod).and_then(|name| name.rsplit('/').next()).map(Arc::from);
        let mut counts = PodCounts::default();
        match preemption::choose(demand, &mut self.snapshot, &mut counts, rules, &name) {
            Err(hopeless) => row.unfit(&error.beside_preemption(hopeless)),
            Ok(Candidate { node, victims, .. }) => {
                let names =
                    victims.iter().filter_map(|victim| self.names.get(&victim.pod).cloned()).collect();
                let victims = victims.into_iter().map(|victim| victim.pod).collect();
                self.snapshot.keep_for(info, &node, victims);
                row.unfit(&error).nominated(&node, names)
            }
        }
    }

    /// What a Binding to the node would carry.
    fn record(&self, claim: &Claim, allocations: &[Allocation], node: &str) -> Record {
        let place = self.snapshot.node(node).and_then(|state| state.info.devices.place(claim));
        let of = |one: &Allocation| {
            let (dialect, given) = (self.dialect(&one.profile), &one.assignment);
            let adaption = |place| {
                let adapted = dialect.adaption(&given.devices, (node, place), self.now);
                adapted.expect("a pod that the node's device plugin can't serve does not fit there")
            };
            let adaption = place.as_ref().map(adaption).unwrap_or_default();
            dialect.record(given, node, self.now).and(adaption)
        };
        allocations.iter().map(of).fold(Record::default(), Record::and)
    }

    /// The locks that would be taken for the pod, each under its key.
    fn locks(&self, info: &PodInfo, node: &str) -> BTreeMap<String, String> {
        let owner = LockOwner { namespace: info.key.namespace.to_string(), name: info.key.name.to_string() };
        let (Claim::Place(ask), Some(state)) = (&info.claim, self.snapshot.node(node)) else {
            return BTreeMap::new();
        };
        let dialects = self.reader.dialects();
        let specs = state.info.locks_for(ask).filter_map(|lock| dialects.lock(&lock.name));
        specs.map(|spec| (spec.key.clone(), spec.value(&owner, self.now))).collect()
    }

    /// Each share in words.
    fn shares(&self, allocations: &[Allocation]) -> Vec<String> {
        let of = |one: &Allocation| {
            let unit = self.dialect(&one.profile).profile().core_budget.unit();
            let words =
                |share: &Share| format!("{} ({}, {})", share.card, share.memory, unit.words(share.cores));
            let devices = one.assignment.devices.iter().flat_map(|(kind, devices)| {
                devices.iter().map(move |device| format!("{kind} {}", device.minor))
            });
            one.assignment.shares().map(words).chain(devices).collect::<Vec<_>>()
        };
        allocations.iter().flat_map(of).collect()
    }

    fn dialect(&self, name: &ProfileName) -> &Arc<dyn Dialect> {
        self.reader.dialects().named(name).expect("an ask is of one of the dialects")
    }

    /// What each node, by name, makes of the pod.
    fn verdicts(&self, demand: &Demand) -> Vec<SimulatedVerdict> {
        let mut counts = PodCounts::default();
        let filters = Filters::prepare(demand, self.snapshot.world(), &mut counts);
        let evaluation = Evaluation::of(filters, &mut counts, &self.weights, || ControlFlow::Continue(()));
        let evaluation = evaluation.expect("it was not stopped");
        let filters = evaluation.filters();
        let verdict = |(state, scores): (&Arc<NodeState>, Result<Scores, &Refusal>)| match scores {
            Ok(scores) => {
                let record = self.record(
                    &Claim::Place(demand.ask.clone()),
                    &filters.decision(state).allocations,
                    &state.info.name,
                );
                (
                    state.info.name.clone(),
                    SimulatedVerdict::fits(&state.info.name, scores, &self.weights, record),
                )
            }
            Err(refusal) => {
                let failed = self.failed(refusal.reasons(), &demand.ask, state, filters.quotas());
                (state.info.name.clone(), failed)
            }
        };
        let by_name: BTreeMap<_, _> = evaluation.nodes().into_iter().map(verdict).collect();
        by_name.into_values().collect()
    }

    fn failed(
        &self,
        reasons: &NodeReasons,
        ask: &Ask,
        state: &NodeState,
        quotas: &[Quota],
    ) -> SimulatedVerdict {
        let verdict = SimulatedVerdict::fails(&state.info.name, reasons.iter().map(ReasonRow::of).collect());
        if reasons.iter().any(Reason::is_of_cards) {
            return self.explained(verdict, ask, state, quotas);
        }
        verdict
    }

    /// With each card's failure and what would help.
    fn explained(
        &self,
        verdict: SimulatedVerdict,
        ask: &Ask,
        state: &NodeState,
        quotas: &[Quota],
    ) -> SimulatedVerdict {
        let short = explain::short_on(ask, state, quotas);
        let (at, failures) = short.map(|(at, short)| (at, short.failures)).unwrap_or_default();
        let remedy = remedy(ask, at, state, self.snapshot.device_resources(), quotas);
        verdict.explained(failures, remedy)
    }
}
