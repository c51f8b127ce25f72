//! What is read of the cluster where claims are bound.

use jiff::Timestamp;

use crate::scheduling::{snapshot::Snapshot, world::pod_lister::PodLister};

/// The cluster as those read it who bind claims.
#[derive(Clone, Copy)]
pub(in crate::scheduling) struct PrebindView<'a> {
    /// Nodes, claims, volumes, and what pods hold.
    pub snapshot: &'a Snapshot,
    /// The pods that were seen.
    pub pods: &'a dyn PodLister,
}

impl PrebindView<'_> {
    /// The time.
    pub(super) fn now(&self) -> Timestamp {
        self.snapshot.now()
    }
}
