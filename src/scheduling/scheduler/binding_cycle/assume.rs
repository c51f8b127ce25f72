//! Assuming decisions, and taking them back.
//!
//! An assumption stands in the ledger until the Binding is confirmed or the decision is taken back.

use jiff::Timestamp;

use super::BindingCycle;
use crate::{
    device::Allocation,
    scheduling::{
        model::{
            kept_room::RoomCourse,
            measure::{Attempt, Measure},
            name::{NodeName, Uid},
            prebind_step::PrebindStep,
        },
        node_flow::NodeFlowInput,
        prebind::PrebindInput,
        scheduler::scheduling_cycle::{decide::assumed, scheduling_queue::PodProgress, views::prebind_view},
        world::ledger::Commitment,
    },
};

impl BindingCycle {
    /// The pod's decision has been assumed: its claims are bound next, or it joins the line of its node.
    pub(in crate::scheduling::scheduler) fn carry_on(
        &mut self,
        uid: &Uid,
        node: NodeName,
        steps: Vec<PrebindStep>,
        now: Timestamp,
    ) {
        self.cycle.outbox.measures.push(Measure::Attempt(Attempt::Scheduled));
        self.cycle.note_decided(uid);
        let unsettled = self.prebinding.unsettled_claims(uid, &steps, &prebind_view(&self.cycle));
        let mut steps = [unsettled, steps].concat();
        // The pod's status says what its claims take once they have their devices.
        steps.sort_by_key(|step| step.node_resources().is_some());
        if steps.is_empty() && !self.gang_view().is_in_gang(uid) {
            self.join_line(uid, &node, now);
        } else {
            self.begin_prebind(uid, node, steps);
            self.advance_prebind(PrebindInput::Touched(uid));
            self.permit();
        }
    }

    /// Charges a decision to the ledger until it is confirmed or forgotten.
    pub(in crate::scheduling::scheduler) fn assume(
        &mut self,
        uid: &Uid,
        node: NodeName,
        allocations: Vec<Allocation>,
        steps: Vec<PrebindStep>,
        now: Timestamp,
    ) {
        if let Some(entry) = self.cycle.pods.get(uid) {
            let charge = assumed(&entry.info, node, allocations, steps, now);
            let namespace = charge.pod.namespace.clone();
            self.cycle.snapshot.charge(uid.clone(), charge);
            self.cycle.preempting.stop(uid);
            self.end_nominations_beyond_quota(&namespace);
        }
    }

    /// The pod stands in the line of its node from now on.
    pub(in crate::scheduling::scheduler) fn join_line(&mut self, uid: &Uid, node: &NodeName, now: Timestamp) {
        self.cycle.queue.set_progress(uid, PodProgress::InLine(node.clone()));
        self.advance(node, NodeFlowInput::Joined { pod: uid.clone(), since: Some(now) });
    }

    /// Takes an assumed decision back: the pod holds nothing, stands in no line, and what was written for its claims is taken back.
    pub(in crate::scheduling::scheduler) fn forget(&mut self, uid: &Uid) {
        let assumed =
            self.cycle.snapshot.ledger().get(uid).filter(|charge| charge.commitment == Commitment::Assumed);
        if assumed.is_some() {
            self.release(uid);
            self.cycle.preempting.note_going(uid);
            if let Some(entry) = self.cycle.pods.get(uid) {
                // Room that its status states is kept on.
                if entry.info.status.room.is_some_and(|room| room.course == RoomCourse::Kept) {
                    self.cycle.snapshot.nominate(&entry.info);
                }
                self.cycle.gangs.touch_gang_of(&entry.info);
            }
        }
        if let PodProgress::InLine(node) = self.cycle.queue.progress(uid).clone() {
            self.advance(&node, NodeFlowInput::Left(uid));
            self.cycle.queue.set_progress(uid, PodProgress::Idle);
        } else if self.prebinding.contains(uid) {
            self.advance_prebind(PrebindInput::GivenUp(uid));
            self.cycle.queue.set_progress(uid, PodProgress::Idle);
        }
    }

    /// Lets a pod wait out a failure.
    pub(in crate::scheduling::scheduler) fn back_off(&mut self, uid: &Uid, now: Timestamp) {
        self.cycle.outbox.measures.push(Measure::Attempt(Attempt::Failed));
        self.forget(uid);
        if let Some(entry) = self.cycle.pods.get(uid) {
            self.cycle.queue.back_off(entry, now);
        }
    }
}
