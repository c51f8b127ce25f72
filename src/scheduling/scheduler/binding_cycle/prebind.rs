//! Binding the claims of pods that are decided: feeding what happens to it, and carrying out what it requests.
//!
//! What is written, when, and what becomes of a pod whose claims can't be bound is decided in [`prebind`](crate::scheduling::prebind), and nowhere here.

use jiff::Timestamp;

use super::BindingCycle;
use crate::scheduling::{
    decide::{
        class::HeldChange,
        fit_error::{Awaits, FitError},
    },
    effect::Effect,
    model::{
        name::{NodeName, Uid},
        prebind_step::PrebindStep,
    },
    plan::held_places,
    prebind::{PrebindInput, PrebindRequest, Wanted},
    scheduler::scheduling_cycle::{alike::Versions, scheduling_queue::PodProgress, views::prebind_view},
};

impl BindingCycle {
    /// Takes in what happened to claims, and carries out what is requested for that.
    pub(in crate::scheduling::scheduler) fn advance_prebind(&mut self, input: PrebindInput<'_>) {
        let view = prebind_view(&self.cycle);
        let now = self.cycle.snapshot.now();
        for request in self.prebinding.handle(input, &view) {
            match request {
                PrebindRequest::Write(pod, write) => {
                    self.cycle.outbox.effects.push(Effect::Prebind { pod, write });
                }
                PrebindRequest::Join(uid, node) => {
                    self.cycle.note_decided(&uid);
                    self.join_line(&uid, &node, now);
                }
                PrebindRequest::BackOff(uid, reason) => {
                    self.back_off(&uid, now);
                    self.cycle.tell_unschedulable(&uid, reason);
                }
                PrebindRequest::PutBehind(uid) => {
                    for mate in self.gang_view().unbound_mates(&uid) {
                        self.cycle.queue.order.put_behind(&mate, now);
                    }
                    self.cycle.queue.order.put_behind(&uid, now);
                }
                PrebindRequest::Tell(uid, reason) => self.cycle.tell_unschedulable(&uid, reason),
                PrebindRequest::WakeForHeld(node) => self.wake_for_held(&node),
                PrebindRequest::Linger(claim, allocation) => self.cycle.snapshot.linger(&claim, allocation),
            }
        }
    }

    /// The claims of a pod that is decided are to be bound; nothing is written before its turn comes.
    pub(in crate::scheduling::scheduler) fn begin_prebind(
        &mut self,
        uid: &Uid,
        node: NodeName,
        steps: Vec<PrebindStep>,
    ) {
        let Some(entry) = self.cycle.pods.get(uid) else { return };
        let (pod, seen) = (entry.info.key.clone(), entry.seen);
        self.cycle.queue.set_progress(uid, PodProgress::Prebinding(node.clone()));
        self.advance_prebind(PrebindInput::Decided { pod, seen, node, steps });
    }

    /// Takes the claims of pods as far as they go, of those for which something has changed or a time has come.
    pub(in crate::scheduling::scheduler) fn advance_prebinds(&mut self, now: Timestamp) {
        // What is taken back of a claim comes to an end before the claim is used again.
        self.advance_prebind(PrebindInput::UndosTouched);
        for uid in self.prebinding.take_touched(now) {
            self.advance_prebind(PrebindInput::Touched(&uid));
        }
        self.permit();
        self.advance_prebind(PrebindInput::UndosTouched);
    }

    /// The pods whose claims are bound, and those of their gangs, join the lines of their nodes.
    pub(in crate::scheduling::scheduler) fn permit(&mut self) {
        let gangs = self.gang_view();
        let permitted = self.prebinding.bound().filter(|uid| gangs.is_permitted(uid)).cloned().collect();
        self.advance_prebind(PrebindInput::Permitted(permitted));
    }

    /// Decides pods again that would have the node, were it not for pods that give their places there to others.
    pub(in crate::scheduling::scheduler) fn wake_for_held(&mut self, node: &NodeName) {
        let Some(slot) = self.cycle.snapshot.nodes.slot(node).filter(|_| self.prebinding.yields_on(node))
        else {
            return;
        };
        let view = prebind_view(&self.cycle);
        let holders = self.prebinding.yielding(i32::MAX, None, &self.cycle.queue.order, &view);
        let before = Versions::of(&self.cycle.snapshot);
        let state = held_places::without(holders.get(node), node, &mut self.cycle.snapshot);
        self.cycle.queue.rejections.keep(before, &self.cycle.snapshot);
        let Some(state) = state else { return };
        let (resources, now) = (self.cycle.snapshot.device_resources(), self.cycle.snapshot.now());
        for uid in self.cycle.classes.wake(slot, &state, resources, (HeldChange::Less, now)) {
            self.cycle.enqueue(&uid);
        }
    }

    /// Puts back as few pods as make room for one that fits nowhere, of those that give their places to others; whether there is room now.
    pub(in crate::scheduling::scheduler) fn take_held(&mut self, uid: &Uid, error: &FitError) -> bool {
        if matches!(error.awaits(), Awaits::Quota | Awaits::Comparison) || !self.prebinding.yields_any() {
            return false;
        }
        let Some(demand) = self.cycle.demand(uid) else { return false };
        let view = prebind_view(&self.cycle);
        let holders = self.prebinding.yielding(demand.priority, Some(uid), &self.cycle.queue.order, &view);
        let before = Versions::of(&self.cycle.snapshot);
        let put_back =
            held_places::choose(&demand, holders, &mut self.cycle.classes, &mut self.cycle.snapshot);
        self.cycle.queue.rejections.keep(before, &self.cycle.snapshot);
        for holder in put_back.iter().flatten() {
            self.advance_prebind(PrebindInput::PlaceTaken(holder));
        }
        put_back.is_some()
    }

    /// Has a pod wait whose namespace holds as much of the cluster's cards as it may while its pods wait for volumes; whether it is so.
    pub(in crate::scheduling::scheduler) fn waits_for_part(
        &mut self,
        uid: &Uid,
        wanted: Wanted<'_>,
        now: Timestamp,
    ) -> bool {
        let view = prebind_view(&self.cycle);
        let Some(reason) = self.prebinding.exceeded_part(uid, wanted, &view) else { return false };
        self.back_off(uid, now);
        self.cycle.tell_unschedulable(uid, reason);
        true
    }
}
