//! Deciding the pods of the queue: the best node and its cards are assumed for each, or why there is none is said.
//!
//! An assumption stands in the ledger until the Binding is confirmed or the decision taken back. How cards are chosen stands elsewhere.

use std::sync::Arc;

use jiff::Timestamp;

use super::{Course, PodProgress, Scheduler, compare::left_to_compare};
use crate::{
    device::{Allocation, InitPhase},
    scheduling::{
        decide::{Decision, fit_error::FitError},
        model::{
            measure::{Attempt, Measure},
            name::{NodeName, Uid},
            pod::{Ask, Claim, Demand, PodInfo, Stage},
            prebind_step::PrebindStep,
        },
        node_flow::NodeFlowInput,
        pending::PendingReason,
        prebind::{PrebindInput, Wanted},
        world::ledger::{Charge, Commitment},
    },
};

impl Scheduler {
    pub(super) fn schedule(&mut self, now: Timestamp) {
        if self.duty.course != Course::Onward || self.duty.directed || self.awaits_lists() {
            return;
        }
        self.mend_gangs(now);
        while let Some(uid) = self.pop(now) {
            let Some(entry) = self.pods.get(&uid) else {
                continue;
            };
            let namespace = entry.info.key.namespace.clone();
            match entry.info.claim.clone() {
                Claim::None => self.queue.set_progress(&uid, PodProgress::Idle),
                Claim::Unreadable(message) => {
                    self.queue.set_progress(&uid, PodProgress::Idle);
                    self.tell_unschedulable(&uid, PendingReason::Request(message.into()));
                }
                Claim::Place(ask) => self.place(&uid, &ask, now),
            }
            self.queue.charge(&namespace, self.classes.take_steps(), now);
        }
    }

    fn place(&mut self, uid: &Uid, ask: &Arc<Ask>, now: Timestamp) {
        // What earlier decisions have left to be compared is no longer asked for.
        self.classes.counts().forget_unfinished();
        if self.wait_for_lists(uid, now) {
            return;
        }
        if let Some(entry) = self.pods.get(uid)
            && self.queue.wait_for_comparison(&entry.info, &mut self.classes)
        {
            return;
        }
        if self.gang_view().is_in_gang(uid) && self.waits_for_part(uid, Wanted::ForGang, now) {
            return;
        }
        if self.decide_in_gang(uid, now) {
            return;
        }
        let decided = match self.decide_as_alike(uid) {
            Err(error) if self.take_held(uid, &error) || self.take_kept(uid, &error) => self.decide(uid),
            decided => decided,
        };
        match decided {
            Ok(decision) if self.waits_for_part(uid, Wanted::Decided(&decision), now) => {}
            Ok(Decision { node, allocations, steps }) => {
                self.assume(uid, node.clone(), allocations, steps.clone(), now);
                self.carry_on(uid, node, steps, now);
            }
            Err(error) => {
                let demand = || self.snapshot.nominations().demand(&self.pods.get(uid)?.info);
                let left = left_to_compare(demand, &error, &self.snapshot, &mut self.classes);
                if let Some(comparison) = left {
                    return self.compare_beside(comparison, [uid]);
                }
                self.outbox.measures.push(Measure::Attempt(Attempt::Unschedulable));
                self.advance_prebind(PrebindInput::Unschedulable(uid));
                let error = self.preempt(uid, error);
                if let Some(alike) = self.alike(uid) {
                    self.queue.rejections.note(alike, &error);
                }
                self.wait(uid, ask, &error, now);
                self.tell_unschedulable(uid, error);
            }
        }
    }

    /// The pod's decision has been assumed: its claims are bound next, or it joins the line of its node.
    pub(super) fn carry_on(&mut self, uid: &Uid, node: NodeName, steps: Vec<PrebindStep>, now: Timestamp) {
        self.outbox.measures.push(Measure::Attempt(Attempt::Scheduled));
        self.note_decided(uid);
        let steps = [self.prebinding.released_claims(uid, &steps), steps].concat();
        if steps.is_empty() && !self.gang_view().is_in_gang(uid) {
            self.join_line(uid, &node, now);
        } else {
            self.begin_prebind(uid, node, steps);
            self.advance_prebind(PrebindInput::Touched(uid));
            self.permit();
        }
    }

    /// The best node and its cards, or why there is none.
    pub(super) fn decide(&mut self, uid: &Uid) -> Result<Decision, FitError> {
        let demand = self.demand(uid).expect("only a pod that wants a place is decided");
        let flows = &self.flows;
        self.classes.decide(&demand, &self.snapshot, |node| flows.rank(node))
    }

    /// What the pod asks for, with the node that is kept for it, whether its status states that already or not.
    pub(super) fn demand(&self, uid: &Uid) -> Option<Demand> {
        self.snapshot.nominations().demand(&self.pods.get(uid)?.info)
    }

    /// Judges for a pod that may come, once there is something to judge by.
    pub(super) fn prepare(&mut self, ask: &Arc<Ask>) {
        if self.duty.course == Course::Onward && self.is_synced() {
            self.classes.warm(ask, &self.snapshot);
        }
    }

    /// Charges a decision to the ledger until it is confirmed or forgotten.
    pub(super) fn assume(
        &mut self,
        uid: &Uid,
        node: NodeName,
        allocations: Vec<Allocation>,
        steps: Vec<PrebindStep>,
        now: Timestamp,
    ) {
        if let Some(entry) = self.pods.get(uid) {
            let charge = assumed(&entry.info, node, allocations, steps, now);
            let namespace = charge.namespace.clone();
            self.snapshot.charge(uid.clone(), charge);
            self.preempting.stop(uid);
            self.end_nominations_beyond_quota(&namespace);
        }
    }

    /// The pod stands in the line of its node from now on.
    pub(super) fn join_line(&mut self, uid: &Uid, node: &NodeName, now: Timestamp) {
        self.queue.set_progress(uid, PodProgress::InLine(node.clone()));
        self.advance(node, NodeFlowInput::Joined { pod: uid.clone(), since: Some(now) });
    }

    /// Takes an assumed decision back: the pod holds nothing, stands in no line, and what was written for its claims is taken back.
    pub(super) fn forget(&mut self, uid: &Uid) {
        let assumed =
            self.snapshot.ledger().get(uid).filter(|charge| charge.commitment == Commitment::Assumed);
        if assumed.is_some() {
            self.release(uid);
            self.preempting.note_going(uid);
            if let Some(entry) = self.pods.get(uid) {
                self.gangs.touch_gang_of(&entry.info);
            }
        }
        if let PodProgress::InLine(node) = self.queue.progress(uid).clone() {
            self.advance(&node, NodeFlowInput::Left(uid));
            self.queue.set_progress(uid, PodProgress::Idle);
        } else if self.prebinding.contains(uid) {
            self.advance_prebind(PrebindInput::GivenUp(uid));
            self.queue.set_progress(uid, PodProgress::Idle);
        }
    }

    /// Lets a pod wait out a failure.
    pub(super) fn back_off(&mut self, uid: &Uid, now: Timestamp) {
        self.outbox.measures.push(Measure::Attempt(Attempt::Failed));
        self.forget(uid);
        if let Some(entry) = self.pods.get(uid) {
            self.queue.back_off(entry, now);
        }
    }
}

/// What a decision charges to the pod until it is confirmed or forgotten.
pub(super) fn assumed(
    pod: &PodInfo,
    node: NodeName,
    allocations: Vec<Allocation>,
    steps: Vec<PrebindStep>,
    now: Timestamp,
) -> Charge {
    Charge {
        node,
        namespace: pod.key.namespace.clone(),
        allocations,
        init: InitPhase::Ahead,
        footprint: pod.footprint.clone(),
        steps,
        importance: pod.importance,
        placer: pod.placer,
        commitment: Commitment::Assumed,
        stage: Stage::Pending,
        since: now,
    }
}
