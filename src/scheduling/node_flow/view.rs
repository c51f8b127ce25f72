//! What a node's flow may read of the cluster: its node, the charges on it, and the pods that were seen.

use jiff::{SignedDuration, Timestamp};

use super::contest::LockContest;
use crate::{
    device::LockOwner,
    scheduling::{
        model::{
            name::{NodeName, Uid},
            node::NodeInfo,
            pod::{Claim, PodInfo},
        },
        world::{
            ledger::{Charge, Ledger},
            pod_lister::PodLister,
        },
    },
};

/// Which work is still to be done.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(in crate::scheduling) enum Course {
    /// Everything.
    #[default]
    Onward,
    /// Only what is half done.
    Draining,
    /// Nothing: another scheduler decides, and this one only observes.
    Standby,
}

/// The cluster as one node's flow reads it.
#[derive(Clone, Copy)]
pub(in crate::scheduling) struct NodeView<'a> {
    /// The node's name.
    pub name: &'a NodeName,
    /// The node; `None`: it is gone, or was not seen yet.
    pub info: Option<&'a NodeInfo>,
    /// What pods hold.
    pub ledger: &'a Ledger,
    /// The pods that were seen.
    pub pods: &'a dyn PodLister,
    /// The time.
    pub now: Timestamp,
    /// Which work is still to be done.
    pub course: Course,
    /// How long a device plugin may owe an answer.
    pub lock_expiry: SignedDuration,
    /// Whether another scheduler may take the node's locks.
    pub contest: LockContest,
}

impl<'a> NodeView<'a> {
    /// The charges on the node, by uid.
    pub(super) fn charges(&self) -> impl Iterator<Item = (&'a Uid, &'a Charge)> + use<'a> {
        self.ledger.on_node(self.name)
    }

    /// The newest pod of the name that a lock gives.
    pub(super) fn holder(&self, owner: &LockOwner) -> Option<&'a PodInfo> {
        self.pods.named(&owner.namespace, &owner.name)
    }

    /// Whether the pod is still to be placed.
    pub(super) fn wants_place(&self, uid: &str) -> bool {
        self.pods.pod(uid).is_some_and(|pod| matches!(pod.claim, Claim::Place(_)))
    }
}
