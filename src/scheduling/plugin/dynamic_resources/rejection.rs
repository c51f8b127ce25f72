//! Why claims of devices keep a pod from a node.

use std::{borrow::Cow, fmt, sync::Arc};

use super::shortage::ClaimShortage;
use crate::{
    dra::AllocationError,
    scheduling::{
        model::resources::WholePodBound,
        plugin::rejection::{Cure, Rejection, Shortage},
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
    /// The devices of the one of this name stand for some of a node's own resources, and another pod uses them.
    Mapped(Arc<str>),
    /// The node has less of its own resources than the pod takes with its devices.
    Insufficient {
        /// The resource's name. Amounts are in thousandths for cpu, else in units.
        resource: Arc<str>,
        /// How much the pod requests with what its claims take.
        requested: i64,
        /// How much is free.
        free: i64,
        /// How much there is on the empty node.
        capacity: i64,
    },
    /// The containers take more of a resource with their devices than bounds the pod as a whole.
    BeyondWholePod {
        /// The resource.
        resource: Arc<str>,
        /// What is exceeded.
        bound: WholePodBound,
    },
    /// What the devices of the one of this name take of a node is no amount.
    UnreadableAmount {
        /// Its name.
        claim: Arc<str>,
        /// The resource, and what is wrong.
        reason: Arc<str>,
    },
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
            | Self::UnreadableAmount { .. }
            | Self::Undecidable(_) => "ResourceClaimUndecidable",
            Self::Insufficient { resource, .. } => return format!("Insufficient {resource}").into(),
            Self::Mapped(_) => "ResourceClaimMapped",
            Self::BeyondWholePod { .. } => "ResourceClaimBeyondPod",
            Self::Off => "ResourceClaimsOff",
            Self::Unfinished => "ResourceClaimUnfinished",
        };
        name.into()
    }

    fn kind(&self) -> Self {
        match self {
            Self::Short(_) => Self::Unallocatable,
            Self::Insufficient { resource, .. } => {
                Self::Insufficient { resource: resource.clone(), requested: 0, free: 0, capacity: 0 }
            }
            other => other.clone(),
        }
    }

    fn cure(&self) -> Cure {
        match self {
            Self::Off | Self::Stated(_) | Self::Mapped(_) | Self::BeyondWholePod { .. } => Cure::Time,
            Self::Insufficient { requested, capacity, .. } if requested > capacity => Cure::Nothing,
            _ => Cure::Eviction,
        }
    }

    fn shortage(&self) -> Option<Shortage<'_>> {
        match self {
            Self::Insufficient { resource, requested, free, .. } => {
                Some(Shortage { resource, requested: *requested, free: *free })
            }
            _ => None,
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
            Self::Mapped(claim) => {
                return write!(
                    formatter,
                    "resourceclaim {claim:?} stands for resources of its node, and another pod uses it"
                );
            }
            Self::Insufficient { resource, .. } => return write!(formatter, "Insufficient {resource}"),
            Self::BeyondWholePod { resource, bound } => {
                let bound = match bound {
                    WholePodBound::Request => "request",
                    WholePodBound::Limit => "limit",
                };
                return write!(
                    formatter,
                    "the pod's {bound} of {resource} as a whole is less than its containers take with the devices of their claims"
                );
            }
            Self::UnreadableAmount { claim, reason } => {
                return write!(
                    formatter,
                    "what the devices of resourceclaim {claim:?} take of a node can't be read: {reason}"
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
