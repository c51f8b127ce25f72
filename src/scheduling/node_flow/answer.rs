//! Taking in what came of locks and Bindings.

use jiff::SignedDuration;

use super::{
    NodeFlow,
    line::NodeFlowStep,
    lock::{TakenLock, is_held_by, is_since},
    reads::Validity,
    reason::{LockFailure, NodeFailure},
    request::NodeFlowRequest,
    view::NodeView,
};
use crate::{
    device::LockName,
    scheduling::{
        model::{
            name::Uid,
            node::NodeLock,
            outcome::{BindOutcome, LockOutcome, ReleaseOutcome},
            pod::{Claim, PodKey},
        },
        queue::backoff,
    },
};

/// After so many Bindings that were not carried out, the pod is decided anew.
const MOST_BINDINGS: u32 = 5;
/// After so many locks in a row that could not be taken, the pod is decided anew.
const MOST_LOCKS: u32 = 6;

/// Whether it is known that no Binding of a pod has been carried out or can be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum BindingDoubt {
    Settled,
    Open,
}

impl NodeFlow {
    pub(super) fn lock_answered(
        &mut self,
        pod: &PodKey,
        locks: Vec<LockName>,
        outcome: LockOutcome,
        view: &NodeView<'_>,
    ) {
        let step =
            self.line.served.as_ref().filter(|served| served.uid == pod.uid).map(|served| &served.step);
        let (served, locking) = (step.is_some(), step == Some(&NodeFlowStep::Locking));
        match outcome {
            // Each lock is answered once: what comes in another step is of no request that is under way.
            _ if served && !locking => {}
            LockOutcome::Taken { resource_version } if served && view.wants_place(&pod.uid) => {
                self.take_locks(pod, resource_version, view);
                if self.locks.take_foreign() { self.doubt_lock() } else { self.bind_locked(view) }
            }
            // Gone or bound elsewhere meanwhile: a lock that was taken for it has no owner, unless another pod of its name was read to have it.
            LockOutcome::Taken { resource_version } => {
                if served {
                    self.forget(&pod.uid);
                }
                if !self.locks.are_taken_since(&resource_version) {
                    self.requests.extend(self.locks.release(&resource_version, locks));
                }
            }
            _ if !served => {}
            LockOutcome::Stale => self.doubt_lock(),
            LockOutcome::Failed(setback) => {
                self.locks.note_doubtful_lock(view.now);
                self.line.wait_out(&setback, view.now);
                self.doubt_lock();
            }
            LockOutcome::Throttled(setback) => {
                self.line.wait_out(&setback, view.now);
                self.relock(view);
            }
            LockOutcome::Refused(answer) => self.refuse_lock(&pod.uid, LockFailure::Refused(answer), view),
        }
    }

    /// The locks are the pod's, by the answer to its taking or by a read.
    pub(super) fn take_locks(&mut self, pod: &PodKey, version: String, view: &NodeView<'_>) {
        let written = self.line.served.as_ref().and_then(|served| served.lock_since);
        let charge = view.ledger.get(&pod.uid);
        let profiles = charge.map(|charge| charge.profiles().cloned().collect()).unwrap_or_default();
        let taken = TakenLock { pod: pod.clone(), profiles, version, since: view.now, written };
        let lost = self.locks.take(taken, view);
        self.requests.extend(lost.map(NodeFlowRequest::Measure));
    }

    /// Decides the pod that has just been given the locks once more, unless they are gone again, as the node and its pods are by now.
    fn bind_locked(&mut self, view: &NodeView<'_>) {
        self.measure_wait(view);
        let Some(uid) = self.line.served.as_ref().map(|served| served.uid.clone()) else { return };
        if self.has_its_locks(view) {
            self.requests.push(NodeFlowRequest::Decide(uid));
        } else {
            self.lock_again(view);
        }
    }

    /// Whether the pod that is served has the locks that it needs. A plugin that is asked for another pod between lock and Binding fails
    /// this one and frees the node.
    pub(super) fn has_its_locks(&self, view: &NodeView<'_>) -> bool {
        let served = self.line.served.as_ref();
        let Some(pod) = served.and_then(|served| view.pods.pod(&served.uid)) else { return true };
        let Claim::Place(ask) = &pod.claim else { return true };
        !self.locks.are_needed((&pod.key, ask), view) || self.locks.are_taken_for(&pod.key)
    }

    /// Takes the locks once more for the pod that is served, when nothing of it can arrive any more and none has.
    pub(super) fn lock_again(&mut self, view: &NodeView<'_>) {
        if self.settle_doubt(view) == BindingDoubt::Settled {
            self.line.set_step(NodeFlowStep::Relocking { at: view.now });
        }
    }

    /// The lock may be taken or not, or another pod was served here meanwhile: the node is read, and its pods after it.
    fn doubt_lock(&mut self) {
        self.line.set_step(NodeFlowStep::DoubtingLock);
        self.requests.push(NodeFlowRequest::ReadNode);
    }

    fn refuse_lock(&mut self, uid: &Uid, failure: LockFailure, view: &NodeView<'_>) {
        self.back_off(uid, Some(NodeFailure::Lock(view.name.clone(), failure)));
    }

    fn back_off(&mut self, uid: &Uid, why: Option<NodeFailure>) {
        self.line.leave(uid);
        self.requests.push(NodeFlowRequest::BackOff(uid.clone(), why));
    }

    fn forget(&mut self, uid: &Uid) {
        self.line.leave(uid);
        self.requests.push(NodeFlowRequest::Forget(uid.clone()));
    }

    /// The node was read, and its pods after it.
    pub(super) fn node_read(&mut self, validity: Validity, view: &NodeView<'_>) {
        let served = self.line.served.as_ref().filter(|served| served.step == NodeFlowStep::DoubtingLock);
        let Some(uid) = served.map(|served| served.uid.clone()) else { return };
        if !view.wants_place(&uid) {
            self.forget(&uid);
        } else if validity == Validity::Overtaken {
            self.requests.push(NodeFlowRequest::ReadNode);
        } else if let Some((pod, version)) = self.holds_locks(&uid, view) {
            self.take_locks(&pod, version, view);
            self.bind_locked(view);
        } else {
            self.relock(view);
        }
    }

    /// The pod and the node's version, if the node as it is known says that each lock that the pod needs is the pod's.
    fn holds_locks(&self, uid: &Uid, view: &NodeView<'_>) -> Option<(PodKey, String)> {
        let (pod, info, served) = (view.pods.pod(uid)?, view.info?, self.line.served.as_ref()?);
        let Claim::Place(ask) = &pod.claim else { return None };
        let is_held =
            |lock: &NodeLock| is_held_by(&lock.state, &pod.key) || is_since(lock, served.lock_since);
        let mut locks = info.locks_for(ask).peekable();
        let held = locks.peek().is_some() && locks.all(is_held);
        // They may be from before a restart, and about to be given back: taken anew they are of a later version.
        let held = held && !self.locks.may_be_released(&info.resource_version, view.now);
        held.then(|| (pod.key.clone(), info.resource_version.clone()))
    }

    fn relock(&mut self, view: &NodeView<'_>) {
        let Some(uid) = self.line.served.as_ref().map(|served| served.uid.clone()) else { return };
        self.line.refusals += 1;
        let refusals = self.line.refusals;
        if refusals > MOST_LOCKS {
            self.line.refusals = 0;
            return self.refuse_lock(&uid, LockFailure::TriedTooOften, view);
        }
        let wait = if refusals == 1 { SignedDuration::ZERO } else { pause(refusals - 1) };
        let at = self.line.again_at(wait, view.now);
        self.line.set_step(NodeFlowStep::Relocking { at });
    }

    pub(super) fn lock_released(
        &mut self,
        of: (String, Vec<LockName>),
        outcome: ReleaseOutcome,
        view: &NodeView<'_>,
    ) {
        if self.locks.end_release(of, outcome, view.now) {
            self.requests.push(NodeFlowRequest::ReadNode);
        }
    }

    pub(super) fn bind_answered(&mut self, pod: &PodKey, outcome: BindOutcome, view: &NodeView<'_>) {
        if outcome == BindOutcome::Bound {
            self.requests.push(NodeFlowRequest::TellScheduled(pod.clone()));
        }
        let Some(served) = self.line.served.as_mut().filter(|served| served.uid == pod.uid) else { return };
        match outcome {
            // Each Binding is answered once: what comes in another step is of no request that is under way.
            _ if served.step != NodeFlowStep::Binding => {}
            BindOutcome::Bound => {
                self.line.leave(&pod.uid);
                self.requests.push(NodeFlowRequest::ConfirmBound(pod.uid.clone()));
            }
            BindOutcome::Throttled(setback) => {
                self.line.wait_out(&setback, view.now);
                self.rebind(view);
            }
            BindOutcome::Doubtful(setback) => {
                served.doubted = Some(view.now);
                self.line.wait_out(&setback, view.now);
                self.doubt_binding(view);
            }
            BindOutcome::Refused(_) if served.doubted.is_some() => self.give_up(view),
            BindOutcome::Refused(answer) => {
                self.back_off(&pod.uid, Some(NodeFailure::Binding(view.name.clone(), answer)));
            }
        }
    }

    /// Reads the pod that is served.
    pub(super) fn doubt_binding(&mut self, view: &NodeView<'_>) {
        self.line.set_step(NodeFlowStep::DoubtingBinding { since: view.now });
        let pod = self.line.served.as_ref().and_then(|served| view.pods.pod(&served.uid));
        self.requests.extend(pod.map(|pod| NodeFlowRequest::ReadPod(pod.key.clone())));
    }

    /// A pod was read: if it is in doubt whether it is bound, it is not, or was not when the read began.
    pub(super) fn pod_read(&mut self, uid: &Uid, view: &NodeView<'_>) {
        let fence = self.line.fence();
        let Some(served) = self.line.served.as_mut().filter(|served| served.uid == *uid) else { return };
        let NodeFlowStep::DoubtingBinding { since } = served.step else { return };
        if fence.is_some_and(|at| at <= since) {
            served.doubted = None;
        }
        self.rebind(view);
    }

    /// The pod is to be bound elsewhere or not at all. What was sent for it may still be on its way: what it would hold is held until
    /// nothing can arrive any more, and then it is read.
    pub(super) fn give_up(&mut self, view: &NodeView<'_>) {
        let Some(uid) = self.line.served.as_ref().map(|served| served.uid.clone()) else { return };
        if self.settle_doubt(view) == BindingDoubt::Settled {
            self.back_off(&uid, None);
        }
    }

    /// Has the pod that is served read once no Binding of it can arrive any more, if one was in doubt: an earlier read may not have shown
    /// what arrived after it.
    fn settle_doubt(&mut self, view: &NodeView<'_>) -> BindingDoubt {
        match self.line.fence() {
            None => return BindingDoubt::Settled,
            Some(at) if at > view.now => self.line.set_step(NodeFlowStep::Fencing { at }),
            Some(_) => self.doubt_binding(view),
        }
        BindingDoubt::Open
    }

    /// The Binding was not carried out: it is sent again, not too soon and not too often.
    fn rebind(&mut self, view: &NodeView<'_>) {
        let Some(served) = self.line.served.as_ref() else { return };
        if view.wants_place(&served.uid) && served.bindings < MOST_BINDINGS {
            let at = self.line.again_at(pause(served.bindings), view.now);
            self.line.set_step(NodeFlowStep::Rebinding { at });
        } else {
            self.give_up(view);
        }
    }
}

/// How long to wait before the same write is sent again.
fn pause(tries: u32) -> SignedDuration {
    backoff(tries) / 10
}
