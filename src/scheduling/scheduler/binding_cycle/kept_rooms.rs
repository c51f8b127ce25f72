//! Keeping room for pods that wait long, and giving it up.

use jiff::Timestamp;

use super::BindingCycle;
use crate::scheduling::{
    model::{
        kept_room::{RoomCourse, RoomStatus},
        measure::Measure,
        name::{NodeName, Uid},
    },
    node_flow::Course,
    plan::kept_room::{self, RoomPlace},
    preempt::PreemptInput,
    scheduler::scheduling_cycle::{alike::Versions, kept_rooms::RoomView},
};

/// Room is kept, and given up, in this cluster.
pub(in crate::scheduling::scheduler) struct RoomKeeping<'a>(&'a mut BindingCycle);

impl<'a> RoomKeeping<'a> {
    /// `None`: nothing is decided now.
    pub(in crate::scheduling::scheduler) fn of(binding: &'a mut BindingCycle) -> Option<Self> {
        let duty = &binding.cycle.duty;
        let decides = duty.course == Course::Onward && !duty.directed && binding.cycle.is_synced();
        (decides && !binding.cycle.awaits_lists()).then_some(Self(binding))
    }

    /// Gives up room that has been kept for long enough, and keeps room for pods that have waited for long enough.
    pub(in crate::scheduling::scheduler) fn go_on(mut self, now: Timestamp) {
        for uid in RoomView::of(&self.0.cycle).overdue(now) {
            self.0.cycle.outbox.measures.push(Measure::RoomGivenUp);
            self.end(&uid, RoomCourse::GivenUp);
        }
        if !self.0.cycle.kept_rooms.begins_look(now) {
            return;
        }
        for uid in RoomView::of(&self.0.cycle).unsure() {
            self.adapt(&uid);
        }
        self.look(now);
        self.0.cycle.queue.charge_turn(self.0.cycle.classes.take_steps());
    }

    /// Keeps room for the pods that wait for it, as many as there may be at a time and the turn has time for.
    fn look(&mut self, now: Timestamp) {
        let gangs = self.0.gang_view();
        let waiting = RoomView::of(&self.0.cycle).waiting(|uid| gangs.is_in_gang(uid), now);
        let mut left = None;
        for turn in waiting {
            if !self.0.cycle.queue.has_room() {
                left = Some(turn);
                break;
            }
            let (priority, .., uid) = &turn;
            let view = RoomView::of(&self.0.cycle);
            let is_full = view.count() >= view.most();
            let least = view.least(priority.0).filter(|_| is_full);
            if is_full && least.is_none() {
                break;
            }
            if let Some(RoomPlace { node, must_end }) = self.choose(uid, now) {
                if let Some(least) = least {
                    self.end(&least, RoomCourse::Lost);
                }
                let RoomStatus { since, .. } = RoomStatus::at(RoomCourse::Kept, now);
                self.0.advance_preempt(PreemptInput::RoomChosen { pod: uid, node, must_end, since });
                // It is told that room is kept for it.
                self.0.cycle.decide_waiting_again(uid);
            }
            self.0.cycle.queue.charge_turn(self.0.cycle.classes.take_steps());
        }
        self.0.cycle.kept_rooms.note_passed(left);
    }

    /// Where room is kept for the pod.
    fn choose(&mut self, uid: &Uid, now: Timestamp) -> Option<RoomPlace> {
        let cycle = &mut self.0.cycle;
        let demand = cycle.demand(uid)?;
        let allowed = RoomView::of(cycle).nodes_for(&demand, now);
        let before = Versions::of(&cycle.snapshot);
        let counts = cycle.classes.counts();
        let chosen = kept_room::choose(&demand, &mut cycle.snapshot, counts, &allowed);
        cycle.queue.rejections.keep(before, &cycle.snapshot);
        chosen
    }

    /// Finds anew who has to end on the node that is kept for the pod; if it can't have the pod any more, the room is lost.
    fn adapt(&mut self, uid: &Uid) {
        let cycle = &mut self.0.cycle;
        let (Some(demand), Some(room)) = (cycle.demand(uid), RoomView::of(cycle).room(uid)) else { return };
        let before = Versions::of(&cycle.snapshot);
        let counts = cycle.classes.counts();
        let must_end = kept_room::must_end(&demand, &room.node, &mut cycle.snapshot, counts);
        cycle.queue.rejections.keep(before, &cycle.snapshot);
        let Some(must_end) = must_end else { return self.end(uid, RoomCourse::Lost) };
        let (node, since) = (room.node, room.since);
        self.0.advance_preempt(PreemptInput::RoomChosen { pod: uid, node, must_end, since });
    }

    /// Something has changed on a node: who has to end there is found anew for the pods that room is kept for, before others are decided.
    pub(in crate::scheduling::scheduler) fn adapt_on(&mut self, node: &NodeName) {
        for uid in self.with_room_on(node) {
            self.adapt(&uid);
        }
    }

    /// The node is gone, and the room there with it.
    pub(in crate::scheduling::scheduler) fn lose_on(&mut self, node: &NodeName) {
        for uid in self.with_room_on(node) {
            self.end(&uid, RoomCourse::Lost);
        }
    }

    fn with_room_on(&self, node: &NodeName) -> Vec<Uid> {
        let nominations = self.0.cycle.snapshot.nominations();
        let mut pods = nominations.on_node(node);
        pods.retain(|uid| nominations.room_since(uid).is_some());
        pods
    }

    fn end(&mut self, uid: &Uid, course: RoomCourse) {
        self.0.advance_preempt(PreemptInput::RoomEnded(uid, course));
        self.0.cycle.decide_waiting_again(uid);
    }
}
