//! Everything that the scheduler wants done: one closed list.

use std::sync::Arc;

use super::{node::NodeName, pod::PodKey};
use crate::device::{Assignment, ProfileName};

/// Something to be done at the API server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Effect {
    /// Take the node's lock for a pod, by compare-and-swap on this version of the node. Answered by `LockAnswered`.
    TakeLock {
        /// For which pod.
        pod: PodKey,
        /// On which node.
        node: NodeName,
        /// The version that the node must still have.
        resource_version: String,
        /// Whose lock.
        profile: ProfileName,
    },
    /// Give the node's lock back, if the node still has this version.
    ReleaseLock {
        /// Whose pod held it.
        pod: PodKey,
        /// On which node.
        node: NodeName,
        /// The version that the node must still have.
        resource_version: String,
        /// Whose lock.
        profile: ProfileName,
    },
    /// Bind a pod with its assignment in one write. Answered by `BindAnswered`.
    Bind {
        /// Which pod.
        pod: PodKey,
        /// To which node.
        node: NodeName,
        /// In which dialect.
        profile: ProfileName,
        /// With which shares.
        assignment: Arc<Assignment>,
    },
    /// Read a pod, to settle a doubt. Answered by `PodRead`.
    ReadPod {
        /// Which pod.
        pod: PodKey,
    },
    /// Say that a pod is bound.
    TellScheduled {
        /// Which pod.
        pod: PodKey,
        /// To which node.
        node: NodeName,
    },
    /// Say why a pod waits: condition and Event.
    TellUnschedulable {
        /// Which pod.
        pod: PodKey,
        /// Why.
        message: String,
    },
    /// Say that a node's agent gave no sign for a pod in time.
    TellSilent {
        /// Which pod.
        pod: PodKey,
        /// Whose agent.
        node: NodeName,
    },
}
