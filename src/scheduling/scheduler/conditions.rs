//! Saying why pods wait: of each once, in order, and again where it was not heard.
//!
//! `Conditions` is a state machine. It takes [`ConditionInput`]s in, reads pods through a [`ConditionView`], and hands effects out. Reasons are
//! compared with each other; the text of a pod's condition is passed on to the adapter that writes it, and is only known again here.

use std::collections::{BTreeSet, HashMap};

use jiff::{SignedDuration, Timestamp};

use super::Scheduler;
use crate::scheduling::{
    effect::Effect,
    event::TellOutcome,
    model::{name::Uid, pod::Claim},
    pending::PendingReason,
    preempt::Preempting,
    world::pod_lister::PodLister,
};

/// How long to wait before a word that failed is said again.
const PAUSE: SignedDuration = SignedDuration::from_secs(1);

/// How far saying why a pod waits is.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
enum Telling {
    /// Nothing is being said.
    #[default]
    Idle,
    /// This is being said.
    UnderWay(PendingReason),
    /// It failed; it is said again later.
    Pausing,
}

/// What is said of one pod.
#[derive(Debug, Default)]
struct Condition {
    /// Why it waits.
    reason: Option<PendingReason>,
    /// What was said last, and what its condition says for that.
    said: Option<(PendingReason, String)>,
    telling: Telling,
}

/// What is read of the pods.
#[derive(Clone, Copy)]
pub(super) struct ConditionView<'a> {
    pub(super) pods: &'a dyn PodLister,
    pub(super) preempting: &'a Preempting,
}

/// Something that happened to what is said of pods.
#[derive(Debug)]
pub(super) enum ConditionInput<'a> {
    /// The pod waits, for this reason.
    Waits(&'a Uid, PendingReason),
    /// The pod has been seen, or its status is no longer being written: what could not be said can be.
    Freed(&'a Uid),
    /// What came of saying why the pod waits: its condition has this text.
    Told { pod: &'a Uid, message: String, outcome: TellOutcome, now: Timestamp },
    /// The time may have come to say again what was not heard.
    TimePassed(Timestamp),
}

/// What is said of the pods that wait.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    pods: HashMap<Uid, Condition>,
    /// The pods whose conditions could not be written, and when that is tried again.
    retries: BTreeSet<(Timestamp, Uid)>,
}

impl Conditions {
    /// Takes in what happened; what is to be said now.
    pub(super) fn handle(&mut self, input: ConditionInput<'_>, view: &ConditionView<'_>) -> Vec<Effect> {
        match input {
            ConditionInput::Waits(pod, reason) => self.say(pod, reason, view).into_iter().collect(),
            ConditionInput::Freed(pod) => self.go_on(pod, view).into_iter().collect(),
            ConditionInput::Told { pod, message, outcome: TellOutcome::Done, .. } => {
                self.heard(pod, message, view).into_iter().collect()
            }
            ConditionInput::Told { pod, outcome: TellOutcome::Failed { wait }, now, .. } => {
                self.pause(pod, wait, now);
                Vec::new()
            }
            ConditionInput::TimePassed(now) => self.retry(now, view),
        }
    }

    /// Why the pod waits, where it was refused and has found no place since.
    pub(super) fn reason(&self, pod: &str) -> Option<&PendingReason> {
        self.pods.get(pod)?.reason.as_ref()
    }

    /// The pod has found a place: it waits for nothing.
    pub(super) fn end(&mut self, pod: &Uid) {
        if let Some(condition) = self.pods.get_mut(pod) {
            condition.reason = None;
        }
    }

    /// The pod is gone.
    pub(super) fn forget(&mut self, pod: &Uid) {
        self.pods.remove(pod);
    }

    /// When something is said again.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.retries.first().map(|(at, _)| *at)
    }

    fn say(&mut self, pod: &Uid, reason: PendingReason, view: &ConditionView<'_>) -> Option<Effect> {
        view.pods.pod(pod)?;
        self.pods.entry(pod.clone()).or_default().reason = Some(reason);
        self.go_on(pod, view)
    }

    /// Says what is to be said of a pod, unless that is under way or done.
    fn go_on(&mut self, uid: &Uid, view: &ConditionView<'_>) -> Option<Effect> {
        // Its status is being written: what is said now would be of an old version.
        if view.preempting.is_nominating(uid) {
            return None;
        }
        let pod = view.pods.pod(uid).filter(|pod| pod.claim != Claim::None)?;
        let condition = self.pods.get_mut(uid).filter(|condition| condition.telling == Telling::Idle)?;
        let (reason, told) = (condition.reason.clone()?, pod.status.told.clone());
        let is_said =
            |(said, message): &(PendingReason, String)| *said == reason && told.as_ref() == Some(message);
        if condition.said.as_ref().is_some_and(is_said) {
            return None;
        }
        condition.telling = Telling::UnderWay(reason.clone());
        let (pod, resource_version) = (pod.key.clone(), pod.resource_version.clone());
        let first = condition.said.is_none();
        Some(Effect::TellUnschedulable { pod, resource_version, told, first, reason })
    }

    fn heard(&mut self, pod: &Uid, message: String, view: &ConditionView<'_>) -> Option<Effect> {
        let condition = self.pods.get_mut(pod)?;
        if let Telling::UnderWay(reason) = std::mem::take(&mut condition.telling) {
            condition.said = Some((reason, message));
        }
        self.go_on(pod, view)
    }

    fn pause(&mut self, pod: &Uid, wait: SignedDuration, now: Timestamp) {
        let Some(condition) = self.pods.get_mut(pod) else { return };
        condition.telling = Telling::Pausing;
        let until = now.checked_add(wait.max(PAUSE)).unwrap_or(now);
        self.retries.insert((until, pod.clone()));
    }

    /// Says again what was not heard.
    fn retry(&mut self, now: Timestamp, view: &ConditionView<'_>) -> Vec<Effect> {
        let mut effects = Vec::new();
        while let Some((_, pod)) = self.retries.first().filter(|(at, _)| *at <= now).cloned() {
            self.retries.pop_first();
            if let Some(condition) = self.pods.get_mut(&pod) {
                condition.telling = Telling::Idle;
            }
            effects.extend(self.go_on(&pod, view));
        }
        effects
    }
}

impl Scheduler {
    /// Says why a pod waits.
    pub(super) fn tell_unschedulable(&mut self, pod: &Uid, reason: impl Into<PendingReason>) {
        self.advance_conditions(ConditionInput::Waits(pod, reason.into()));
    }

    /// Takes in what happened to what is said of pods, and says what is to be said now.
    pub(super) fn advance_conditions(&mut self, input: ConditionInput<'_>) {
        if let ConditionInput::Told { pod, message, outcome: TellOutcome::Done, .. } = &input
            && let Some(entry) = self.pods.get_mut(pod)
        {
            entry.info.status.told = Some(message.clone());
        }
        let view = ConditionView { pods: &self.pods, preempting: &self.preempting };
        self.outbox.effects.extend(self.reports.conditions.handle(input, &view));
    }
}
