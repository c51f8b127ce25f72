//! What a node's device plugin owes, and what becomes of a node whose plugin is silent.
//!
//! A plugin is never asked: what is known of it is what it writes on pods, and how long it has not.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{
    line::{Line, USUAL},
    lock::NodeLocks,
    remnant::Remnants,
    request::NodeFlowRequest,
    view::{Course, NodeView},
};
use crate::{
    device::{Answer, Lock},
    scheduling::{
        model::{
            name::Uid,
            node::NodeInfo,
            outcome::WithdrawOutcome,
            pod::{Binding, Placer, PodInfo, PodKey, Stage},
        },
        world::{
            ledger::{Charge, Commitment},
            node_state::Agent,
        },
    },
};

/// How long a node is held back after its plugin has left its first pod without an answer.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(30);

/// So long after a pod is gone its node's plugin may still be at work for it: it gives some containers their cards, each in
/// seconds, and finds its pod by the node's lock or by its annotations, which by then would be the next pod's.
const CLEARANCE: SignedDuration = SignedDuration::from_secs(15);

/// A plugin that has left a pod without an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Silence {
    /// How many times in a row.
    times: u32,
    /// Until when the node is held back; `None`: it still owes an answer.
    until: Option<Timestamp>,
}

impl Silence {
    /// After this finding: a plugin that owed an answer no longer owes it, or one that was tried again owes another.
    fn next(before: Option<Self>, owes: Owes, expiry: SignedDuration, now: Timestamp) -> Option<Self> {
        match (before, owes) {
            (None, Owes::Nothing) => None,
            (None, Owes::TooLong) => Some(Self { times: 1, until: None }),
            (Some(Self { times, until: Some(_) }), Owes::TooLong) => {
                Some(Self { times: times.saturating_add(1), until: None })
            }
            (Some(Self { times, until: None }), Owes::Nothing) => {
                let until = now.checked_add(pause(times, expiry)).unwrap_or(now);
                Some(Self { times, until: Some(until) })
            }
            (same, _) => same,
        }
    }

    fn holds_back(self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| until > now)
    }
}

/// How long after the silence of a plugin its node is tried again: doubled each time, up to the time that it is given to answer.
fn pause(times: u32, expiry: SignedDuration) -> SignedDuration {
    let longest = expiry.max(FIRST_PAUSE);
    let doubled = 1_i32.checked_shl(times.saturating_sub(1)).filter(|factor| *factor > 0);
    doubled.and_then(|factor| FIRST_PAUSE.checked_mul(factor)).map_or(longest, |pause| pause.min(longest))
}

/// What a plugin owes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Owes {
    /// Nothing, or not for long.
    Nothing,
    /// An answer for too long.
    TooLong,
}

/// What is known of a node's device plugin.
#[derive(Debug)]
pub(super) struct NodeAgent {
    /// Since it has left a pod without an answer, until it answers one.
    silence: Option<Silence>,
    /// Until when it may be at work for a pod that is gone.
    vacated: Option<Timestamp>,
    /// Dead pods whose assignments it may still take.
    remnants: Remnants,
    /// How often its silence was reported of each pod.
    reported: BTreeMap<Uid, u32>,
    /// Whether it answers, as it was requested to be noted last.
    noted: Agent,
}

impl Default for NodeAgent {
    fn default() -> Self {
        Self {
            silence: None,
            vacated: None,
            remnants: Remnants::default(),
            reported: BTreeMap::new(),
            noted: Agent::Answering,
        }
    }
}

impl NodeAgent {
    /// Whether nothing is remembered.
    pub(super) fn is_empty(&self) -> bool {
        let Self { silence, vacated, remnants, reported, noted } = self;
        silence.is_none()
            && vacated.is_none()
            && remnants.is_empty()
            && reported.is_empty()
            && *noted == Agent::Answering
    }

    /// Until when the plugin may be at work for a pod that is gone.
    pub(super) fn vacated(&self) -> Option<Timestamp> {
        self.vacated
    }

    /// Until then the plugin may be at work for a pod that is gone.
    pub(super) fn vacate(&mut self, until: Timestamp) {
        self.vacated = Some(until);
    }

    fn is_vacated(&self, view: &NodeView<'_>) -> bool {
        self.vacated.is_some_and(|until| until > view.now)
    }

    /// Whether the plugin owes an answer for a bound pod, may still be at work for one that was deleted, or could take a dead
    /// one's assignment: no other is bound there meanwhile, since it would mix both up.
    pub(super) fn is_busy(&self, locks: &NodeLocks, view: &NodeView<'_>) -> bool {
        let is_at_work = |(uid, charge): (&Uid, &Charge)| {
            locks.is_in_flight(uid, charge, view) || lingers(uid, charge, view)
        };
        self.is_vacated(view)
            || self.remnants.pending_since().next().is_some()
            || view.charges().any(is_at_work)
    }

    /// Whether the plugin is busy and its answer can't be expected soon: it may be at work for a pod that is gone or is to go, or has
    /// owed an answer for longer than is usual. A plugin that serves a living pod in the usual time is busy, and not stuck.
    pub(super) fn is_stuck(&self, locks: &NodeLocks, view: &NodeView<'_>) -> bool {
        let is_late = |charge: &Charge| charge.since.checked_add(USUAL).is_ok_and(|at| at <= view.now);
        let leaves = |uid: &Uid| view.pods.pod(uid).is_some_and(|pod| pod.lifetime.leaving.is_some());
        self.is_vacated(view)
            || view.charges().any(|(uid, charge)| {
                let in_flight = locks.is_in_flight(uid, charge, view);
                (in_flight && (is_late(charge) || leaves(uid))) || lingers(uid, charge, view)
            })
    }

    /// A pod is gone. If the plugin was at work for it, nothing will show when it is done: it is given time.
    pub(super) fn miss_pod(&mut self, uid: &Uid, (line, locks): (&Line, &NodeLocks), view: &NodeView<'_>) {
        let charge = view.ledger.get(uid).filter(|charge| charge.node == *view.name);
        let Some(charge) = charge else { return };
        let may_be_bound =
            line.served.as_ref().is_some_and(|served| served.uid == *uid && served.bindings > 0);
        let at_work = locks.is_in_flight(uid, charge, view) || may_be_bound;
        let cleared = view.now.checked_add(CLEARANCE).ok().filter(|_| at_work);
        let until = cleared.or_else(|| goes_by(uid, charge, view)).filter(|until| *until > view.now);
        self.vacated = until.or(self.vacated);
    }

    /// A pod was seen that holds something of the node: it may have died before its allocation.
    pub(super) fn see_holding(&mut self, pod: &PodInfo, view: &NodeView<'_>) {
        let holding = pod.holding.as_ref().filter(|holding| holding.binding == Binding::Bound);
        let Some(holding) = holding else { return };
        let dead =
            pod.stage == Stage::Ended || (pod.stage == Stage::Pending && pod.lifetime.leaving.is_some());
        if dead && !holding.takeable.is_empty() {
            self.remnants.note(&pod.key, &holding.takeable, view.now);
        } else {
            self.remnants.remove(&pod.key.uid);
        }
    }

    /// A pod that was on the node is gone or has ended.
    pub(super) fn lose_pod(&mut self, uid: &Uid) {
        self.remnants.remove(uid);
    }

    /// Withdraws everything that dead pods of the node still carry.
    pub(super) fn withdraw(&mut self, view: &NodeView<'_>, requests: &mut Vec<NodeFlowRequest>) {
        if view.course == Course::Onward {
            let due = self.remnants.begin_due(view.now).into_iter();
            requests.extend(due.map(|(pod, profiles)| NodeFlowRequest::Withdraw { pod, profiles }));
        }
    }

    /// What came of withdrawing what a dead pod carries; where that is not known, the pod is read.
    pub(super) fn withdrawn(
        &mut self,
        pod: &PodKey,
        outcome: WithdrawOutcome,
        view: &NodeView<'_>,
    ) -> Option<NodeFlowRequest> {
        let known = self.remnants.answered(&pod.uid, outcome, view.now);
        let in_doubt = known && outcome == WithdrawOutcome::Failed;
        in_doubt.then(|| NodeFlowRequest::ReadPod(pod.clone()))
    }

    /// Finds out whether the plugin is silent for too long: then that is reported, after a pause that doubles each time, and no pod
    /// is sent there until it answers. When the pod that it owes an answer is gone, the node is tried again, each time after a longer
    /// pause. Returns whether the plugin answers, if that has changed.
    pub(super) fn watch(
        &mut self,
        locks: &NodeLocks,
        view: &NodeView<'_>,
        requests: &mut Vec<NodeFlowRequest>,
    ) -> Option<Agent> {
        let (now, expiry) = (view.now, view.lock_expiry);
        self.vacated.take_if(|until| *until <= now);
        let is_here = |uid: &Uid| view.ledger.get(uid).is_some_and(|charge| charge.node == *view.name);
        self.reported.retain(|uid, _| is_here(uid));
        let expired = |since: &Timestamp| since.checked_add(expiry).is_ok_and(|at| at <= now);
        let awaited = owed(locks, view);
        let late = awaited.iter().any(|(_, since)| expired(since))
            || self.remnants.pending_since().any(|since| expired(&since));
        let owes = if late { Owes::TooLong } else { Owes::Nothing };
        requests.extend(awaited.iter().filter_map(|(uid, since)| self.report(uid, *since, view)));
        self.silence = Silence::next(self.silence, owes, expiry, now);
        let silent = self.silence.is_some_and(|silence| silence.holds_back(now));
        let agent = if silent { Agent::Silent } else { Agent::Answering };
        (std::mem::replace(&mut self.noted, agent) != agent).then_some(agent)
    }

    /// When the silence is to be reported of a pod the next time.
    fn report_due(&self, uid: &Uid, since: Timestamp, view: &NodeView<'_>) -> Option<Timestamp> {
        let reported = self.reported.get(uid).copied().unwrap_or_default();
        since.checked_add(view.lock_expiry.checked_mul(1_i32.checked_shl(reported)?)?).ok()
    }

    /// Reports the silence of a pod if that is due.
    fn report(&mut self, uid: &Uid, since: Timestamp, view: &NodeView<'_>) -> Option<NodeFlowRequest> {
        let pod = view.pods.pod(uid)?;
        self.report_due(uid, since, view).filter(|due| *due <= view.now)?;
        *self.reported.entry(uid.clone()).or_default() += 1;
        Some(NodeFlowRequest::TellSilent(pod.key.clone()))
    }

    /// The node was seen: where the lock of one of these pods is free, its plugin has answered, which ends the silence.
    pub(super) fn hear_unlock(&mut self, awaited: &[Uid], locks: &NodeLocks, view: &NodeView<'_>) {
        let is_free = |info: &NodeInfo, charge: &Charge| {
            info.locks_of(charge.profiles()).all(|lock| lock.state == Lock::Free)
        };
        let answered = |uid: &Uid| {
            let charge = view.ledger.get(uid).filter(|charge| charge.node == *view.name);
            charge.is_some_and(|charge| {
                !locks.is_in_flight(uid, charge, view) && view.info.is_some_and(|info| is_free(info, charge))
            })
        };
        if awaited.iter().any(answered) {
            self.silence = None;
        }
    }

    /// What a pod holds has changed: an answer of one of the node's plugins ends its silence, and a failure is reported once.
    pub(super) fn hear_answers(
        &mut self,
        pod: &PodInfo,
        before: Option<&Charge>,
        charge: &Charge,
    ) -> Option<NodeFlowRequest> {
        if charge.commitment != Commitment::Bound {
            return None;
        }
        let was = |profile| before.and_then(|before| before.answer_of(profile));
        let mut answers = charge.allocations.iter().map(|one| (was(&one.profile), one.answer));
        let is_answer = |answer| matches!(answer, Answer::Succeeded | Answer::Failed);
        if answers.any(|(was, is)| was == Some(Answer::Awaited) && is_answer(is)) {
            self.silence = None;
        }
        let failed_before = before.is_some_and(|before| before.has_answer(Answer::Failed));
        let is_ours = pod.stage == Stage::Pending && pod.placer == Placer::Berth;
        let fails = !failed_before && charge.has_answer(Answer::Failed) && is_ours;
        fails.then(|| NodeFlowRequest::TellFailedAllocation(pod.key.clone()))
    }

    /// The node is gone.
    pub(super) fn forget_silence(&mut self) {
        self.silence = None;
    }

    /// When silence is to be reported the next time, or the node tried again.
    pub(super) fn deadlines(&self, locks: &NodeLocks, view: &NodeView<'_>) -> Vec<Timestamp> {
        let owed = owed(locks, view);
        let known = owed.iter().filter(|(uid, _)| view.pods.pod(uid).is_some());
        let reports = known.filter_map(|(uid, since)| self.report_due(uid, *since, view));
        let late = owed.iter().filter_map(|(_, since)| since.checked_add(USUAL).ok());
        let going = view.charges().filter_map(|(uid, charge)| goes_by(uid, charge, view));
        let expiry = view.lock_expiry;
        let silent = self.remnants.pending_since().filter_map(|since| since.checked_add(expiry).ok());
        let again = self.silence.and_then(|silence| silence.until);
        let times = reports.chain(late).chain(going).chain(silent).chain(self.remnants.deadlines());
        times.chain(again).chain(self.vacated).collect()
    }
}

/// The pods of which the plugin owes an answer, and since when.
fn owed<'a>(locks: &NodeLocks, view: &NodeView<'a>) -> Vec<(&'a Uid, Timestamp)> {
    let in_flight = view.charges().filter(|(uid, charge)| locks.is_in_flight(uid, charge, view));
    in_flight.map(|(uid, charge)| (uid, charge.since)).collect()
}

/// Whether a pod that was withdrawn may still be asked for: its kubelet has the time that the pod has to go.
fn lingers(uid: &Uid, charge: &Charge, view: &NodeView<'_>) -> bool {
    goes_by(uid, charge, view).is_some_and(|at| at > view.now)
}

/// When a withdrawn pod, which its kubelet has not ended yet, is to be gone, and its node's plugin done if it was at work for it.
fn goes_by(uid: &Uid, charge: &Charge, view: &NodeView<'_>) -> Option<Timestamp> {
    let withdrawn = charge.has_answer(Answer::Withdrawn)
        && charge.commitment == Commitment::Bound
        && charge.stage == Stage::Pending;
    view.pods.pod(uid).filter(|_| withdrawn)?.lifetime.leaving.as_ref()?.checked_add(CLEARANCE).ok()
}
