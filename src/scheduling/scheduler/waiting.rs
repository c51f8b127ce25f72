//! Pods that wait to be decided: in the queue, or for a change that could help them.

use std::collections::BTreeMap;

use super::{
    alike::Rejections, claim_lists::ClaimLists, compare::Comparisons, quota::OverQuota, requeue::Requeue,
    turn::Turn, unlisted::Unlisted,
};
use crate::scheduling::{
    decide::class::Held,
    model::{name::NodeName, pod::PodKey},
    queue::{Queue, Shares},
};

/// Pods that wait to be decided.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// By priority, then age; after a failure once their backoff has ended, and after five minutes in any case.
    pub(super) queue: Queue,
    /// How much was decided in this turn of the loop.
    pub(super) turn: Turn,
    /// How much of the loop each namespace has used lately.
    pub(super) shares: Shares,
    /// Nodes that have changed and for which waiting pods are to be woken.
    pub(super) moved: BTreeMap<NodeName, Held>,
    /// Pods that wait for the quota of their namespace.
    pub(super) over_quota: OverQuota,
    /// Pods that a plugin which looks at more than one node has rejected.
    pub(super) requeue: Requeue,
    /// Pods whose claims are compared beside the decisions.
    pub(super) comparisons: Comparisons,
    /// Pods with claims that wait for lists of what decides on these.
    pub(super) unlisted: Unlisted,
    /// How long pods wait for the lists of claims.
    pub(super) claim_lists: ClaimLists,
    /// Why pods were rejected since the last change.
    pub(super) rejections: Rejections,
}

impl Waiting {
    /// The pod waits no more, whatever for.
    pub(super) fn remove(&mut self, pod: &PodKey) {
        self.over_quota.leave(pod);
        self.requeue.leave(&pod.uid);
        self.unlisted.leave(&pod.uid);
        self.comparisons.leave(&pod.uid);
        self.queue.remove(&pod.uid);
        self.queue.end_behind(&pod.uid);
    }
}
