//! Pods that wait for lists without which it is not known where they may go.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::scheduling::model::name::Uid;

/// For so long a missing list is nothing to speak of.
const PATIENCE: SignedDuration = SignedDuration::from_secs(30);

/// Pods with claims that wait for lists.
#[derive(Debug, Default)]
pub(in crate::scheduling::scheduler) struct Unlisted {
    /// Which.
    pub(in crate::scheduling::scheduler) pods: BTreeSet<Uid>,
    /// When the first of them began to wait.
    pub(in crate::scheduling::scheduler) since: Option<Timestamp>,
    /// Whether the pods have waited for so long that they say for what.
    pub(in crate::scheduling::scheduler) overdue: bool,
}

impl Unlisted {
    /// The pod no longer waits.
    pub(in crate::scheduling::scheduler) fn leave(&mut self, uid: &Uid) {
        self.pods.remove(uid);
    }

    /// Whether the pod waits.
    pub(in crate::scheduling::scheduler) fn holds(&self, uid: &Uid) -> bool {
        self.pods.contains(uid)
    }

    /// How many pods wait.
    pub(in crate::scheduling::scheduler) fn len(&self) -> usize {
        self.pods.len()
    }

    /// When the pods say which lists are missing.
    pub(in crate::scheduling::scheduler) fn deadline(&self) -> Option<Timestamp> {
        let waits = !self.overdue && !self.pods.is_empty();
        self.since.filter(|_| waits)?.checked_add(PATIENCE).ok()
    }
}
