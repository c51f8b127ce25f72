//! Saying why pods wait: of each once, in order, and again where it was not heard.
//!
//! `Conditions` is a state machine. It takes [`ConditionInput`]s in, reads pods through a [`ConditionView`], and hands effects out. Reasons are
//! compared with each other; the text of a pod's condition is passed on to the adapter that writes it, and is only known again here.

use std::collections::{BTreeSet, HashMap};

use jiff::{SignedDuration, Timestamp};

use super::SchedulingCycle;
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
struct PodScheduledCondition {
    /// Why it waits.
    reason: Option<PendingReason>,
    /// What was said last, and what its condition says for that.
    said: Option<(PendingReason, String)>,
    telling: Telling,
}

/// What is read of the pods.
#[derive(Clone, Copy)]
pub(in crate::scheduling::scheduler) struct ConditionView<'a> {
    pub(in crate::scheduling::scheduler) pods: &'a dyn PodLister,
    pub(in crate::scheduling::scheduler) preempting: &'a Preempting,
}

/// Something that happened to what is said of pods.
#[derive(Debug)]
pub(in crate::scheduling::scheduler) enum ConditionInput<'a> {
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
pub(in crate::scheduling::scheduler) struct Conditions {
    pods: HashMap<Uid, PodScheduledCondition>,
    /// The pods whose conditions could not be written, and when that is tried again.
    retries: BTreeSet<(Timestamp, Uid)>,
}

impl Conditions {
    /// Takes in what happened; what is to be said now.
    pub(in crate::scheduling::scheduler) fn handle(
        &mut self,
        input: ConditionInput<'_>,
        view: &ConditionView<'_>,
    ) -> Vec<Effect> {
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
    pub(in crate::scheduling::scheduler) fn reason(&self, pod: &str) -> Option<&PendingReason> {
        self.pods.get(pod)?.reason.as_ref()
    }

    /// The pods that were refused and have found no place since, and why; in no order.
    pub(in crate::scheduling::scheduler) fn reasons(&self) -> impl Iterator<Item = (&Uid, &PendingReason)> {
        self.pods.iter().filter_map(|(pod, condition)| Some((pod, condition.reason.as_ref()?)))
    }

    /// The pod has found a place: it waits for nothing.
    pub(in crate::scheduling::scheduler) fn end(&mut self, pod: &Uid) {
        if let Some(condition) = self.pods.get_mut(pod) {
            condition.reason = None;
        }
    }

    /// The pod is gone.
    pub(in crate::scheduling::scheduler) fn forget(&mut self, pod: &Uid) {
        self.pods.remove(pod);
    }

    /// When something is said again.
    pub(in crate::scheduling::scheduler) fn deadline(&self) -> Option<Timestamp> {
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
        let (pod, resource_version) = (pod.key.clone(), pod.resource_version.to_string());
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

impl SchedulingCycle {
    /// An attempt of the pod has failed for this reason, which is said.
    pub(in crate::scheduling::scheduler) fn tell_unschedulable(
        &mut self,
        pod: &Uid,
        reason: impl Into<PendingReason>,
    ) {
        let reason = reason.into();
        if let Some(entry) = self.pods.get(pod) {
            self.queue.note_refused(&entry.info.key, &reason, self.snapshot.now());
        }
        self.advance_conditions(ConditionInput::Waits(pod, reason));
    }

    /// Feeds the conditions with what happened, and sends what is to be said for it.
    pub(in crate::scheduling::scheduler) fn advance_conditions(&mut self, input: ConditionInput<'_>) {
        if let ConditionInput::Told { pod, message, outcome: TellOutcome::Done, .. } = &input {
            self.pods.tell(pod, message);
        }
        let view = ConditionView { pods: &self.pods, preempting: &self.preempting };
        self.outbox.effects.extend(self.conditions.handle(input, &view));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::scheduling::{fixtures, model::kind::Kind, scheduler::scheduling_cycle::pods::Pods};

    /// A pod that waits, and what is said of it.
    struct Case {
        pods: Pods,
        preempting: Preempting,
        conditions: Conditions,
    }

    impl Case {
        fn new(told: Option<&str>) -> Self {
            let mut case = Self {
                pods: Pods::default(),
                preempting: Preempting::new(None),
                conditions: Conditions::default(),
            };
            case.see(told);
            case
        }

        /// The pod is seen with this condition.
        fn see(&mut self, told: Option<&str>) {
            let mut pod = fixtures::pod("p", Claim::unreadable("why".to_owned()));
            Arc::make_mut(&mut pod.status).told = told.map(str::to_owned);
            self.pods.see(Box::new(pod), Timestamp::UNIX_EPOCH);
        }

        /// What the condition said before, and the reason that is said now.
        fn handle(&mut self, input: ConditionInput<'_>) -> Vec<(Option<String>, PendingReason)> {
            let view = ConditionView { pods: &self.pods, preempting: &self.preempting };
            let said = |effect| match effect {
                Effect::TellUnschedulable { told, reason, .. } => (told, reason),
                other => panic!("{other:?}"),
            };
            self.conditions.handle(input, &view).into_iter().map(said).collect()
        }

        fn waits(&mut self, reason: PendingReason) -> Vec<(Option<String>, PendingReason)> {
            self.handle(ConditionInput::Waits(&"p".into(), reason))
        }

        fn told(&mut self, message: &str, outcome: TellOutcome) -> Vec<(Option<String>, PendingReason)> {
            let message = message.to_owned();
            self.handle(ConditionInput::Told { pod: &"p".into(), message, outcome, now: at(0) })
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn one() -> PendingReason {
        PendingReason::Lists(vec![Kind::Reservation])
    }

    fn other() -> PendingReason {
        PendingReason::Request("unreadable".into())
    }

    #[test]
    fn a_reason_is_said_once_until_it_or_the_condition_changes() {
        let mut case = Case::new(Some("as before a restart"));
        assert_eq!(case.waits(one()), [(Some("as before a restart".to_owned()), one())]);
        assert_eq!(case.waits(one()), [], "it is being said");
        assert_eq!(case.told("as before a restart", TellOutcome::Done), []);
        assert_eq!(case.waits(one()), [], "its condition says just this");
        assert_eq!(case.handle(ConditionInput::Freed(&"p".into())), []);
        assert_eq!(case.waits(other()), [(Some("as before a restart".to_owned()), other())]);
        case.see(Some("unreadable"));
        assert_eq!(case.told("unreadable", TellOutcome::Done), []);
        case.see(Some("another program's words"));
        let again = [(Some("another program's words".to_owned()), other())];
        assert_eq!(case.handle(ConditionInput::Freed(&"p".into())), again);
    }

    #[test]
    fn a_reason_that_comes_up_meanwhile_is_said_next() {
        let mut case = Case::new(None);
        assert_eq!(case.waits(one()), [(None, one())]);
        assert_eq!(case.waits(other()), []);
        case.see(Some("one"));
        assert_eq!(case.told("one", TellOutcome::Done), [(Some("one".to_owned()), other())]);
    }

    #[test]
    fn what_was_not_heard_is_said_again_when_its_time_has_come() {
        let mut case = Case::new(None);
        case.waits(one());
        assert_eq!(case.told("", TellOutcome::Failed { wait: SignedDuration::from_secs(5) }), []);
        assert_eq!(case.conditions.deadline(), Some(at(5)));
        assert_eq!(case.waits(other()), [], "the API server asks to wait");
        assert_eq!(case.handle(ConditionInput::TimePassed(at(4))), []);
        assert_eq!(case.handle(ConditionInput::TimePassed(at(5))), [(None, other())]);
        assert_eq!(case.conditions.deadline(), None);
    }

    #[test]
    fn nothing_is_said_of_a_pod_that_has_found_a_place_or_is_gone() {
        let mut case = Case::new(None);
        case.waits(one());
        case.conditions.end(&"p".into());
        assert_eq!(case.told("one", TellOutcome::Failed { wait: SignedDuration::ZERO }), []);
        assert_eq!(case.handle(ConditionInput::TimePassed(at(1))), []);
        case.conditions.forget(&"p".into());
        case.pods.remove(&"p".into());
        assert_eq!(case.waits(one()), []);
        assert!(case.conditions.pods.is_empty(), "nothing is kept of it");
    }
}
