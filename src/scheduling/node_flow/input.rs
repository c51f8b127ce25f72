//! Everything that can happen to a node's flow: one closed list.

use jiff::Timestamp;

use super::reads::Validity;
use crate::{
    device::{LockName, LockOwner},
    scheduling::{
        model::{
            name::Uid,
            node::NodeInfo,
            outcome::{BindOutcome, LockOutcome, ReleaseOutcome, WithdrawOutcome},
            pod::{PodInfo, PodKey},
        },
        world::ledger::Charge,
    },
};

/// Whether a node that was chosen for a pod still is right for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::scheduling) enum Fit {
    /// It is.
    Fits,
    /// It is not, or the pod wants no place any more.
    Rejected,
}

/// Something that happened at one node.
#[derive(Clone, Debug)]
pub(in crate::scheduling) enum NodeFlowInput<'a> {
    /// Something has changed that the flow depends on, or its deadline has passed.
    Touched,
    /// A pod was decided for the node, and its claims are bound.
    Joined {
        /// Which pod.
        pod: Uid,
        /// Since when it waits in a line; `None`: that was measured already.
        since: Option<Timestamp>,
    },
    /// A pod is no longer to be bound to the node.
    Left(&'a Uid),
    /// The pods that wait may have better places by now.
    Dismissed,
    /// The answer to [`Decide`](super::request::NodeFlowRequest::Decide) and [`Judge`](super::request::NodeFlowRequest::Judge).
    Decided(Uid, Fit),
    /// What came of taking the node's locks for a pod.
    LockAnswered {
        /// For which pod.
        pod: &'a PodKey,
        /// Which locks.
        locks: Vec<LockName>,
        /// What came of it.
        outcome: LockOutcome,
    },
    /// What came of giving locks back.
    LockReleased {
        /// The version that the node had to have.
        resource_version: String,
        /// Which locks.
        locks: Vec<LockName>,
        /// What came of it.
        outcome: ReleaseOutcome,
    },
    /// What came of a Binding.
    BindAnswered {
        /// Of which pod.
        pod: &'a PodKey,
        /// What came of it.
        outcome: BindOutcome,
    },
    /// What came of withdrawing the assignment of a dead pod.
    Withdrawn {
        /// Which pod.
        pod: &'a PodKey,
        /// What came of it.
        outcome: WithdrawOutcome,
    },
    /// The node was read and then its pods; both were taken in.
    NodeRead(Validity),
    /// This pod was read and taken in.
    PodRead(&'a Uid),
    /// The holder of a lock, of which nothing was seen, was read.
    HolderRead {
        /// Whom the lock names.
        owner: &'a LockOwner,
        /// Since when it is held.
        since: Timestamp,
        /// Whether it is there and has not ended.
        alive: bool,
    },
    /// Something is new about a pod that a lock of the node may name.
    HolderSeen(&'a LockOwner),
    /// The node was seen.
    NodeSeen {
        /// The node as it was known before.
        before: Option<&'a NodeInfo>,
    },
    /// The node is gone.
    NodeGone,
    /// A pod was seen that holds something of the node.
    HoldingSeen(&'a Uid),
    /// What a pod holds of the node has changed.
    Charged {
        /// Which pod.
        pod: &'a PodInfo,
        /// What it held before, wherever.
        before: Option<&'a Charge>,
        /// What it holds now.
        charge: &'a Charge,
    },
    /// A pod that was on the node is gone or has ended.
    PodGone(&'a Uid),
    /// A pod that holds something of the node is gone, and whether its node's device plugin is done with it is not known. It comes before the
    /// pod's charge is released.
    PodMissed(&'a Uid),
    /// The node's device plugin may be at work until then for a pod that is gone.
    Vacated(Timestamp),
}
