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
    preempt::PreemptInput,
};

impl BindingCycle {
    /// Gives up room that has been kept for long enough, and keeps room for pods that have waited for long enough.
    pub(in crate::scheduling::scheduler) fn keep_rooms(&mut self, now: Timestamp) {
        if !self.keeps_rooms() {
            return;
        }
        for uid in self.cycle.overdue_rooms(now) {
            self.cycle.outbox.measures.push(Measure::RoomGivenUp);
            self.end_room(&uid, RoomCourse::GivenUp);
        }
        if !self.cycle.begins_look(now) {
            return;
        }
        for uid in self.cycle.unsure_rooms() {
            self.adapt_room(&uid);
        }
        self.look_for_rooms(now);
        self.cycle.queue.charge_turn(self.cycle.classes.take_steps());
    }

    fn keeps_rooms(&self) -> bool {
        let duty = &self.cycle.duty;
        duty.course == Course::Onward
            && !duty.directed
            && self.cycle.is_synced()
            && !self.cycle.awaits_lists()
    }

    /// Keeps room for the pods that wait for it, as many as there may be at a time and the turn has time for.
    fn look_for_rooms(&mut self, now: Timestamp) {
        let gangs = self.gang_view();
        let waiting = self.cycle.waiting_for_room(|uid| gangs.is_in_gang(uid), now);
        let most = self.cycle.most_rooms();
        for uid in waiting {
            if !self.cycle.queue.has_room() {
                return self.cycle.note_passed(Some(&uid));
            }
            let is_full = self.cycle.snapshot.nominations().rooms().count() >= most;
            let priority = self.cycle.pods.get(&uid).map_or(0, |entry| entry.info.importance.priority);
            let least = self.cycle.least_room(priority).filter(|_| is_full);
            if is_full && least.is_none() {
                break;
            }
            if let Some(place) = self.cycle.choose_room(&uid, now) {
                if let Some(least) = least {
                    self.end_room(&least, RoomCourse::Lost);
                }
                let RoomStatus { since, .. } = RoomStatus::at(RoomCourse::Kept, now);
                let (node, must_end) = (place.node, place.must_end);
                self.advance_preempt(PreemptInput::RoomChosen { pod: &uid, node, must_end, since });
                // It is told that room is kept for it.
                self.cycle.decide_waiting_again(&uid);
            }
            self.cycle.queue.charge_turn(self.cycle.classes.take_steps());
        }
        self.cycle.note_passed(None);
    }

    /// Finds anew who has to end on the node that is kept for the pod; if it can't have the pod any more, the room is lost.
    fn adapt_room(&mut self, uid: &Uid) {
        match self.cycle.room_as_it_stands(uid) {
            Some((place, since)) => {
                let (node, must_end) = (place.node, place.must_end);
                self.advance_preempt(PreemptInput::RoomChosen { pod: uid, node, must_end, since });
            }
            None => self.end_room(uid, RoomCourse::Lost),
        }
    }

    /// Something has changed on a node: who has to end there is found anew for the pods that room is kept for, before others are decided.
    pub(in crate::scheduling::scheduler) fn adapt_rooms_on(&mut self, node: &NodeName) {
        if self.cycle.snapshot.nominations().is_empty() || !self.keeps_rooms() {
            return;
        }
        for uid in self.cycle.snapshot.nominations().on_node(node) {
            if self.cycle.snapshot.nominations().room_since(&uid).is_some() {
                self.adapt_room(&uid);
            }
        }
    }

    /// The node is gone, and the room there with it.
    pub(in crate::scheduling::scheduler) fn lose_rooms_on(&mut self, node: &NodeName) {
        self.cycle.kept_rooms.forget(node);
        for uid in self.cycle.snapshot.nominations().on_node(node) {
            if self.keeps_rooms() && self.cycle.snapshot.nominations().room_since(&uid).is_some() {
                self.end_room(&uid, RoomCourse::Lost);
            }
        }
    }

    fn end_room(&mut self, uid: &Uid, course: RoomCourse) {
        self.advance_preempt(PreemptInput::RoomEnded(uid, course));
        self.cycle.decide_waiting_again(uid);
    }

    /// The pod's decision was taken back: the room that its status states is kept on.
    pub(in crate::scheduling::scheduler) fn keep_room_again(&mut self, uid: &Uid) {
        let is_kept = |status: RoomStatus| status.course == RoomCourse::Kept;
        if let Some(entry) = self.cycle.pods.get(uid)
            && entry.info.status.room.is_some_and(is_kept)
        {
            let info = entry.info.clone();
            self.cycle.snapshot.nominate(&info);
        }
    }
}
