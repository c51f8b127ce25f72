//! Pods that died before their node's agent served them: what they carry is withdrawn before the node serves anybody else.
//!
//! An agent that tells pods apart by their assignments alone would serve the next pod with a dead one's. This file must not know how
//! an assignment is withdrawn; the dialect does.

use jiff::{SignedDuration, Timestamp};

use super::{Course, Scheduler};
use crate::{
    device::{Answer, ProfileName},
    scheduling::{
        effect::Effect,
        event::WithdrawOutcome,
        model::{
            name::{NodeName, Uid},
            pod::{Binding, PodInfo, PodKey, Stage},
        },
        world::ledger::{Charge, Commitment},
    },
};

/// How long to wait before an assignment that could not be withdrawn is withdrawn again.
const PAUSE: SignedDuration = SignedDuration::from_secs(1);

/// How far withdrawing is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step {
    Due,
    UnderWay,
    /// It may have failed; it is tried again then.
    Pausing(Timestamp),
    Done,
}

/// A dead pod that still carries what the agent may take.
#[derive(Clone, Debug)]
pub(super) struct Remnant {
    pod: PodKey,
    /// The dialects of what it carries.
    profiles: Vec<ProfileName>,
    since: Timestamp,
    step: Step,
}

impl Scheduler {
    /// Takes in whether a pod has died before its allocation.
    pub(super) fn note_remains(&mut self, pod: &PodInfo, now: Timestamp) {
        let Some(holding) = pod.holding.as_ref().filter(|holding| holding.binding == Binding::Bound) else {
            return;
        };
        let dead = pod.stage == Stage::Ended || (pod.stage == Stage::Pending && pod.leaving.is_some());
        if dead && !holding.takeable.is_empty() {
            let profiles = holding.takeable.clone();
            let new = Remnant { pod: pod.key.clone(), profiles, since: now, step: Step::Due };
            let node = self.agents.remnants.entry(holding.node.clone()).or_default();
            let known = node.entry(pod.key.uid.clone()).or_insert_with(|| new.clone());
            if new.profiles.iter().any(|profile| !known.profiles.contains(profile)) {
                *known = Remnant { since: known.since, ..new };
            }
        } else {
            self.drop_remains(&holding.node.clone(), &pod.key.uid);
        }
        self.lines.touch(&holding.node);
    }

    /// A pod is gone, or there is nothing of it to take.
    pub(super) fn drop_remains(&mut self, node: &NodeName, uid: &Uid) {
        if let Some(dead) = self.agents.remnants.get_mut(node) {
            dead.remove(uid);
            if dead.is_empty() {
                self.agents.remnants.remove(node);
            }
        }
    }

    /// Has everything withdrawn that dead pods of the node still carry.
    pub(super) fn withdraw(&mut self, node: &NodeName, now: Timestamp) {
        let dead = self.agents.remnants.get_mut(node).filter(|_| self.course == Course::Onward);
        for remnant in dead.into_iter().flat_map(|dead| dead.values_mut()) {
            let due = match remnant.step {
                Step::Due => true,
                Step::Pausing(until) => until <= now,
                Step::UnderWay | Step::Done => false,
            };
            if due {
                remnant.step = Step::UnderWay;
                let (pod, profiles) = (remnant.pod.clone(), remnant.profiles.clone());
                self.outbox.effects.push(Effect::Withdraw { pod, node: node.clone(), profiles });
            }
        }
    }

    pub(super) fn withdrawn(
        &mut self,
        pod: &PodKey,
        node: &NodeName,
        outcome: WithdrawOutcome,
        now: Timestamp,
    ) {
        if let Some(remnant) = self.agents.remnants.get_mut(node).and_then(|dead| dead.get_mut(&pod.uid)) {
            remnant.step = match outcome {
                WithdrawOutcome::Done => Step::Done,
                WithdrawOutcome::Failed => Step::Pausing(now.checked_add(PAUSE).unwrap_or(now)),
            };
            if outcome == WithdrawOutcome::Failed {
                self.outbox.effects.push(Effect::ReadPod { pod: pod.clone() });
            }
        }
        self.lines.touch(node);
    }

    /// Whether the node's agent may still serve somebody with what a dead pod carries.
    pub(super) fn has_remains(&self, node: &NodeName) -> bool {
        self.remains(node).next().is_some()
    }

    /// Since when each dead pod of the node has waited to be withdrawn.
    pub(super) fn remains_since(&self, node: &NodeName) -> impl Iterator<Item = Timestamp> {
        self.remains(node).map(|remnant| remnant.since)
    }

    fn remains(&self, node: &NodeName) -> impl Iterator<Item = &Remnant> {
        let dead = self.agents.remnants.get(node).into_iter().flat_map(|dead| dead.values());
        dead.filter(|remnant| remnant.step != Step::Done)
    }

    /// Whether a pod that was withdrawn may still be asked for: its kubelet has the time that the pod has to go.
    pub(super) fn lingers(&self, uid: &Uid, charge: &Charge, now: Timestamp) -> bool {
        self.goes_by(uid, charge).is_some_and(|at| at > now)
    }

    /// When a withdrawn pod, which its kubelet has not ended yet, is to be gone, and its node's agent done if it was at work for it.
    pub(super) fn goes_by(&self, uid: &Uid, charge: &Charge) -> Option<Timestamp> {
        let withdrawn = charge.has_answer(Answer::Withdrawn)
            && charge.commitment == Commitment::Bound
            && charge.stage == Stage::Pending;
        self.pods.get(uid).filter(|_| withdrawn)?.info.leaving?.checked_add(CLEARANCE).ok()
    }

    /// When an assignment of the node is to be withdrawn again.
    pub(super) fn withdraw_deadlines(&self, node: &NodeName) -> impl Iterator<Item = Timestamp> {
        self.remains(node).filter_map(|remnant| match remnant.step {
            Step::Pausing(until) => Some(until),
            Step::Due | Step::UnderWay | Step::Done => None,
        })
    }
}

/// So long after a pod is gone its node's plugin may still be at work for it: it gives some containers their cards, each in
/// seconds, and finds its pod by the node's lock or by its annotations, which by then would be the next pod's.
pub(super) const CLEARANCE: SignedDuration = SignedDuration::from_secs(15);
