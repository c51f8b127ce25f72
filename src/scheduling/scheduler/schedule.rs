//! Deciding the pods of the queue: the best node and its cards are assumed for each, or why there is none is said.

use std::sync::Arc;

use jiff::Timestamp;

use super::{
    Scheduler,
    scheduling_cycle::{compare::left_to_compare, scheduling_queue::PodProgress},
};
use crate::scheduling::{
    decide::Decision,
    model::{
        measure::{Attempt, Measure},
        name::Uid,
        pod::{Ask, Claim},
    },
    node_flow::Course,
    pending::PendingReason,
    prebind::{PrebindInput, Wanted},
};

impl Scheduler {
    pub(super) fn schedule(&mut self, now: Timestamp) {
        if self.binding.cycle.duty.course != Course::Onward
            || self.binding.cycle.duty.directed
            || self.binding.cycle.awaits_lists()
        {
            return;
        }
        self.mend_gangs(now);
        while let Some(uid) = self.binding.pop(now) {
            let Some(entry) = self.binding.cycle.pods.get(&uid) else {
                continue;
            };
            let namespace = entry.info.key.namespace.clone();
            match entry.info.claim.clone() {
                Claim::None => self.binding.cycle.queue.set_progress(&uid, PodProgress::Idle),
                Claim::Unreadable(why) => {
                    self.binding.cycle.queue.set_progress(&uid, PodProgress::Idle);
                    self.binding.cycle.tell_unschedulable(&uid, PendingReason::Request(why.0.into()));
                }
                Claim::Place(ask) => self.place(&uid, &ask, now),
            }
            self.binding.cycle.queue.charge(&namespace, self.binding.cycle.classes.take_steps(), now);
        }
    }

    fn place(&mut self, uid: &Uid, ask: &Arc<Ask>, now: Timestamp) {
        // What earlier decisions have left to be compared is no longer asked for.
        self.binding.cycle.classes.counts().forget_unfinished();
        if self.binding.cycle.wait_for_lists(uid, now) {
            return;
        }
        if let Some(entry) = self.binding.cycle.pods.get(uid)
            && self.binding.cycle.queue.wait_for_comparison(&entry.info, &mut self.binding.cycle.classes)
        {
            return;
        }
        if self.binding.gang_view().is_in_gang(uid) && self.binding.waits_for_part(uid, Wanted::ForGang, now)
        {
            return;
        }
        if self.decide_in_gang(uid, now) {
            return;
        }
        let decided = match self.binding.cycle.decide_as_alike(uid, &self.binding.flows) {
            Err(error) if self.binding.take_held(uid, &error) || self.binding.take_kept(uid, &error) => {
                self.binding.cycle.decide(uid, &self.binding.flows)
            }
            decided => decided,
        };
        match decided {
            Ok(decision) if self.binding.waits_for_part(uid, Wanted::Decided(&decision), now) => {}
            Ok(Decision { node, allocations, steps }) => {
                self.binding.assume(uid, node.clone(), allocations, steps.clone(), now);
                self.binding.carry_on(uid, node, steps, now);
            }
            Err(error) => {
                let demand = || {
                    self.binding.cycle.snapshot.nominations().demand(&self.binding.cycle.pods.get(uid)?.info)
                };
                let left = left_to_compare(
                    demand,
                    &error,
                    &self.binding.cycle.snapshot,
                    &mut self.binding.cycle.classes,
                );
                if let Some(comparison) = left {
                    return self.binding.cycle.compare_beside(comparison, [uid]);
                }
                self.binding.cycle.outbox.measures.push(Measure::Attempt(Attempt::Unschedulable));
                self.binding.advance_prebind(PrebindInput::Unschedulable(uid));
                let error = self.binding.preempt(uid, error);
                if let Some(alike) = self.binding.cycle.alike(uid) {
                    self.binding.cycle.queue.rejections.note(alike, &error);
                }
                self.binding.cycle.wait(uid, ask, &error, now);
                self.binding.cycle.tell_unschedulable(uid, error);
            }
        }
    }
}
