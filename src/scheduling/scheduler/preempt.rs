//! Preempting pods for one that no node would have: feeding what happens to preemptions, and carrying out what they request.
//!
//! In which order nominations are written and victims deleted is decided in [`preempt`](crate::scheduling::preempt), and nowhere here.

use super::{PodProgress, Scheduler, alike::Versions};
use crate::scheduling::{
    decide::{fit_error::FitError, no_room::NoRoom},
    effect::Effect,
    model::{
        measure::Measure,
        name::{NodeName, Uid},
        pod::is_older,
    },
    plan::{
        kept_nodes,
        preemption::{self, Candidate},
    },
    preempt::{Need, PreemptInput, PreemptRequest, PreemptView},
};

impl Scheduler {
    /// What preemption reads of the cluster.
    pub(super) fn preempt_view(&self) -> PreemptView<'_> {
        let (snapshot, pods, flows, course) = (&self.snapshot, &self.pods, &self.flows, self.duty.course);
        PreemptView { snapshot, pods, flows, course }
    }

    /// Takes in what happened to a preemption, and carries out what is requested for that.
    pub(super) fn advance_preempt(&mut self, input: PreemptInput<'_>) {
        let mut input = Some(input);
        while let Some(happened) = input.take() {
            let (snapshot, pods, flows, course) = (&self.snapshot, &self.pods, &self.flows, self.duty.course);
            let view = PreemptView { snapshot, pods, flows, course };
            for request in self.preempting.handle(happened, &view) {
                // Only the last of them is answered at once.
                input = self.carry_out_preempt(request);
            }
        }
    }

    fn carry_out_preempt(&mut self, request: PreemptRequest) -> Option<PreemptInput<'static>> {
        let now = self.snapshot.now();
        match request {
            PreemptRequest::Keep { pod, node, victims } => {
                if let Some(entry) = self.pods.get(&pod) {
                    self.snapshot.keep_for(&entry.info, &node, victims);
                }
            }
            PreemptRequest::EndNomination(uid) => self.snapshot.end_nomination(&uid),
            PreemptRequest::Nominate(pod, node) => self.outbox.effects.push(Effect::Nominate { pod, node }),
            PreemptRequest::NoteStated { pod, node, resource_version } => {
                let entry = self.pods.get_mut(&pod);
                let is_behind = |known: &str| is_older(known, &resource_version);
                if let Some(entry) = entry.filter(|entry| is_behind(&entry.info.resource_version)) {
                    entry.info.resource_version = resource_version;
                    entry.info.status.nominated = node;
                }
            }
            PreemptRequest::NoteNominationWritten(uid) => self.snapshot.note_nomination_written(&uid),
            PreemptRequest::Confirm(pod) => {
                let waits = matches!(
                    self.queue.progress(&pod.uid),
                    PodProgress::Waiting(_)
                        | PodProgress::OverQuota
                        | PodProgress::Queued
                        | PodProgress::BackingOff
                );
                let needs = waits && self.decide(&pod.uid).is_err();
                let need = if needs { Need::Still } else { Need::NoLonger };
                return Some(PreemptInput::Confirmed(pod, need));
            }
            PreemptRequest::Delete { pod, node, preemptor } => {
                self.outbox.effects.push(Effect::Preempt { pod, node, preemptor });
            }
            PreemptRequest::BackOff(uid) => self.back_off(&uid, now),
            PreemptRequest::BackOffIfWaiting(uid) => {
                if self.stop_waiting(&uid) {
                    self.back_off(&uid, now);
                }
            }
            PreemptRequest::DecideAgain(uid) => self.decide_waiting_again(&uid),
            PreemptRequest::WakeKept => {
                for uid in self.queue.requeue.kept() {
                    self.decide_waiting_again(&uid);
                }
            }
        }
        None
    }

    /// Looks for pods of lower priority that can go for a pod that fits nowhere, and begins to preempt them. The error says where that
    /// makes no room.
    pub(super) fn preempt(&mut self, uid: &Uid, error: FitError) -> FitError {
        let chosen = self.choose_victims(uid, &error);
        let tried = match &chosen {
            Some(Ok((_, candidate))) => Some(candidate.victims.len()),
            Some(Err(no_room)) => no_room.was_tried().then_some(0),
            None => None,
        };
        self.outbox.measures.extend(tried.map(Measure::Preemption));
        match chosen {
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
        }
    }

    /// Why the pod still waits, with what preemption makes of it; `None`: it could preempt others by now, and is to be decided again.
    /// A nomination that makes no room any more is withdrawn.
    pub(super) fn still_waits(&mut self, uid: &Uid, error: FitError) -> Option<FitError> {
        let error = match self.choose_victims(uid, &error) {
            None => error,
            Some(Ok(_)) => return None,
            Some(Err(no_room)) => error.beside_preemption(no_room),
        };
        self.advance_preempt(PreemptInput::NoneChosen(uid));
        Some(error)
    }

    /// The pods that could go for a pod that fits nowhere, with its priority; `None`: it may preempt none now, or that is known already.
    fn choose_victims(&mut self, uid: &Uid, error: &FitError) -> Option<Result<(i32, Candidate), NoRoom>> {
        let demand = self.demand(uid)?;
        let rules = match self.preempting.rules_for(&demand, error, &self.preempt_view())? {
            Ok(rules) => rules,
            Err(no_room) => return Some(Err(no_room)),
        };
        let pods = &self.pods;
        let name = |pod: &Uid| pods.get(pod).map(|entry| entry.info.key.name.clone());
        let before = Versions::of(&self.snapshot);
        let counts = self.classes.counts();
        let chosen = preemption::choose(&demand, &mut self.snapshot, counts, rules, &name);
        self.queue.rejections.keep(before, &self.snapshot);
        let why = |hopeless| match preemption::exceeded_beside_nominated(&demand, &self.snapshot) {
            Some(exceeded) => NoRoom::Quota(exceeded),
            None => NoRoom::Hopeless(hopeless),
        };
        Some(chosen.map(|candidate| (demand.priority, candidate)).map_err(why))
    }

    /// Withdraws nominations so that a pod of their priority finds room that fits nowhere else; whether there is room now.
    pub(super) fn take_kept(&mut self, uid: &Uid, error: &FitError) -> bool {
        let Some(demand) = self.demand(uid).filter(|_| error.is_beside_nominated()) else { return false };
        let gangs = self.gang_view();
        let mates = |pod: &Uid| gangs.unbound_mates(pod);
        let kept = self.preempting.kept_long_enough(&demand, mates, &self.preempt_view());
        let before = Versions::of(&self.snapshot);
        let found = kept_nodes::choose(&demand, kept, self.classes.counts(), &mut self.snapshot);
        self.queue.rejections.keep(before, &self.snapshot);
        for nominee in found.iter().flatten() {
            self.advance_preempt(PreemptInput::Withdrawn(nominee));
            self.decide_waiting_again(nominee);
        }
        found.is_some()
    }

    /// Decides the pods again that this node is kept for and whose victims are gone: after a change of the node, it may make no room for them.
    pub(super) fn wake_nominated(&mut self, node: &NodeName) {
        for uid in self.snapshot.nominations().on_node(node) {
            if !self.preempting.awaits_victims(&uid, &self.preempt_view()) {
                self.decide_waiting_again(&uid);
            }
        }
    }

    /// Decides pods again that may preempt others, now that it is known which budgets there are.
    pub(super) fn end_wait_for_budgets(&mut self) {
        let waiting = self.pods.uids().filter(|uid| self.queue.order.has_set_aside(uid));
        let mut waiting: Vec<Uid> = waiting.cloned().collect();
        waiting.sort();
        for uid in waiting {
            self.decide_waiting_again(&uid);
        }
    }
}
