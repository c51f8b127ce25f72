//! What is read of the cluster where pods are preempted.

use jiff::Timestamp;

use crate::scheduling::{
    model::{kind::Kind, name::Uid, pod::Demand},
    node_flow::Course,
    snapshot::Snapshot,
    world::pod_lister::PodLister,
};

/// The cluster as it is read where pods are preempted.
#[derive(Clone, Copy)]
pub(in crate::scheduling) struct PreemptView<'a> {
    /// Nodes, nominations, and what pods hold.
    pub snapshot: &'a Snapshot,
    /// The pods that were seen.
    pub pods: &'a dyn PodLister,
    /// Which work is still to be done.
    pub course: Course,
}

impl PreemptView<'_> {
    /// The time.
    pub(super) fn now(&self) -> Timestamp {
        self.snapshot.now()
    }

    /// What the pod asks for, with the node that is kept for it.
    pub(super) fn demand(&self, pod: &Uid) -> Option<Demand> {
        self.snapshot.nominations().demand(self.pods.pod(pod)?)
    }

    /// Whether the PodDisruptionBudgets are listed, without which no victim is chosen.
    pub(in crate::scheduling) fn knows_budgets(&self) -> bool {
        self.snapshot.objects().are_listed(&[Kind::PodDisruptionBudget])
    }
}
