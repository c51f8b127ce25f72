//! Why claims of devices keep a pod from a node.

use std::{borrow::Cow, fmt, sync::Arc};

use super::shortage::ClaimShortage;
use crate::scheduling::plugin::rejection::{Cure, Rejection};

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
    /// One can't be decided on, as this text says.
    Undecidable(Arc<str>),
    /// One can't be decided on for a device or a pool.
    OfDevice {
        /// Which, and why.
        why: Arc<str>,
        /// The same without the device or the pool.
        own: Arc<str>,
    },
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
            Self::Stale => "ResourceClaimStale",
            Self::Undecidable(_) | Self::OfDevice { .. } => "ResourceClaimUndecidable",
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
            Self::Off => Cure::Time,
            _ => Cure::Eviction,
        }
    }

    fn own_words(&self) -> String {
        match self {
            Self::OfDevice { own, .. } => own.to_string(),
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
            Self::Undecidable(why) | Self::OfDevice { why, .. } => why,
            Self::Off => {
                "resourceclaims are not served, since scheduling.claims.enabled is false in Berth's settings"
            }
            Self::Unfinished => "resourceclaims are still being compared with devices",
        })
    }
}
