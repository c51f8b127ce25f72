//! Saying why a pod waits: once, in order, and again where it was not heard.

use jiff::{SignedDuration, Timestamp};

use super::SchedulingCycle;
use crate::{
    excerpt::{SUMMARY, shortened},
    scheduling::{
        decide::blame::Blame,
        effect::Effect,
        event::TellOutcome,
        model::{
            message::Message,
            name::Uid,
            pod::{Claim, PodKey},
        },
    },
};

/// How long to wait before a word that failed is said again.
const PAUSE: SignedDuration = SignedDuration::from_secs(1);

/// How far saying it is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(in crate::scheduling::scheduler) enum Telling {
    /// Nothing is being said.
    #[default]
    Idle,
    /// It is under way.
    UnderWay,
    /// It failed; it is said again later.
    Pausing,
}

impl SchedulingCycle {
    /// Says why a pod waits, unless its condition says just that.
    pub(in crate::scheduling::scheduler) fn tell_unschedulable(
        &mut self,
        uid: &Uid,
        blame: Blame,
        message: impl Into<Message>,
    ) {
        let (message, left_out) = message.into().told(self.reports.details);
        if let Some(entry) = self.pods.get_mut(uid) {
            entry.blame = Some(blame);
            // As its condition will have it, so that what was said is known again.
            let message = Some(shortened(message, SUMMARY));
            let is_new = entry.reason != message;
            entry.reason = message;
            let pod = entry.info.key.clone();
            let report = left_out.filter(|_| is_new).map(|message| Effect::ReportDetails { pod, message });
            self.outbox.effects.extend(report);
        }
        self.tell(uid);
    }

    /// What of a message is told of this pod; what is left out is reported to administrators.
    pub(in crate::scheduling::scheduler) fn worded(
        &mut self,
        pod: &PodKey,
        message: impl Into<Message>,
    ) -> String {
        let (message, left_out) = message.into().told(self.reports.details);
        let report = left_out.map(|message| Effect::ReportDetails { pod: pod.clone(), message });
        self.outbox.effects.extend(report);
        message
    }

    /// Says what is to be said of a pod, unless that is under way or done.
    pub(in crate::scheduling::scheduler) fn tell(&mut self, uid: &Uid) {
        // Its status is being written: what is said now would be of an old version.
        if self.preempting.is_nominating(uid) {
            return;
        }
        let Some(entry) = self.pods.get_mut(uid) else { return };
        let waits = entry.info.claim != Claim::None && entry.telling == Telling::Idle;
        let Some(message) = entry.reason.clone().filter(|_| waits) else { return };
        if entry.info.status.told.as_ref() == Some(&message) {
            return;
        }
        entry.telling = Telling::UnderWay;
        let (pod, resource_version) = (entry.info.key.clone(), entry.info.resource_version.clone());
        self.outbox.effects.push(Effect::TellUnschedulable { pod, resource_version, message });
    }

    pub(in crate::scheduling::scheduler) fn told(
        &mut self,
        pod: &PodKey,
        message: String,
        outcome: TellOutcome,
        now: Timestamp,
    ) {
        let Some(entry) = self.pods.get_mut(&pod.uid) else { return };
        match outcome {
            TellOutcome::Done => {
                entry.telling = Telling::Idle;
                entry.info.status.told = Some(message);
                self.tell(&pod.uid);
            }
            TellOutcome::Failed { wait } => {
                entry.telling = Telling::Pausing;
                let until = now.checked_add(wait.max(PAUSE)).unwrap_or(now);
                self.reports.retells.insert((until, pod.uid.clone()));
            }
        }
    }

    /// Says again what was not heard.
    pub(in crate::scheduling::scheduler) fn retell(&mut self, now: Timestamp) {
        while let Some((_, uid)) = self.reports.retells.first().filter(|(at, _)| *at <= now).cloned() {
            self.reports.retells.pop_first();
            if let Some(entry) = self.pods.get_mut(&uid) {
                entry.telling = Telling::Idle;
            }
            self.tell(&uid);
        }
    }
}
