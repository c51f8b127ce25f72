//! Moving pods on trial: cards are closed, pods evicted, and their successors decided as any pod is.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use thin_vec::ThinVec;

use super::{MovablePods, MoveGoal, NodeCard};
use crate::device::{CardId, CardUsage, InitPhase};
use crate::scheduling::{
    decide::{Decision, class::Classes},
    model::{
        name::{NodeName, Uid},
        pod::{Demand, Placer, Stage},
    },
    plan::{Plan, Savepoint},
    snapshot::Snapshot,
    world::ledger::{Charge, Commitment},
};

/// So many pods of a node are added up for a step of a trial, as it is counted.
const PODS: usize = 32;

/// So often a pod that would take a free card is tried without that card.
const DETOURS: usize = 4;

/// Pods that are moved on trial. Dropping it undoes all.
#[derive(Debug)]
pub(super) struct MoveTrial<'a> {
    plan: Plan<'a>,
    classes: &'a mut Classes,
    pub(super) pods: &'a MovablePods,
    pub(super) goal: &'a MoveGoal,
    /// Steps that decisions had taken before.
    begun: u64,
}

impl<'a> MoveTrial<'a> {
    /// Nothing is moved yet.
    pub(super) fn new(
        snapshot: &'a mut Snapshot,
        classes: &'a mut Classes,
        pods: &'a MovablePods,
        goal: &'a MoveGoal,
    ) -> Self {
        let begun = classes.steps();
        Self { plan: Plan::new(snapshot), classes, pods, goal, begun }
    }

    /// The cluster as the trial has it.
    pub(super) fn snapshot(&self) -> &Snapshot {
        &self.plan
    }

    /// How many steps it has taken.
    pub(super) fn steps(&mut self) -> u64 {
        self.classes.steps().saturating_sub(self.begun)
    }

    pub(super) fn mark(&self) -> Savepoint {
        self.plan.mark()
    }

    pub(super) fn undo(&mut self, to: Savepoint) {
        self.plan.undo(to);
    }

    pub(super) fn evict(&mut self, uid: &Uid) -> Option<Arc<Charge>> {
        self.classes.count_folded(PODS);
        self.plan.evict(uid)
    }

    /// Puts a pod back where it was.
    pub(super) fn restore(&mut self, uid: &Uid, charge: Arc<Charge>) {
        self.classes.count_folded(PODS);
        self.plan.place(uid, charge);
    }

    /// Whether nothing of these cards is in use.
    pub(super) fn are_free<'c>(&self, node: &str, mut cards: impl Iterator<Item = &'c CardId>) -> bool {
        let Some(state) = self.plan.node(node) else { return false };
        cards.all(|card| state.usage.card(card) == CardUsage::default())
    }

    /// Lets no pod have anything of these cards.
    pub(super) fn close(&mut self, cards: &BTreeSet<NodeCard>) {
        for (node, cards) in NodeCard::by_node(cards) {
            self.classes.count_folded(PODS);
            self.plan.cordon(&node, &cards);
        }
    }

    /// Where a pod's successor would go by the cluster as the trial has it; `None`: nowhere, or not without writing something for it first.
    pub(super) fn decide(&mut self, demand: &Demand) -> Option<Decision> {
        let decision = self.classes.decide(demand, &self.plan, |_| 0).ok()?;
        decision.steps.is_empty().then_some(decision)
    }

    /// Where a pod's successor would go with these cards closed, and further ones where it would take one that is free: those that were closed for it,
    /// beside those that are. If it would take one all the same, it takes the first. The cards are open again afterwards.
    pub(super) fn find(
        &mut self,
        demand: &Demand,
        closed: &BTreeSet<NodeCard>,
    ) -> Option<(BTreeSet<NodeCard>, Decision)> {
        let begin = self.mark();
        self.close(closed);
        let found = self.decide(demand).map(|first| self.detour(demand, closed, first));
        self.undo(begin);
        found
    }

    fn detour(
        &mut self,
        demand: &Demand,
        closed: &BTreeSet<NodeCard>,
        first: Decision,
    ) -> (BTreeSet<NodeCard>, Decision) {
        let mut all = closed.clone();
        let mut next = self.taken(&first);
        for _ in 0..DETOURS {
            if next.is_empty() {
                break;
            }
            self.close(&next);
            all.extend(next);
            let Some(decision) = self.decide(demand) else { break };
            next = self.taken(&decision);
            if next.is_empty() {
                return (all, decision);
            }
        }
        (closed.clone(), first)
    }

    /// Whether a node would have a pod's successor.
    pub(super) fn fits(&mut self, demand: &Demand, node: &NodeName) -> bool {
        self.classes.confirm(demand, node, &self.plan).is_some()
    }

    /// Gives a pod's successor its place, under the uid of the pod.
    pub(super) fn place(&mut self, uid: &Uid, decision: Decision) {
        let Some(pod) = self.pods.movable.get(uid) else { return };
        let Decision { node, allocations, .. } = decision;
        let charge = Charge {
            node,
            pod: pod.info.key.clone(),
            allocations: allocations.into(),
            init: InitPhase::Ahead,
            footprint: pod.demand.footprint.clone(),
            steps: ThinVec::new(),
            importance: pod.info.importance.clone(),
            placer: Placer::Berth,
            commitment: Commitment::Bound,
            stage: Stage::Running,
            since: Timestamp::UNIX_EPOCH,
            tenure: None,
        };
        self.classes.count_folded(PODS);
        self.plan.place(uid, charge);
    }

    /// The cards of a decision that count and of which nothing is in use yet.
    pub(super) fn taken(&self, decision: &Decision) -> BTreeSet<NodeCard> {
        let Some(state) = self.plan.node(&decision.node) else { return BTreeSet::new() };
        let free = self.goal.counted(state).filter(|card| state.usage.card(card) == CardUsage::default());
        let free: Vec<&CardId> = free.collect();
        let taken = cards(decision).filter_map(|card| {
            let known = free.iter().find(|free| state.info.devices.is_one_card(free, card))?;
            Some(NodeCard { node: decision.node.clone(), card: (*known).clone() })
        });
        taken.collect()
    }
}

/// The cards of a decision.
pub(super) fn cards(decision: &Decision) -> impl Iterator<Item = &CardId> {
    let shares = decision.allocations.iter().flat_map(|allocation| allocation.assignment.shares());
    shares.map(|share| &share.card)
}
