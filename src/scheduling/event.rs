//! Everything that can happen to the scheduler: one closed list.

use super::{
    node::{NodeInfo, NodeName},
    pod::{PodInfo, PodKey, Uid},
};
use crate::device::ProfileName;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// Every pod that there is: what is not among them is gone.
    Pods(Vec<PodInfo>),
    /// A pod, new or changed.
    PodSeen(Box<PodInfo>),
    /// A pod is gone.
    PodGone(Uid),
    /// Every node that there is: what is not among them is gone.
    Nodes(Vec<NodeInfo>),
    /// A node, new or changed.
    NodeSeen(Box<NodeInfo>),
    /// A node is gone.
    NodeGone(NodeName),
    /// What came of taking a lock.
    LockAnswered {
        /// For which pod.
        pod: PodKey,
        /// On which node.
        node: NodeName,
        /// Whose lock.
        profile: ProfileName,
        /// What came of it.
        outcome: LockOutcome,
    },
    /// What came of a Binding.
    BindAnswered {
        /// Of which pod.
        pod: PodKey,
        /// To which node.
        node: NodeName,
        /// What came of it.
        outcome: BindOutcome,
    },
    /// What a pod looks like at the API server, read to settle a doubt; `None`: it is gone.
    PodRead {
        /// Which pod was in doubt.
        pod: PodKey,
        /// What it looks like.
        found: Option<Box<PodInfo>>,
    },
    /// A deadline has passed.
    Tick,
}

/// What came of taking a lock.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LockOutcome {
    /// It is ours.
    Taken {
        /// The node's version since then.
        resource_version: String,
    },
    /// The node has changed since it was read: decide again on what it is now.
    Stale,
    /// The API server did not take it.
    Failed(String),
}

/// What came of a Binding.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum BindOutcome {
    /// The pod is bound.
    Bound,
    /// It may or may not be bound, or be gone: a conflict, a lost answer, a server error.
    Doubtful(String),
    /// The API server will not have it.
    Refused(String),
}
