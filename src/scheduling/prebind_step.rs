//! What has to be written for one of a pod's claims before the pod is bound.

use std::sync::Arc;

use super::{plugin::volume_binding::VolumeChoice, resource_claims::ClaimChoice};

/// What has to be written for one of a pod's claims before the pod is bound, chosen together with the pod's node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PrebindStep {
    /// What binds a claim of a volume.
    Volume(VolumeChoice),
    /// What gives a claim its devices, or adds the pod to its users.
    Devices(ClaimChoice),
}

impl PrebindStep {
    /// The claim's name in the pod's namespace.
    pub fn claim(&self) -> &Arc<str> {
        match self {
            Self::Volume(choice) => choice.claim(),
            Self::Devices(choice) => &choice.claim,
        }
    }

    /// What binds a claim of a volume.
    pub fn volume(&self) -> Option<&VolumeChoice> {
        match self {
            Self::Volume(choice) => Some(choice),
            Self::Devices(_) => None,
        }
    }

    /// What a claim of devices is given.
    pub fn devices(&self) -> Option<&ClaimChoice> {
        match self {
            Self::Devices(choice) => Some(choice),
            Self::Volume(_) => None,
        }
    }
}
