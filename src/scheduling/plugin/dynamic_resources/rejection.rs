//! Why claims of devices keep a pod from a node.

use std::{borrow::Cow, fmt, sync::Arc};

use super::shortage::ClaimShortage;
use crate::{
    dra::AllocationError,
    scheduling::{
        plugin::rejection::{Cure, Rejection},
        world::resource_claims::MOST_CONSUMERS,
    },
};

/// Why a pod's claims keep it from a node.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ClaimRejection {
    /// The node has no devices for them.
    Unallocatable,
    /// The same, with what is missing.
    Short(Arc<ClaimShortage>),
    /// One was given devices that can't be used from the node.
    Elsewhere,
    /// The one for extended resources was made for another node.
    Stale,
    /// The one of this entry of the pod is still to be created.
    NotCreated {
        /// The entry.
        entry: Arc<str>,
        /// The PodGroup for which it is created; `None`: it is for the pod alone.
        group: Option<Arc<str>>,
    },
    /// The pod's status names this one for good, and the node needs none.
    Stated(Arc<str>),
    /// There is none of this name.
    NotFound(Arc<str>),
    /// The one of this name is being deleted.
    Terminating(Arc<str>),
    /// The one of this name was created for another pod or PodGroup.
    NotOwned {
        /// Its name.
        claim: Arc<str>,
        /// The PodGroup for which it should have been created; `None`: for the pod alone.
        group: Option<Arc<str>>,
    },
    /// The one of this name is used by as many pods as may use it.
    FullyReserved(Arc<str>),
    /// One can't be read, or devices can't be chosen for it.
    Undecidable(Arc<AllocationError>),
    /// Claims are not served, as the settings have it.
    Off,
    /// Comparing them with all devices takes longer than a decision may.
    Unfinished,
}

impl Rejection for ClaimRejection {
    fn name(&self) -> Cow<'static, str> {
        let name = match self {
            Self::Unallocatable | Self::Short(_) => "ResourceClaimUnallocatable",
            Self::Elsewhere => "ResourceClaimElsewhere",
            Self::Stale | Self::Stated(_) => "ResourceClaimStale",
            Self::NotCreated { .. }
            | Self::NotFound(_)
            | Self::Terminating(_)
            | Self::NotOwned { .. }
            | Self::FullyReserved(_)
            | Self::Undecidable(_) => "ResourceClaimUndecidable",
            Self::Off => "ResourceClaimsOff",
            Self::Unfinished => "ResourceClaimUnfinished",
        };
        name.into()
    }

    fn kind(&self) -> Self {
        match self {
            Self::Short(_) => Self::Unallocatable,
            other => other.clone(),
        }
    }

    fn cure(&self) -> Cure {
        match self {
            Self::Off | Self::Stated(_) => Cure::Time,
            _ => Cure::Eviction,
        }
    }

    fn own_words(&self) -> String {
        match self {
            Self::Undecidable(error) => error.without_devices().unwrap_or_else(|| error.to_string()),
            Self::Short(shortage) => shortage.own_words(),
            other => other.to_string(),
        }
    }

    fn own_detail(&self) -> Option<String> {
        matches!(self, Self::Short(_)).then(|| self.own_words())
    }
}

/// In kube-scheduler's words, where it has some.
impl fmt::Display for ClaimRejection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Unallocatable => "cannot allocate all claims",
            Self::Short(shortage) => return shortage.fmt(formatter),
            Self::Elsewhere => "resourceclaim not available on the node",
            Self::Stale => "cannot schedule extended resource claim",
            Self::Stated(claim) => {
                return write!(
                    formatter,
                    "node(s) would not use resourceclaim {claim:?}, which the API server keeps in the pod's status"
                );
            }
            Self::NotCreated { entry, group } => {
                let of = group.as_ref().map_or_else(String::new, |group| format!(" of PodGroup {group}"));
                return write!(formatter, "waiting for the resourceclaim of {entry:?}{of} to be created");
            }
            Self::NotFound(claim) => return write!(formatter, "resourceclaim {claim:?} not found"),
            Self::Terminating(claim) => return write!(formatter, "resourceclaim {claim:?} is being deleted"),
            Self::NotOwned { claim, group } => {
                let of = group.as_ref().map_or_else(String::new, |group| format!(" or its PodGroup {group}"));
                return write!(formatter, "resourceclaim {claim:?} was not created for this pod{of}");
            }
            Self::FullyReserved(claim) => {
                return write!(
                    formatter,
                    "resourceclaim {claim:?} is used by {MOST_CONSUMERS} pods, which is the most"
                );
            }
            Self::Undecidable(error) => return error.fmt(formatter),
            Self::Off => {
                "resourceclaims are not served, since scheduling.claims.enabled is false in Berth's settings"
            }
            Self::Unfinished => "resourceclaims are still being compared with devices",
        })
    }
}
