//! Locking a node for a pod that was bound without a lock, once another scheduler may take locks: until the node's device plugin answers,
//! the lock keeps that scheduler away, and names the pod that the plugin is to serve.
//!
//! Whether a pod was bound without a lock is written nowhere. A pod that awaits the plugin on a node without a lock was, if the pod is
//! read after the node: a plugin answers first and frees the lock then. So the node is read, and its pods after it, and the lock is taken by
//! compare-and-swap on that version. What was known before a restart is not needed.

use jiff::{SignedDuration, Timestamp};

use super::{
    NodeFlow,
    contest::LockContest,
    line::Line,
    lock::{Covering, NodeLocks},
    reads::Validity,
    request::NodeFlowRequest,
    view::NodeView,
};
use crate::{
    device::{Lock, LockName, LockNeed},
    scheduling::{
        model::{
            name::Uid,
            outcome::LockOutcome,
            pod::{Placer, PodKey},
        },
        world::ledger::Charge,
    },
};

/// How long to wait before a lock that could not be taken is taken again.
const PAUSE: SignedDuration = SignedDuration::from_secs(1);

impl NodeLocks {
    /// The pod that is bound or being bound without a lock although another scheduler may take it, and the locks that it is to have.
    fn uncovered(&self, line: &Line, view: &NodeView<'_>) -> Option<(PodKey, Vec<LockName>)> {
        if view.contest == LockContest::Excluded {
            return None;
        }
        let served = line.served.as_ref().filter(|served| served.bindings > 0).map(|served| &served.uid);
        let owed = view.charges().filter(|(_, charge)| is_owed(charge)).map(|(uid, _)| uid);
        served.into_iter().chain(owed).find_map(|uid| self.without_lock(uid, view))
    }

    fn without_lock(&self, uid: &Uid, view: &NodeView<'_>) -> Option<(PodKey, Vec<LockName>)> {
        let (info, pod) = (view.info?, view.pods.pod(uid)?);
        let charge = view.ledger.get(uid).filter(|charge| charge.node == *view.name)?;
        if self.were_taken_before_binding(uid) || self.are_taken_for(&pod.key) {
            return None;
        }
        let locks = || info.locks_of(charge.profiles());
        let left_out = locks().any(|lock| lock.need == LockNeed::WhereContested)
            && locks().all(|lock| lock.state == Lock::Free);
        left_out.then(|| (pod.key.clone(), locks().map(|lock| lock.name.clone()).collect()))
    }
}

/// Whether the plugin owes an answer for a pod of Berth's.
fn is_owed(charge: &Charge) -> bool {
    charge.placer == Placer::Berth && charge.is_in_flight()
}

/// Begins to lock the node for a pod that was bound without a lock, if there is one.
pub(super) fn cover(flow: &mut NodeFlow, view: &NodeView<'_>) {
    match flow.locks.covering {
        Covering::Reading | Covering::Taking(_) => return,
        Covering::Pausing(until) if until > view.now => return,
        Covering::Pausing(_) | Covering::Idle => {}
    }
    flow.locks.covering = Covering::Idle;
    if flow.locks.uncovered(&flow.line, view).is_some() {
        read_to_cover(flow);
    }
}

fn read_to_cover(flow: &mut NodeFlow) {
    flow.locks.covering = Covering::Reading;
    flow.requests.push(NodeFlowRequest::ReadNode);
}

/// The node was read, and its pods after it.
pub(super) fn cover_read(flow: &mut NodeFlow, validity: Validity, view: &NodeView<'_>) {
    if flow.locks.covering != Covering::Reading {
        return;
    }
    flow.locks.covering = Covering::Idle;
    let (Some((pod, locks)), Some(info)) = (flow.locks.uncovered(&flow.line, view), view.info) else {
        return;
    };
    if validity == Validity::Overtaken {
        return read_to_cover(flow);
    }
    flow.locks.covering = Covering::Taking(pod.clone());
    flow.requests.push(NodeFlowRequest::TakeLock {
        pod,
        resource_version: info.resource_version.clone(),
        locks,
        since: Timestamp::from_second(view.now.as_second()).unwrap_or(view.now),
    });
}

/// What came of taking the locks for a pod that was bound without; returns whether that was under way.
pub(super) fn cover_answered(
    flow: &mut NodeFlow,
    pod: &PodKey,
    locks: &[LockName],
    outcome: &LockOutcome,
    view: &NodeView<'_>,
) -> bool {
    if flow.locks.covering != Covering::Taking(pod.clone()) {
        return false;
    }
    flow.locks.covering = Covering::Idle;
    match outcome {
        LockOutcome::Taken { resource_version } => {
            let charge = view.ledger.get(&pod.uid).filter(|charge| charge.node == *view.name);
            if flow.line.serves(&pod.uid) || charge.is_some_and(is_owed) {
                flow.take_locks(pod, resource_version.clone(), view);
            } else {
                // The plugin has answered meanwhile, or the pod is gone.
                flow.requests.extend(flow.locks.release(resource_version, locks.to_vec()));
            }
        }
        LockOutcome::Stale => read_to_cover(flow),
        LockOutcome::Failed(setback) => {
            flow.locks.note_doubtful_lock(view.now);
            pause_cover(flow, setback.wait, view);
        }
        LockOutcome::Throttled(setback) => pause_cover(flow, setback.wait, view),
        LockOutcome::Refused(_) => pause_cover(flow, PAUSE, view),
    }
    true
}

fn pause_cover(flow: &mut NodeFlow, wait: SignedDuration, view: &NodeView<'_>) {
    let until = view.now.checked_add(wait.max(PAUSE)).unwrap_or(view.now);
    flow.locks.covering = Covering::Pausing(until);
}
