//! Everything that a node's flow requests: one closed list.

use jiff::Timestamp;

use super::reason::{LineWait, NodeFailure};
use crate::{
    device::{LockName, LockOwner, ProfileName},
    scheduling::{
        model::{measure::Measure, name::Uid, pod::PodKey},
        world::node_state::Agent,
    },
};

/// Something that a node's flow requests. The requests of one input are carried out in their order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::scheduling) enum NodeFlowRequest {
    /// Decide the pod once more, on this node alone, and charge it with what it is given. Answered at once by
    /// [`Decided`](super::input::NodeFlowInput::Decided). It is the last request of an input.
    Decide(Uid),
    /// Find out whether the node would give the pod just what it is charged with. Answered as `Decide`.
    Judge(Uid),
    /// Take these locks for the pod, by one compare-and-swap on the node's version. Answered by `LockAnswered`.
    TakeLock {
        /// For which pod.
        pod: PodKey,
        /// The version that the node must still have.
        resource_version: String,
        /// Which locks.
        locks: Vec<LockName>,
        /// Since when they are to say that they are held.
        since: Timestamp,
    },
    /// Give locks back, if the node still has this version. Answered by `LockReleased`.
    ReleaseLock {
        /// The version that the node must still have.
        resource_version: String,
        /// Which locks.
        locks: Vec<LockName>,
    },
    /// Bind the pod with what it is charged with. Answered by `BindAnswered`.
    Bind(Uid),
    /// Withdraw what a dead pod still carries. Answered by `Withdrawn`.
    Withdraw {
        /// Which pod.
        pod: PodKey,
        /// In which dialects.
        profiles: Vec<ProfileName>,
    },
    /// Read the pod. Answered by `PodRead`.
    ReadPod(PodKey),
    /// Read the node and then its pods. Answered by `NodeRead`.
    ReadNode,
    /// Read the pod that a lock names. Answered by `HolderRead`.
    ReadHolder {
        /// Whom the lock names.
        owner: LockOwner,
        /// Since when it is held.
        since: Timestamp,
    },
    /// The pod is bound: charge it so.
    ConfirmBound(Uid),
    /// Take the decision for the pod back.
    Forget(Uid),
    /// Take the decision for the pod back, and decide it again.
    Requeue(Uid),
    /// Take the decision for the pod back, and decide it again after a backoff; report why, where that is known.
    BackOff(Uid, Option<NodeFailure>),
    /// Look for better nodes for the pods that wait: this one serves none, and has served none for longer than is usual.
    FindOtherNodes(Vec<Uid>),
    /// Note whether the node's device plugin answers: a silent one is given no pods.
    SetAgent(Agent),
    /// Note what was measured.
    Measure(Measure),
    /// Report that the pod is bound.
    TellScheduled(PodKey),
    /// Report what the pod at the head of the line waits for, if it still stands there.
    TellWaiting(Uid, LineWait),
    /// Report that the node's device plugin has not answered for a pod in time.
    TellSilent(PodKey),
    /// Report that the node's device plugin has failed to serve a pod.
    TellFailedAllocation(PodKey),
}
