//! Taking in what came of locks and Bindings.

use jiff::{SignedDuration, Timestamp};

use super::{
    Scheduler, Work,
    locks::{Releasing, is_held_by, is_since},
    reads::{Read, Validity},
};
use crate::{
    device::LockName,
    scheduling::{
        decide::blame::Blame,
        effect::{Effect, REACH},
        event::{BindOutcome, LockOutcome, Setback},
        model::{
            message::Message,
            name::{NodeName, Uid},
            node::{NodeInfo, NodeLock},
            pod::{Claim, PodInfo, PodKey},
        },
        node_flow::line::Step,
        queue::backoff,
        world::ledger::Commitment,
    },
};

/// After so many Bindings that were not carried out, the pod is decided anew.
const MOST_BINDINGS: u32 = 5;
/// After so many locks in a row that were not to be had, the pod is decided anew.
const MOST_LOCKS: u32 = 6;

impl Scheduler {
    pub(super) fn lock_answered(
        &mut self,
        pod: &PodKey,
        node: &NodeName,
        locks: Vec<LockName>,
        outcome: LockOutcome,
        now: Timestamp,
    ) {
        let uid = &pod.uid;
        let served = self.is_served(node, uid);
        match outcome {
            LockOutcome::Taken { resource_version } if served && self.wants_place(uid) => {
                self.hold_lock(node, pod, resource_version, now);
                if self.locks.take_foreign(node) {
                    self.doubt_lock(node);
                } else {
                    self.bind_locked(uid, node, now);
                }
            }
            // Gone or bound elsewhere meanwhile: a lock that was taken for it has no owner.
            LockOutcome::Taken { resource_version } => {
                if served {
                    self.forget(uid);
                }
                self.locks.set_releasing(node, Some(Releasing::UnderWay));
                let node = node.clone();
                self.outbox.effects.push(Effect::ReleaseLock { node, resource_version, locks });
            }
            _ if !served => self.lines.touch(node),
            LockOutcome::Stale => self.doubt_lock(node),
            LockOutcome::Failed(setback) => {
                self.wait_out(node, &setback, now);
                self.doubt_lock(node);
            }
            LockOutcome::Throttled(setback) => {
                self.wait_out(node, &setback, now);
                self.relock(uid, node, now);
            }
            LockOutcome::Refused(message) => self.refuse_lock(uid, node, &message, now),
        }
    }

    /// Binds the pod that has just been given the lock, unless that is gone again, as the node and its pods are by now.
    fn bind_locked(&mut self, uid: &Uid, node: &NodeName, now: Timestamp) {
        self.measure_wait(uid, now);
        if !self.has_its_lock(node) {
            self.lock_again(node, now);
        } else if self.decide_again(uid, node, now).is_some() {
            self.bind(node);
        } else {
            self.forget(uid);
            self.enqueue_if_wanted(uid);
        }
    }

    /// The API server asks to be left alone with what is being done here.
    fn wait_out(&mut self, node: &NodeName, setback: &Setback, now: Timestamp) {
        if let Some(serving) = self.lines.get_mut(node).and_then(|line| line.serving.as_mut()) {
            serving.not_before = now.checked_add(setback.wait).ok();
        }
    }

    /// When the next try may be, after a pause and as the API server asks.
    fn again_at(&self, node: &NodeName, pause: SignedDuration, now: Timestamp) -> Timestamp {
        let serving = self.lines.get(node).and_then(|line| line.serving.as_ref());
        let not_before = serving.and_then(|serving| serving.not_before);
        now.checked_add(pause).unwrap_or(now).max(not_before.unwrap_or(now))
    }

    /// The lock may be taken or not, or somebody else was served here meanwhile: the node is read, and its pods after it.
    fn doubt_lock(&mut self, node: &NodeName) {
        self.set_step(node, Step::DoubtingLock);
        self.read_node(node);
    }

    fn refuse_lock(&mut self, uid: &Uid, node: &NodeName, message: &str, now: Timestamp) {
        self.back_off(uid, now);
        self.lines.touch(node);
        self.tell_unschedulable(
            uid,
            Blame::Lock,
            Message::with_own(
                format!("taking the lock of node {node} failed: {message}"),
                "taking the lock of a node failed",
            ),
        );
    }

    pub(super) fn node_read(
        &mut self,
        node: &NodeName,
        found: Option<Box<NodeInfo>>,
        pods: Vec<PodInfo>,
        now: Timestamp,
    ) {
        let validity = self.take_in_read(&Read::Node(node.clone()), pods, now);
        match found {
            Some(found) => self.see_node(*found, now),
            None => self.lose_node(node),
        }
        let serving = self.lines.get(node).and_then(|line| line.serving.as_ref());
        let Some(uid) =
            serving.filter(|serving| serving.step == Step::DoubtingLock).map(|serving| serving.uid.clone())
        else {
            return;
        };
        if !self.wants_place(&uid) {
            self.forget(&uid);
        } else if validity == Validity::Overtaken {
            self.read_node(node);
        } else if let Some((pod, version)) = self.holds_lock(&uid, node) {
            self.hold_lock(node, &pod, version, now);
            self.bind_locked(&uid, node, now);
        } else {
            self.relock(&uid, node, now);
        }
    }

    /// The pod and the node's version, if the node as it is known says that each lock that the pod needs is the pod's.
    fn holds_lock(&self, uid: &Uid, node: &NodeName) -> Option<(PodKey, String)> {
        let (entry, state) = (self.pods.get(uid)?, self.snapshot.node(node)?);
        let Claim::Place(ask) = &entry.info.claim else { return None };
        let serving = self.lines.get(node)?.serving.as_ref()?;
        let is_held =
            |lock: &NodeLock| is_held_by(&lock.state, &entry.info.key) || is_since(lock, serving.lock_since);
        let mut locks = state.info.locks_for(ask).peekable();
        let held = locks.peek().is_some() && locks.all(is_held);
        held.then(|| (entry.info.key.clone(), state.info.resource_version.clone()))
    }

    fn relock(&mut self, uid: &Uid, node: &NodeName, now: Timestamp) {
        let Some(line) = self.lines.get_mut(node) else { return };
        line.refusals += 1;
        let refusals = line.refusals;
        if refusals > MOST_LOCKS {
            line.refusals = 0;
            self.refuse_lock(uid, node, "the node changes too often, or the API server fails", now);
            return;
        }
        let wait = if refusals == 1 { SignedDuration::ZERO } else { pause(refusals - 1) };
        let at = self.again_at(node, wait, now);
        self.set_step(node, Step::Relocking { at });
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
            self.outbox.effects.push(Effect::TellScheduled { pod: pod.clone(), node: node.clone() });
        }
        if !self.is_served(node, uid) {
            return;
        }
        match outcome {
            BindOutcome::Bound => self.bound(uid, node, now),
            BindOutcome::Throttled(setback) => {
                self.wait_out(node, &setback, now);
                self.rebind(node, now);
            }
            BindOutcome::Doubtful(setback) => {
                self.wait_out(node, &setback, now);
                if let Some(serving) = self.lines.get_mut(node).and_then(|line| line.serving.as_mut()) {
                    serving.doubted = Some(now);
                }
                self.doubt(node);
            }
            BindOutcome::Refused(_) if self.is_in_doubt(node) => self.give_up(node, now),
            BindOutcome::Refused(message) => {
                self.back_off(uid, now);
                self.lines.touch(node);
                self.tell_unschedulable(
                    uid,
                    Blame::Binding,
                    Message::with_own(
                        format!("binding to node {node} was refused: {message}"),
                        "binding to a node was refused",
                    ),
                );
            }
        }
    }

    /// Reads the pod that is being served here.
    pub(super) fn doubt(&mut self, node: &NodeName) {
        self.set_step(node, Step::Doubting);
        let serving = self.lines.get(node).and_then(|line| line.serving.as_ref());
        if let Some(entry) = serving.and_then(|serving| self.pods.get(&serving.uid)) {
            self.outbox.effects.push(Effect::ReadPod { pod: entry.info.key.clone() });
        }
    }

    fn is_in_doubt(&self, node: &NodeName) -> bool {
        let serving = self.lines.get(node).and_then(|line| line.serving.as_ref());
        serving.is_some_and(|serving| serving.doubted.is_some())
    }

    /// The pod is to be bound elsewhere or not at all. What was sent for it may still be on its way: what it would hold is held until
    /// nothing can arrive any more, and then it is read.
    pub(super) fn give_up(&mut self, node: &NodeName, now: Timestamp) {
        let Some(serving) = self.lines.get(node).and_then(|line| line.serving.clone()) else { return };
        match self.fence(node) {
            Some(at) if at > now => self.set_step(node, Step::Fencing { at }),
            _ => self.back_off(&serving.uid, now),
        }
    }

    /// Until when a Binding that was in doubt can still arrive here.
    pub(super) fn fence(&self, node: &NodeName) -> Option<Timestamp> {
        let serving = self.lines.get(node).and_then(|line| line.serving.as_ref());
        serving?.doubted?.checked_add(REACH).ok()
    }

    /// The Binding was not carried out: it is sent again, not too soon and not too often.
    fn rebind(&mut self, node: &NodeName, now: Timestamp) {
        let Some(serving) = self.lines.get(node).and_then(|line| line.serving.clone()) else { return };
        if self.wants_place(&serving.uid) && serving.bindings < MOST_BINDINGS {
            let at = self.again_at(node, pause(serving.bindings), now);
            self.set_step(node, Step::Rebinding { at });
        } else {
            self.give_up(node, now);
        }
    }

    pub(super) fn pod_read(&mut self, pod: &PodKey, found: Option<Box<PodInfo>>, now: Timestamp) {
        if !self.pods.contains(&pod.uid) {
            // It was seen to go after it was read.
            return;
        }
        let Some(found) = found.filter(|found| found.key.uid == pod.uid) else {
            self.miss_pod(&pod.uid, now);
            return;
        };
        // What it holds is adopted, whoever bound it.
        self.see_pod(*found, now);
        let Some(Work::InLine(node)) = self.pods.get(&pod.uid).map(|entry| entry.work.clone()) else {
            return;
        };
        let serving = self.lines.get(&node).and_then(|line| line.serving.as_ref());
        if serving.is_some_and(|serving| serving.uid == pod.uid && serving.step == Step::Doubting) {
            self.rebind(&node, now);
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
            self.measure_bound(uid, now);
        }
        self.lines.leave(node, uid);
        self.set_work(uid, Work::Idle);
        self.end_marks(uid);
        self.touch_gang_of_pod(uid);
    }

    pub(super) fn set_step(&mut self, node: &NodeName, step: Step) {
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
