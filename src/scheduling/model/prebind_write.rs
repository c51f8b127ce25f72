//! A write for one of a pod's claims before the pod is bound.

use std::sync::Arc;

use super::{
    claim_use::ClaimConsumer,
    extended_resources::ExtendedClaim,
    name::NodeName,
    prebind_step::{PrebindStep, VolumeChoice},
};
use crate::object::{
    ResourceClaim,
    pod::{ExtendedResourceClaimStatus, NodeAllocatableClaimStatus},
    resource_claim::AllocationResult,
    storage::{PersistentVolume, PersistentVolumeClaim},
};

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
    /// Add the pod, or its PodGroup, to the users of a claim of devices.
    ReserveClaim {
        /// The claim as it is known.
        claim: Arc<ResourceClaim>,
        /// Which of the two.
        consumer: ClaimConsumer,
        /// The devices that the claim is given; `None`: it has some.
        allocation: Option<Arc<AllocationResult>>,
    },
    /// Take the pod, or its PodGroup, from the users of a claim of devices.
    ReleaseClaim {
        /// The claim as it is known.
        claim: Arc<ResourceClaim>,
        /// Which of the two.
        consumer: ClaimConsumer,
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
    /// Write into the pod's status what claims take of the node's own resources.
    StateNodeResources {
        /// The version of the pod as it is known: what it states then is what is replaced.
        version: String,
        /// For each claim; none: none takes any.
        statuses: Arc<[NodeAllocatableClaimStatus]>,
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

    /// Whether it writes into the pod's status which claim serves its extended resources.
    pub fn states_claim(&self) -> bool {
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
            (Self::StateNodeResources { .. }, PrebindStep::NodeResources(_)) => true,
            _ => false,
        }
    }
}
