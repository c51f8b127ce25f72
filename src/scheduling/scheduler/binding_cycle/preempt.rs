//! Preempting pods for one that no node would have: feeding what happens to preemptions, and carrying out what they request.
//!
//! In which order nominations are written and victims deleted is decided in [`preempt`](crate::scheduling::preempt), and nowhere here.

use std::sync::Arc;

use super::BindingCycle;
use crate::scheduling::{
    decide::fit_error::FitError,
    effect::Effect,
    model::{measure::Measure, name::Uid, pod::is_older},
    plan::kept_nodes,
    preempt::{Need, Nominated, PreemptInput, PreemptRequest, PreemptView},
    scheduler::scheduling_cycle::{
        SchedulingCycle, alike::Versions, kept_rooms::RoomView, scheduling_queue::PodProgress,
    },
};

impl BindingCycle {
    /// Takes in what happened to a preemption, and carries out what is requested for that.
    pub(in crate::scheduling::scheduler) fn advance_preempt(&mut self, input: PreemptInput<'_>) {
        let mut input = Some(input);
        while let Some(happened) = input.take() {
            let SchedulingCycle { snapshot, pods, preempting, duty, .. } = &mut self.cycle;
            let view = PreemptView { snapshot, pods, course: duty.course };
            for request in preempting.handle(happened, &view) {
                // Only the last of them is answered at once.
                input = self.carry_out_preempt(request);
            }
        }
    }

    fn carry_out_preempt(&mut self, request: PreemptRequest) -> Option<PreemptInput<'static>> {
        let now = self.cycle.snapshot.now();
        match request {
            PreemptRequest::Keep { pod, node, victims, room_since } => {
                if let Some(entry) = self.cycle.pods.get(&pod) {
                    self.cycle.snapshot.keep_for(&entry.info, &node, victims, room_since);
                }
            }
            PreemptRequest::EndNomination(uid) => self.cycle.snapshot.end_nomination(&uid),
            PreemptRequest::Nominate(pod, Nominated { node, room }) => {
                // What is decided of its room counts from now on, whatever its status states until the answer.
                if let Some(entry) = self.cycle.pods.get_mut(&pod.uid) {
                    let status = Arc::make_mut(&mut entry.info.status);
                    status.room = room.or(status.room);
                }
                self.cycle.outbox.effects.push(Effect::Nominate { pod, node, room });
            }
            PreemptRequest::NoteStated { pod, stated, resource_version } => {
                let entry = self.cycle.pods.get_mut(&pod);
                let is_behind = |known: &str| is_older(known, &resource_version);
                if let Some(entry) = entry.filter(|entry| is_behind(&entry.info.resource_version)) {
                    entry.info.resource_version = resource_version.into();
                    let status = Arc::make_mut(&mut entry.info.status);
                    status.nominated = stated.node;
                    status.room = stated.room.or(status.room);
                }
            }
            PreemptRequest::NoteNominationWritten(uid) => self.cycle.snapshot.note_nomination_written(&uid),
            PreemptRequest::Confirm(pod) => {
                let waits = matches!(
                    self.cycle.queue.progress(&pod.uid),
                    PodProgress::Waiting(_)
                        | PodProgress::OverQuota
                        | PodProgress::Queued
                        | PodProgress::BackingOff
                );
                let needs = waits && self.cycle.decide(&pod.uid, &self.flows).is_err();
                let need = if needs { Need::Still } else { Need::NoLonger };
                return Some(PreemptInput::Confirmed(pod, need));
            }
            PreemptRequest::Delete { pod, node, preemptor } => {
                self.cycle.outbox.effects.push(Effect::Preempt { pod, node, preemptor });
            }
            // One that is just being locked or bound is deleted once it is bound.
            PreemptRequest::BackOffIfNotServed(uid, node) => {
                if !self.flows.serves(&node, &uid) {
                    self.back_off(&uid, now);
                }
            }
            PreemptRequest::BackOffIfWaiting(uid) => {
                if self.cycle.stop_waiting(&uid) {
                    self.back_off(&uid, now);
                }
            }
            PreemptRequest::DecideAgain(uid) => self.cycle.decide_waiting_again(&uid),
            PreemptRequest::WakeKept => {
                for uid in self.cycle.queue.requeue.kept() {
                    self.cycle.decide_waiting_again(&uid);
                }
            }
        }
        None
    }

    /// Looks for pods of lower priority that can go for a pod that fits nowhere, and begins to preempt them. The error says where that
    /// makes no room.
    pub(in crate::scheduling::scheduler) fn preempt(&mut self, uid: &Uid, error: FitError) -> FitError {
        let chosen = self.cycle.choose_victims(uid, &error);
        let tried = match &chosen {
            Some(Ok((_, candidate))) => Some(candidate.victims.len()),
            Some(Err(no_room)) => no_room.was_tried().then_some(0),
            None => None,
        };
        self.cycle.outbox.measures.extend(tried.map(Measure::Preemption));
        let error = match chosen {
            Some(Ok((priority, candidate))) => {
                self.advance_preempt(PreemptInput::Chosen { pod: uid, priority, candidate });
                error
            }
            Some(Err(no_room)) => {
                self.advance_preempt(PreemptInput::NoneChosen(uid));
                error.beside_preemption(no_room)
            }
            None => {
                self.advance_preempt(PreemptInput::NoneChosen(uid));
                error
            }
        };
        error.beside_room(RoomView::of(&self.cycle).room(uid))
    }

    /// Why the pod still waits, with what preemption makes of it; `None`: it could preempt others by now, and is to be decided again.
    /// A nomination that makes no room any more is withdrawn.
    pub(in crate::scheduling::scheduler) fn still_waits(
        &mut self,
        uid: &Uid,
        error: FitError,
    ) -> Option<FitError> {
        let error = match self.cycle.choose_victims(uid, &error) {
            None => error,
            Some(Ok(_)) => return None,
            Some(Err(no_room)) => error.beside_preemption(no_room),
        };
        self.advance_preempt(PreemptInput::NoneChosen(uid));
        Some(error.beside_room(RoomView::of(&self.cycle).room(uid)))
    }

    /// Withdraws nominations so that a pod of their priority finds room that fits nowhere else; whether there is room now.
    pub(in crate::scheduling::scheduler) fn take_kept(&mut self, uid: &Uid, error: &FitError) -> bool {
        let Some(demand) = self.cycle.demand(uid).filter(|_| error.is_beside_nominated()) else {
            return false;
        };
        let gangs = self.gang_view();
        let mates = |pod: &Uid| gangs.unbound_mates(pod);
        let kept = self.cycle.preempting.kept_long_enough(&demand, mates, &self.cycle.preempt_view());
        let before = Versions::of(&self.cycle.snapshot);
        let found = kept_nodes::choose(&demand, kept, self.cycle.classes.counts(), &mut self.cycle.snapshot);
        self.cycle.queue.rejections.keep(before, &self.cycle.snapshot);
        for nominee in found.iter().flatten() {
            self.advance_preempt(PreemptInput::Withdrawn(nominee));
            self.cycle.decide_waiting_again(nominee);
        }
        found.is_some()
    }
}
