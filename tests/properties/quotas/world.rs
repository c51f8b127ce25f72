//! A cluster of two nodes, two namespaces and their quotas: what happens in it, and what the binder makes of it.
//!
//! It must not decide what happens.

use std::{collections::BTreeMap, sync::Arc};

use berth::{
    device::{Answer, Assignment, Card, Dimension, InitPhase, PodRequest, Profile, ProfileName, Role},
    scheduling::{
        BindOutcome, Claim, Computed, Effect, Event, Finding, Holding, Lifetime, NodeInfo, PodChange,
        PodInfo, PodKey, QuotaChange, QuotaInfo, QuotaKey, Scheduler, TellOutcome, world::quota::Bound,
    },
};
use jiff::Timestamp;
use proptest::prelude::*;

use super::super::fixtures;

const NAMESPACES: [&str; 2] = ["one", "two"];

/// Something that happens in the cluster.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Come(usize, Box<PodRequest>),
    EndInit(usize),
    Go(usize),
    /// A quota of this number in a namespace: shares, GiB, tens of percent.
    Quota(usize, u8, [Option<u64>; 3]),
    NoQuota(usize, u8),
}

/// The API server and the agents: what is bound is seen to be bound, and allocated at once.
pub(super) struct World {
    pub(super) scheduler: Scheduler,
    profile: Profile,
    pub(super) now: Timestamp,
    pub(super) pods: Vec<(PodInfo, PodRequest)>,
    quotas: BTreeMap<(usize, u8), [Option<u64>; 3]>,
    /// Refuses every so manieth Binding.
    refuse: u32,
    bindings: u32,
    pub(super) drift: Vec<String>,
    /// Why pods wait, as it was said.
    pub(super) told: Vec<String>,
}

impl World {
    pub(super) fn new(profile: Profile, cards: &[Card], refuse: u32) -> Self {
        let (scheduler, now) = (Scheduler::new(fixtures::settings()), Timestamp::UNIX_EPOCH);
        let (pods, quotas, drift, told) = (Vec::new(), BTreeMap::new(), Vec::new(), Vec::new());
        let mut world = Self { scheduler, profile, now, pods, quotas, refuse, bindings: 0, drift, told };
        let (front, back) = cards.split_at(cards.len() / 2);
        let nodes = [("a", front), ("b", back)].map(|(name, cards)| node(name, &world.profile.name, cards));
        for event in fixtures::lists(nodes.into()) {
            world.scheduler.observe(event, now);
        }
        world
    }

    /// Does all that there is to do; `check` is asked after every decision.
    pub(super) fn settle(
        &mut self,
        check: &mut dyn FnMut(&Self) -> Result<(), TestCaseError>,
    ) -> Result<(), TestCaseError> {
        loop {
            let effects = self.scheduler.settle(self.now);
            check(self)?;
            if effects.is_empty() {
                return Ok(());
            }
            for effect in effects {
                self.act(effect);
            }
        }
    }

    fn act(&mut self, effect: Effect) {
        match effect {
            Effect::RenewMix(renewal) => self.observe(Event::Computed(Computed::Mix(renewal.skip()))),
            Effect::Bind { pod, node, mut allocations, .. } => {
                self.bindings += 1;
                if self.bindings.is_multiple_of(self.refuse) {
                    let outcome = BindOutcome::Refused("no".to_owned());
                    return self.observe(Event::BindAnswered { pod, node, outcome });
                }
                let uid = pod.uid.clone();
                self.observe(Event::BindAnswered { pod, node: node.clone(), outcome: BindOutcome::Bound });
                if let Some((info, _)) = self.pods.iter_mut().find(|(info, _)| info.key.uid == uid) {
                    for one in &mut allocations {
                        one.answer = Answer::Succeeded;
                    }
                    info.claim = Claim::None;
                    let init = InitPhase::Ahead;
                    info.holding = Some(Holding { init, ..fixtures::holding(&node, allocations) });
                    let seen = Event::Pod(PodChange::Seen(Box::new(info.clone())));
                    self.observe(seen);
                }
            }
            Effect::TellUnschedulable { pod, reason, .. } => {
                let message = reason.message().full;
                self.told.push(message.clone());
                self.observe(Event::Told { pod, message, outcome: TellOutcome::Done });
            }
            Effect::ReportFinding { finding: Finding::Drift(drift), .. } => {
                self.drift.push(drift.to_string());
            }
            Effect::TellScheduled { .. } => {}
            other => panic!("nothing else is to be done: {other:?}"),
        }
    }

    pub(super) fn observe(&mut self, event: Event) {
        self.scheduler.observe(event, self.now);
    }

    pub(super) fn step(&mut self, at: usize, step: Step) {
        match step {
            Step::Come(namespace, request) => {
                let info = arriving(at, NAMESPACES[namespace], self.profile.clone(), &request, self.now);
                self.pods.push((info.clone(), *request));
                self.observe(Event::Pod(PodChange::Seen(Box::new(info))));
            }
            Step::EndInit(at) if !self.pods.is_empty() => {
                let at = at % self.pods.len();
                let (info, _) = &mut self.pods[at];
                if let Some(holding) = &mut info.holding {
                    holding.init = InitPhase::Done;
                    let seen = Event::Pod(PodChange::Seen(Box::new(info.clone())));
                    self.observe(seen);
                }
            }
            Step::Go(at) if !self.pods.is_empty() => {
                let (gone, _) = self.pods.swap_remove(at % self.pods.len());
                self.observe(Event::Pod(PodChange::Gone(gone.key.uid)));
            }
            Step::EndInit(_) | Step::Go(_) => {}
            Step::Quota(namespace, number, bounds) => {
                self.quotas.insert((namespace, number), bounds);
                let seen =
                    Event::Quota(QuotaChange::Seen(quota(namespace, number, bounds, &self.profile.name)));
                self.observe(seen);
            }
            Step::NoQuota(namespace, number) => {
                self.quotas.remove(&(namespace, number));
                self.observe(Event::Quota(QuotaChange::Gone(key(namespace, number))));
            }
        }
    }

    /// What the pods of each namespace hold by the ledger, those that are being bound included: shares, MiB, percent.
    pub(super) fn held(&self) -> [[u64; 3]; 2] {
        let mut held = [[0; 3]; 2];
        for (_, charge) in self.scheduler.snapshot().ledger().all() {
            let namespace = NAMESPACES.iter().position(|name| **name == *charge.pod.namespace).unwrap();
            let peak = charge.allocations.first().map_or([0; 3], |held| peak(&held.assignment, charge.init));
            held[namespace] = [0, 1, 2].map(|at| held[namespace][at] + peak[at]);
        }
        held
    }

    /// Where a namespace holds more than before, it is within each of its quotas.
    pub(super) fn check(&self, before: &mut [[u64; 3]; 2]) -> Result<(), TestCaseError> {
        let held = self.held();
        for ((namespace, number), bounds) in &self.quotas {
            for (at, bound) in in_units(*bounds).into_iter().enumerate() {
                let (now, before) = (held[*namespace][at], before[*namespace][at]);
                let within = bound.is_none_or(|bound| now <= bound || now <= before);
                prop_assert!(within, "quota {number} of {namespace}: {bound:?}, {before} before, {now} now");
            }
        }
        *before = held;
        Ok(())
    }
}

/// Shares, MiB and percent.
fn in_units(bounds: [Option<u64>; 3]) -> [Option<u64>; 3] {
    let [cards, memory, cores] = bounds;
    [cards, memory.map(|gib| gib * 1024), cores.map(|tens| tens * 10)]
}

/// The most that a pod holds at a moment, over all its cards; written anew, moment by moment.
fn peak(assignment: &Assignment, init: InitPhase) -> [u64; 3] {
    let mut most = [0; 3];
    for moment in 0..=assignment.containers.len() {
        let turn = assignment.containers.get(moment);
        if turn.is_some_and(|turn| turn.role != Role::Init || init == InitPhase::Done) {
            continue;
        }
        let before = assignment.containers[..moment].iter().filter(|container| container.role != Role::Init);
        let mut now = [0; 3];
        for share in before.chain(turn).flat_map(|container| &container.shares) {
            now = [now[0] + 1, now[1] + share.memory.get(), now[2] + u64::from(share.cores.get())];
        }
        most = [0, 1, 2].map(|at| most[at].max(now[at]));
    }
    most
}

fn key(namespace: usize, number: u8) -> QuotaKey {
    QuotaKey { namespace: NAMESPACES[namespace].into(), name: format!("quota-{number}").into() }
}

pub(super) fn quota(
    namespace: usize,
    number: u8,
    bounds: [Option<u64>; 3],
    profile: &ProfileName,
) -> QuotaInfo {
    let kinds = [(Dimension::Cards, 1), (Dimension::Memory, 1024), (Dimension::Cores, 10)];
    let bound = |(hard, (dimension, unit)): (Option<u64>, (Dimension, u32))| {
        Some(Bound {
            profile: profile.clone(),
            dimension,
            key: format!("{dimension:?}").into(),
            hard: hard?,
            unit,
        })
    };
    QuotaInfo {
        key: key(namespace, number),
        bounds: bounds.into_iter().zip(kinds).filter_map(bound).collect(),
    }
}

fn node(name: &str, profile: &ProfileName, cards: &[Card]) -> NodeInfo {
    fixtures::node_offering(name, vec![fixtures::offer(profile.as_str(), cards.to_vec())])
}

fn arriving(at: usize, namespace: &str, profile: Profile, request: &PodRequest, now: Timestamp) -> PodInfo {
    let ask = fixtures::ask_for(profile, request.clone());
    let pod = fixtures::pod(&format!("pod-{at}"), Claim::Place(Arc::new(ask)));
    PodInfo {
        key: PodKey { namespace: namespace.into(), ..pod.key },
        lifetime: Lifetime { created: now, leaving: None },
        footprint: fixtures::footprint(namespace),
        ..pod
    }
}
