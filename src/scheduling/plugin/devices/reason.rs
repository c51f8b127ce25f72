//! Why a node's cards and devices do not serve a pod.

use std::{borrow::Cow, fmt};

use crate::scheduling::{
    model::devices::Shortfall,
    plugin::rejection::{Cure, FilterStage, Rejection},
};

/// Why one card can't serve one container. The names are HAMi's, so that people find them again.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum CardReason {
    /// Its plugin says that it does not work.
    CardNotHealth,
    /// An operator keeps new pods off it.
    CardCordoned,
    /// Its model is not one that the pod wants.
    CardTypeMismatch,
    /// Its uuid is not one that the pod wants.
    CardUuidMismatch,
    /// It is sliced in a way that the pod does not want or that is not served.
    ModeNotFit,
    /// It hangs on another NUMA node than enough others.
    NumaNotFit,
    /// All its slots are taken.
    CardTimeSlicingExhausted,
    /// A pod that this one shares no card with uses it.
    CardMarkConflict,
    /// The namespace's quota leaves too little.
    ResourceQuotaNotFit,
    /// It has too little free memory.
    CardInsufficientMemory,
    /// It has too little free compute.
    CardInsufficientCore,
    /// One of both wants the card for itself.
    ExclusiveDeviceAllocateConflict,
    /// All its compute is given away.
    CardComputeUnitsExhausted,
    /// No hardware slice of it is free and large enough.
    CardMigTopologyInfeasible,
}

impl CardReason {
    /// Whether the card is not what the pod asks for, whatever is in use of it.
    const fn is_of_the_card_itself(self) -> bool {
        matches!(self, Self::CardTypeMismatch | Self::CardUuidMismatch | Self::ModeNotFit)
    }

    /// The name, as `berth simulate --explain` prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::CardNotHealth => "CardNotHealth",
            Self::CardCordoned => "CardCordoned",
            Self::CardTypeMismatch => "CardTypeMismatch",
            Self::CardUuidMismatch => "CardUuidMismatch",
            Self::ModeNotFit => "ModeNotFit",
            Self::CardTimeSlicingExhausted => "CardTimeSlicingExhausted",
            Self::CardInsufficientMemory => "CardInsufficientMemory",
            Self::CardInsufficientCore => "CardInsufficientCore",
            Self::ExclusiveDeviceAllocateConflict => "ExclusiveDeviceAllocateConflict",
            Self::CardComputeUnitsExhausted => "CardComputeUnitsExhausted",
            Self::NumaNotFit => "NumaNotFit",
            Self::CardMarkConflict => "CardMarkConflict",
            Self::ResourceQuotaNotFit => "ResourceQuotaNotFit",
            Self::CardMigTopologyInfeasible => "CardMigTopologyInfeasible",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::CardNotHealth => "node(s) had only unhealthy GPUs left",
            Self::CardCordoned => "node(s) had only cordoned GPUs left",
            Self::CardTypeMismatch => "node(s) didn't match Pod's GPU type",
            Self::CardUuidMismatch => "node(s) didn't match Pod's GPU UUIDs",
            Self::ModeNotFit => "node(s) didn't match Pod's GPU mode",
            Self::CardTimeSlicingExhausted => "node(s) had no free slot on a GPU",
            Self::CardInsufficientMemory => "Insufficient GPU memory",
            Self::CardInsufficientCore => "Insufficient GPU cores",
            Self::ExclusiveDeviceAllocateConflict => "node(s) had no GPU free for exclusive use",
            Self::CardComputeUnitsExhausted => "node(s) had no GPU cores left",
            Self::NumaNotFit => "node(s) had too few GPUs on one NUMA node",
            Self::CardMarkConflict => {
                "node(s) had only GPUs used by Pods that must not share a GPU with this Pod"
            }
            Self::ResourceQuotaNotFit => "GPU quota of the namespace exceeded",
            Self::CardMigTopologyInfeasible => "node(s) had no free MIG slice of the size",
        }
    }
}

/// Why a node's cards or devices do not serve a pod.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum DeviceReason {
    /// No device plugin of the pod's dialect runs there.
    Unregistered,
    /// What its device plugin registered can't be read.
    Unreadable,
    /// Its device plugin reports itself from time to time and has not for too long.
    Expired,
    /// Its device plugin owes an answer for too long.
    SilentAgent,
    /// A pod on it holds cards that can't be identified: any card of the node may be full.
    UnreadableAssignment,
    /// It has fewer cards than one container asks for.
    TooFewCards,
    /// Its typed devices do not serve the pod.
    Typed(Shortfall),
    /// So many of its cards fail this test.
    Card {
        /// The test.
        reason: CardReason,
        /// How many cards fail it.
        count: usize,
        /// How many cards there are.
        of: usize,
    },
    /// Some cards fit, but fewer than the container asks for.
    TooFewCardsFit {
        /// How many fit.
        count: usize,
        /// How many there are.
        of: usize,
    },
}

impl DeviceReason {
    /// Whether it is about the node's cards: what a pod asks of them may be changed.
    pub const fn is_of_cards(self) -> bool {
        matches!(self, Self::TooFewCards | Self::Card { .. } | Self::TooFewCardsFit { .. })
    }

    /// How many cards it concerns, of how many.
    pub const fn cards(self) -> Option<(usize, usize)> {
        match self {
            Self::Card { count, of, .. } | Self::TooFewCardsFit { count, of } => Some((count, of)),
            _ => None,
        }
    }
}

impl Rejection for DeviceReason {
    fn name(&self) -> Cow<'static, str> {
        match self {
            Self::Unregistered => "NodeUnregistered".into(),
            Self::Unreadable => "NodeRegistrationUnreadable".into(),
            Self::Expired => "NodeRegistrationExpired".into(),
            Self::SilentAgent => "NodeAgentSilent".into(),
            Self::UnreadableAssignment => "NodeAssignmentUnreadable".into(),
            Self::TooFewCards => "NodeInsufficientDevice".into(),
            Self::Typed(shortfall) => shortfall.to_string().into(),
            Self::Card { reason, .. } => reason.name().into(),
            Self::TooFewCardsFit { .. } => "AllocatedCardsInsufficientRequest".into(),
        }
    }

    fn kind(&self) -> Self {
        match *self {
            Self::Card { reason, .. } => Self::Card { reason, count: 0, of: 0 },
            Self::TooFewCardsFit { .. } => Self::TooFewCardsFit { count: 0, of: 0 },
            other => other,
        }
    }

    fn cure(&self) -> Cure {
        match *self {
            Self::Unregistered | Self::TooFewCards => Cure::Nothing,
            Self::Card { reason, count, of } if reason.is_of_the_card_itself() => {
                Cure::NothingOnCards { count, of }
            }
            _ => Cure::Eviction,
        }
    }

    fn stage(&self) -> Option<FilterStage> {
        match self {
            Self::Card { reason: CardReason::ResourceQuotaNotFit, .. } => Some(FilterStage::Quota),
            _ => Some(FilterStage::Node),
        }
    }
}

impl fmt::Display for DeviceReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Unregistered => "node(s) had no GPUs of the kind that the Pod asks for",
            Self::Unreadable => "node(s) had an unreadable GPU registration",
            Self::Expired => "node(s) had a device plugin that has stopped reporting",
            Self::SilentAgent => "node(s) had a device plugin that does not answer",
            Self::UnreadableAssignment => "node(s) had a Pod with an unreadable GPU assignment",
            Self::TooFewCards => "node(s) had fewer GPUs than one container asks for",
            Self::Typed(shortfall) => return write!(formatter, "{shortfall}"),
            Self::Card { reason, .. } => reason.words(),
            Self::TooFewCardsFit { .. } => "node(s) had too few GPUs with enough room",
        })
    }
}
