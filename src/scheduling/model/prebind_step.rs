//! What has to be written for one of a pod's claims before the pod is bound.

use std::sync::Arc;

use super::{claim_use::ClaimConsumer, extended_resources::ExtendedChoice, resources::ResourceAmounts};
use crate::object::{ResourceClaim, pod::NodeAllocatableClaimStatus, resource_claim::AllocationResult};

/// What has to be written for one of a pod's claims before the pod is bound, chosen together with the pod's node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PrebindStep {
    /// What binds a claim of a volume.
    Volume(VolumeChoice),
    /// What gives a claim its devices, or adds the pod to its users.
    Devices(ClaimChoice),
    /// What has a claim serve extended resources of the pod.
    Extended(ExtendedChoice),
    /// What claims take of the node's own resources, as the pod's status says it.
    NodeResources(NodeResourcesChoice),
}

impl PrebindStep {
    /// The claim's name in the pod's namespace; of what claims take of the node, the name of the first.
    pub fn claim(&self) -> &Arc<str> {
        match self {
            Self::Volume(choice) => choice.claim(),
            Self::Devices(choice) => &choice.claim,
            Self::Extended(choice) => &choice.claim,
            Self::NodeResources(choice) => &choice.claim,
        }
    }

    /// What binds a claim of a volume.
    pub fn volume(&self) -> Option<&VolumeChoice> {
        match self {
            Self::Volume(choice) => Some(choice),
            Self::Devices(_) | Self::Extended(_) | Self::NodeResources(_) => None,
        }
    }

    /// What a claim of devices is given.
    pub fn devices(&self) -> Option<&ClaimChoice> {
        match self {
            Self::Devices(choice) => Some(choice),
            Self::Volume(_) | Self::Extended(_) | Self::NodeResources(_) => None,
        }
    }

    /// Whether it is of a claim of devices whose user is the pod's PodGroup.
    pub fn is_for_group(&self) -> bool {
        self.devices().is_some_and(|choice| choice.consumer.group().is_some())
    }

    /// The claim that serves extended resources.
    pub fn extended(&self) -> Option<&ExtendedChoice> {
        match self {
            Self::Extended(choice) => Some(choice),
            Self::Volume(_) | Self::Devices(_) | Self::NodeResources(_) => None,
        }
    }

    /// What claims take of the node's own resources.
    pub fn node_resources(&self) -> Option<&NodeResourcesChoice> {
        match self {
            Self::NodeResources(choice) => Some(choice),
            Self::Volume(_) | Self::Devices(_) | Self::Extended(_) => None,
        }
    }

    /// The claim that is given devices, and which.
    pub fn given(&self) -> Option<(&Arc<str>, &Arc<AllocationResult>)> {
        match self {
            Self::Volume(_) | Self::NodeResources(_) => None,
            Self::Devices(choice) => Some((&choice.claim, choice.allocation.as_ref()?)),
            Self::Extended(choice) => Some((&choice.claim, &choice.made.as_ref()?.1)),
        }
    }
}

/// What binds a claim with the pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum VolumeChoice {
    /// This volume is bound to the claim.
    Bind {
        /// The claim's name.
        claim: Arc<str>,
        /// The volume's name.
        volume: Arc<str>,
    },
    /// A volume is made for the claim on the pod's node.
    Provision {
        /// The claim's name.
        claim: Arc<str>,
    },
}

impl VolumeChoice {
    /// The claim's name.
    pub fn claim(&self) -> &Arc<str> {
        let (Self::Bind { claim, .. } | Self::Provision { claim }) = self;
        claim
    }
}

/// Devices that a pod is given with its node for one of its claims.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClaimChoice {
    /// The claim's name in the pod's namespace.
    pub claim: Arc<str>,
    /// The claim's uid: another claim of this name may ask for other devices.
    pub uid: Arc<str>,
    /// The devices; `None`: the claim has them already, and the pod is to be added to its users.
    pub allocation: Option<Arc<AllocationResult>>,
    /// Whom the claim's status names as the user.
    pub consumer: ClaimConsumer,
}

impl ClaimChoice {
    /// This claim with these devices; `None`: it has some already.
    pub fn of(
        claim: &ResourceClaim,
        allocation: Option<Arc<AllocationResult>>,
        consumer: ClaimConsumer,
    ) -> Self {
        let (name, uid) = (claim.metadata.name.as_str().into(), claim.metadata.uid.as_str().into());
        Self { claim: name, uid, allocation, consumer }
    }
}

/// What claims take of the node that was chosen for a pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NodeResourcesChoice {
    /// The first of the claims, or of those of which the pod's status spoke before.
    pub claim: Arc<str>,
    /// What the pod's status is to say, in order of the claims' names; nothing: none takes any.
    pub statuses: Arc<[NodeAllocatableClaimStatus]>,
    /// What the pod requests of the node with that.
    pub requested: Arc<ResourceAmounts>,
}
