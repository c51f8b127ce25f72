//! Everything that the scheduler wants done: one closed list.

use std::sync::Arc;

use jiff::Timestamp;

use super::{
    decide::comparison::ClaimComparison,
    finding::{Finding, NodeFindings},
    model::{
        extended_resources::ExtendedClaim,
        gang::GangName,
        name::NodeName,
        pod::PodKey,
        prebind_step::{PrebindStep, VolumeChoice},
    },
    plan::eviction::Eviction,
};
use crate::{
    device::{Allocation, DevicePlace, LockName, LockOwner, ProfileName},
    object::{
        ResourceClaim,
        pod::ExtendedResourceClaimStatus,
        resource_claim::AllocationResult,
        storage::{PersistentVolume, PersistentVolumeClaim},
    },
};

pub use super::model::outcome::REACH;

/// A write for one of a pod's claims, or one that takes it back: a compare-and-swap on the version of the object that is given, where one is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PrebindWrite {
    /// Bind the volume to a claim.
    BindVolume {
        /// The volume as it is known.
        volume: Arc<PersistentVolume>,
        /// The claim; `None`: the volume is free again.
        claim: Option<Arc<PersistentVolumeClaim>>,
    },
    /// Have a volume made for the claim.
    SelectNode {
        /// The claim as it is known.
        claim: Arc<PersistentVolumeClaim>,
        /// The node that can mount the volume; `None`: none is made.
        node: Option<NodeName>,
    },
    /// Keep a claim of devices from being removed while it has any.
    ProtectClaim {
        /// The claim as it is known.
        claim: Arc<ResourceClaim>,
    },
    /// Add the pod to the users of a claim of devices.
    ReserveClaim {
        /// The claim as it is known.
        claim: Arc<ResourceClaim>,
        /// The devices that the claim is given; `None`: it has some.
        allocation: Option<Arc<AllocationResult>>,
    },
    /// Take the pod from the users of a claim of devices.
    ReleaseClaim {
        /// The claim as it is known.
        claim: Arc<ResourceClaim>,
        /// Whether its devices are free again.
        deallocate: bool,
    },
    /// Create a claim that serves extended resources of the pod, which owns it.
    CreateClaim {
        /// Its name.
        claim: Arc<str>,
        /// What it asks for.
        made: Arc<ExtendedClaim>,
    },
    /// Let a claim of devices that is being deleted go although it has some.
    UnprotectClaim {
        /// The claim as it is known.
        claim: Arc<ResourceClaim>,
    },
    /// Delete a claim that served extended resources of the pod.
    DeleteClaim {
        /// The claim as it is known.
        claim: Arc<ResourceClaim>,
    },
    /// Write into the pod's status which claim serves its extended resources.
    StateClaim {
        /// The claim's name.
        claim: Arc<str>,
        /// The status; `None`: none does any more.
        status: Option<Arc<ExtendedResourceClaimStatus>>,
    },
}

impl PrebindWrite {
    /// Whether it gives a claim devices.
    pub fn gives_devices(&self) -> bool {
        matches!(self, Self::ReserveClaim { allocation: Some(_), .. })
    }

    /// Whether the claim is one of devices.
    pub fn is_of_devices(&self) -> bool {
        !matches!(self, Self::BindVolume { .. } | Self::SelectNode { .. })
    }

    /// Whether it is written to the pod.
    pub fn is_of_pod(&self) -> bool {
        matches!(self, Self::StateClaim { .. })
    }

    /// Whether the write carries out this step, or takes it back.
    pub fn is_of(&self, step: &PrebindStep) -> bool {
        match (self, step) {
            (
                Self::BindVolume { volume, .. },
                PrebindStep::Volume(VolumeChoice::Bind { volume: chosen, .. }),
            ) => volume.metadata.name == **chosen,
            (
                Self::SelectNode { claim, .. },
                PrebindStep::Volume(VolumeChoice::Provision { claim: chosen }),
            ) => claim.metadata.name == **chosen,
            (
                Self::ProtectClaim { claim }
                | Self::ReserveClaim { claim, .. }
                | Self::ReleaseClaim { claim, .. }
                | Self::UnprotectClaim { claim }
                | Self::DeleteClaim { claim },
                PrebindStep::Devices(_) | PrebindStep::Extended(_),
            ) => claim.metadata.name == **step.claim(),
            (
                Self::CreateClaim { claim, .. } | Self::StateClaim { claim, .. },
                PrebindStep::Extended(chosen),
            ) => *claim == chosen.claim,
            _ => false,
        }
    }
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
        /// Which pod.
        pod: PodKey,
        /// Why.
        message: String,
    },
    /// Compare the claims of a pod with devices. Nothing is written. Answered by `ClaimsCompared`.
    CompareClaims(ClaimComparison),
    /// Read a pod, to settle a doubt. Answered by `PodRead`.
    ReadPod {
        /// Which pod.
        pod: PodKey,
    },
    /// Read a node and then the pods on it, to settle a doubt. Answered by `NodeRead`.
    ReadNode {
        /// Which node.
        node: NodeName,
    },
    /// Read the pod that a lock names and of which nothing was seen. Answered by `HolderRead`.
    ReadHolder {
        /// Whom the lock names.
        owner: LockOwner,
        /// Since when it is held.
        since: Timestamp,
    },
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
        /// Why.
        message: String,
    },
    /// Say that a node's agent could not give a pod its cards.
    TellFailedAllocation {
        /// Which pod.
        pod: PodKey,
        /// On which node.
        node: NodeName,
    },
    /// Say what a pod at the head of a line waits for.
    TellWaiting {
        /// Which pod.
        pod: PodKey,
        /// What for.
        message: String,
    },
    /// Say that a node's agent gave no sign for a pod in time.
    TellSilent {
        /// Which pod.
        pod: PodKey,
        /// Whose agent.
        node: NodeName,
    },
    /// Report something wrong that is new, to those whom it concerns.
    ReportFinding {
        /// The pod, node or namespace that it concerns.
        of: Concern,
        /// What is wrong.
        finding: Finding,
    },
    /// Keep the account of what is wrong on a node.
    CountFindings {
        /// On which node.
        node: NodeName,
        /// All of it; nothing: all is well again.
        findings: NodeFindings,
    },
    /// Keep for administrators what the message of a pod leaves out.
    ReportDetails {
        /// Which pod.
        pod: PodKey,
        /// The message in full.
        message: String,
    },
}

/// Whom a finding is about.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Concern {
    /// A pod.
    Pod(PodKey),
    /// A node.
    Node(NodeName),
    /// A namespace.
    Namespace(Arc<str>),
}
