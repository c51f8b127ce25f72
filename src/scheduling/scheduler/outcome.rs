//! Taking in what came of locks and Bindings.

use jiff::{SignedDuration, Timestamp};

use super::{Scheduler, Work};
use crate::device::ProfileName;
use crate::scheduling::{
    effect::Effect,
    event::{BindOutcome, LockOutcome},
    ledger::Commitment,
    line::Step,
    node::NodeName,
    pod::{Claim, PodInfo, PodKey, Uid},
    queue::backoff,
};

/// After so many Bindings that were not carried out, the pod is decided anew.
const MOST_BINDINGS: u32 = 5;

impl Scheduler {
    pub(super) fn lock_answered(
        &mut self,
        pod: &PodKey,
        node: &NodeName,
        profile: ProfileName,
        outcome: LockOutcome,
        now: Timestamp,
    ) {
        let uid = &pod.uid;
        let served = self.is_served(node, uid);
        match outcome {
            LockOutcome::Taken { .. } if served && self.wants_place(uid) => self.bind(node),
            // Gone or bound elsewhere meanwhile: a lock that was taken for it has no owner.
            LockOutcome::Taken { resource_version } => {
                if served {
                    self.forget(uid);
                }
                let (pod, node) = (pod.clone(), node.clone());
                self.effects.push(Effect::ReleaseLock { pod, node, resource_version, profile });
            }
            _ if !served => {}
            LockOutcome::Stale => self.await_node(node),
            LockOutcome::Failed(message) => {
                self.back_off(uid, now);
                self.tell_unschedulable(uid, format!("taking the lock of node {node} failed: {message}"));
            }
        }
    }

    pub(super) fn bind_answered(
        &mut self,
        pod: &PodKey,
        node: &NodeName,
        outcome: BindOutcome,
        now: Timestamp,
    ) {
        let uid = &pod.uid;
        if outcome == BindOutcome::Bound {
            self.effects.push(Effect::TellScheduled { pod: pod.clone(), node: node.clone() });
        }
        if !self.is_served(node, uid) {
            return;
        }
        match outcome {
            BindOutcome::Bound => self.bound(uid, node, now),
            BindOutcome::Doubtful(_) => {
                self.set_step(node, Step::Doubting);
                self.effects.push(Effect::ReadPod { pod: pod.clone() });
            }
            BindOutcome::Refused(message) => {
                self.back_off(uid, now);
                self.free_lock_of(pod, node);
                self.tell_unschedulable(uid, format!("binding to node {node} was refused: {message}"));
            }
        }
    }

    pub(super) fn pod_read(&mut self, pod: &PodKey, found: Option<Box<PodInfo>>, now: Timestamp) {
        let Some(found) = found.filter(|found| found.key.uid == pod.uid) else {
            self.lose_pod(&pod.uid);
            return;
        };
        // What it holds is adopted, whoever bound it.
        self.see_pod(*found, now);
        let Some(Work::InLine(node)) = self.pods.get(&pod.uid).map(|entry| entry.work.clone()) else {
            return;
        };
        if !self.is_served(&node, &pod.uid) {
            return;
        }
        let bindings = self
            .lines
            .get(&node)
            .and_then(|line| line.serving.as_ref())
            .map_or(0, |serving| serving.bindings);
        if self.wants_place(&pod.uid) && bindings < MOST_BINDINGS {
            let at = now.checked_add(pause(bindings)).unwrap_or(now);
            self.set_step(&node, Step::Rebinding { at });
        } else {
            self.back_off(&pod.uid, now);
            self.free_lock_of(pod, &node);
        }
    }

    /// The Binding is written: the node's agent owes an answer from now on.
    fn bound(&mut self, uid: &Uid, node: &NodeName, now: Timestamp) {
        if let Some(charge) =
            self.snapshot.ledger().get(uid).filter(|charge| charge.commitment == Commitment::Assumed)
        {
            let mut charge = charge.clone();
            charge.commitment = Commitment::Bound;
            charge.since = now;
            self.snapshot.charge(uid.clone(), charge);
        }
        self.lines.leave(node, uid);
        self.set_work(uid, Work::Idle);
    }

    fn await_node(&mut self, node: &NodeName) {
        let serving = self.lines.get_mut(node).and_then(|line| line.serving.as_mut());
        if let Some(serving) = serving
            && let Step::Locking { resource_version } = &serving.step
        {
            serving.step = Step::AwaitingNode { stale: resource_version.clone() };
        }
        self.lines.touch(node);
    }

    fn set_step(&mut self, node: &NodeName, step: Step) {
        if let Some(serving) = self.lines.get_mut(node).and_then(|line| line.serving.as_mut()) {
            serving.step = step;
        }
        self.lines.touch(node);
    }

    fn wants_place(&self, uid: &Uid) -> bool {
        self.pods.get(uid).is_some_and(|entry| matches!(entry.info.claim, Claim::Place(_)))
    }
}

/// How long to wait before the same Binding is sent again.
fn pause(bindings: u32) -> SignedDuration {
    backoff(bindings) / 10
}
