//! Everything that the scheduler wants done: one closed list.

use std::sync::Arc;

use jiff::Timestamp;

use super::{
    decide::comparison::ClaimComparison,
    finding::{Concern, Finding, NodeFindings},
    model::{
        gang::GangName, group_statement::GroupStatement, kept_room::RoomStatus, name::NodeName, pod::PodKey,
    },
    node_flow::LineWait,
    packing::renewal::Renewal,
    pending::PendingReason,
    plan::eviction::{Eviction, Postponed},
};
use crate::device::{Allocation, DevicePlace, LockName, LockOwner, ProfileName};

pub use super::model::{outcome::REACH, prebind_write::PrebindWrite};

/// Something to be read at the API server, to settle a doubt.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ReadRequest {
    /// A pod.
    Pod(PodKey),
    /// A node and then the pods on it.
    Node(NodeName),
    /// The pod that a lock names and of which nothing was seen.
    Holder {
        /// Whom the lock names.
        owner: LockOwner,
        /// Since when it is held.
        since: Timestamp,
    },
}

/// What a node's agent has not done for a pod.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AgentFailure {
    /// It could not give the pod its cards.
    Allocation,
    /// It gave no sign in time.
    Silence,
}

/// Something to be done at the API server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Effect {
    /// Take all locks that a pod needs on a node, by one compare-and-swap on this version of the node. Answered by `LockAnswered`.
    TakeLock {
        /// For which pod.
        pod: PodKey,
        /// On which node.
        node: NodeName,
        /// The version that the node must still have.
        resource_version: String,
        /// Which locks; dialects may have one in common.
        locks: Vec<LockName>,
        /// Since when they are to say that they are held.
        since: Timestamp,
    },
    /// Give locks of the node back in one write, if the node still has this version. Answered by `LockReleased`.
    ReleaseLock {
        /// On which node.
        node: NodeName,
        /// The version that the node must still have.
        resource_version: String,
        /// Which locks; dialects may have one in common.
        locks: Vec<LockName>,
    },
    /// Bind a pod with its assignments in one write. Answered by `BindAnswered`.
    Bind {
        /// Which pod.
        pod: PodKey,
        /// To which node.
        node: NodeName,
        /// With which shares, one allocation for each dialect.
        allocations: Vec<Allocation>,
        /// The devices of the node, where the pod is given devices by type.
        devices: Option<DevicePlace>,
        /// The revocable zone that the node is in: what may be evicted from there once is so from then on.
        zone: Option<Arc<str>>,
    },
    /// Write what one of a pod's claims needs before the pod is bound. Answered by `Prebound`.
    Prebind {
        /// For which pod.
        pod: PodKey,
        /// What.
        write: PrebindWrite,
    },
    /// Write into a pod's status which node is kept for it. Answered by `Nominated`.
    Nominate {
        /// Which pod.
        pod: PodKey,
        /// The node; `None`: none is any more.
        node: Option<NodeName>,
        /// What became of the room that is kept for it because it waits long; `None`: what the status says of it stays.
        room: Option<RoomStatus>,
    },
    /// Delete a pod to make room for another: its condition `DisruptionTarget` is written first. Answered by `Preempted`.
    Preempt {
        /// The pod that must go.
        pod: PodKey,
        /// Its node.
        node: NodeName,
        /// The pod that needs the room.
        preemptor: PodKey,
    },
    /// Withdraw, in one write, the assignments of a pod that died before its allocation. Answered by `Withdrawn`.
    Withdraw {
        /// Which pod.
        pod: PodKey,
        /// On which node.
        node: NodeName,
        /// In which dialects.
        profiles: Vec<ProfileName>,
    },
    /// Evict a pod from a node whose revocable zone is closed, through the Eviction API. Answered by `EvictionAnswered`.
    EvictFromZone {
        /// Which pod, and why.
        eviction: Eviction,
    },
    /// Evict a bound pod of a gang that could not be bound as a whole in time, through the Eviction API. It is sent again until the pod is
    /// seen to go.
    RollBack {
        /// Which pod.
        pod: PodKey,
        /// Its gang.
        gang: GangName,
    },
    /// Say why a pod of a closed zone is not evicted yet.
    TellEvictionPostponed {
        /// Which pod, and why.
        postponed: Postponed,
    },
    /// Compare the claims of a pod with devices. Nothing is written. Answered by `Computed`.
    CompareClaims(ClaimComparison),
    /// Value rooms for the pods that may come by now, so that no decision has to. Nothing is written. Answered by `Computed`.
    RenewMix(Renewal),
    /// Read something, to settle a doubt. Answered by `Read`.
    Read(ReadRequest),
    /// Say that a pod is bound.
    TellScheduled {
        /// Which pod.
        pod: PodKey,
        /// To which node.
        node: NodeName,
    },
    /// Say why a pod waits: condition and Event, if the pod still has this version. Answered by `Told`.
    TellUnschedulable {
        /// Which pod.
        pod: PodKey,
        /// The version that the pod must still have.
        resource_version: String,
        /// What its condition says at this version. One that says just this is not written again.
        told: Option<String>,
        /// Whether nothing was said of it before. What the text leaves out is then reported, even where the condition says just this.
        first: bool,
        /// Why.
        reason: PendingReason,
    },
    /// Say what a node's agent has not done for a pod.
    TellAgent {
        /// Which pod.
        pod: PodKey,
        /// Whose agent.
        node: NodeName,
        /// What it has not done.
        failure: AgentFailure,
    },
    /// Say in the status of a PodGroup of Kubernetes whether its pods are placed.
    TellGroup(GroupStatement),
    /// Say what a pod at the head of a line waits for.
    TellWaiting {
        /// Which pod.
        pod: PodKey,
        /// What for.
        wait: LineWait,
    },
    /// Report a new finding on the object that it concerns.
    ReportFinding {
        /// The pod, node or namespace that it concerns.
        of: Concern,
        /// What is wrong.
        finding: Finding,
    },
    /// Update the counts of what is wrong on a node.
    CountFindings {
        /// On which node.
        node: NodeName,
        /// Everything that is wrong there now; empty: nothing is.
        findings: NodeFindings,
    },
}
