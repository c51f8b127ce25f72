//! Why a pod does not fit, as values: for each card and for each node. Text is made of them where they leave the process.

use std::{fmt, sync::Arc};

use super::plugin::Plugin;

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
            Self::CardMarkConflict => "node(s) had only GPUs left that a Pod kept apart from this one uses",
            Self::ResourceQuotaNotFit => "GPU quota of the namespace exceeded",
            Self::CardMigTopologyInfeasible => "node(s) had no free MIG slice of the size",
        }
    }
}

/// Why one node can't serve one pod.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Reason {
    /// It is cordoned.
    Unschedulable,
    /// It has a taint that the pod does not tolerate.
    UntoleratedTaint,
    /// The pod's node selector or node affinity does not match it.
    AffinityMismatch,
    /// It has as many pods as it may have.
    TooManyPods,
    /// It has too little of a resource. Amounts are in thousandths for cpu, else in units.
    Insufficient {
        /// The resource's name.
        resource: Arc<str>,
        /// How much the pod requests.
        requested: i64,
        /// How much is free.
        free: i64,
        /// How much there is on the empty node.
        capacity: i64,
    },
    /// No device plugin of the pod's dialect runs there.
    NoDevices,
    /// What its device plugin registered can't be read.
    UnreadableDevices,
    /// Its device plugin reports itself from time to time and has not for too long.
    ExpiredRegistration,
    /// Its device plugin owes an answer for too long.
    SilentAgent,
    /// A pod on it holds cards that nobody can tell: any of them may be full.
    UnreadableAssignment,
    /// It has fewer cards than one container asks for.
    NodeInsufficientDevice,
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
    AllocatedCardsInsufficientRequest {
        /// How many fit.
        count: usize,
        /// How many there are.
        of: usize,
    },
}

impl Reason {
    /// Whether it is about the node's cards: what a pod asks of them may be changed.
    pub fn is_of_cards(&self) -> bool {
        matches!(
            self,
            Self::NodeInsufficientDevice | Self::Card { .. } | Self::AllocatedCardsInsufficientRequest { .. }
        )
    }

    /// The name, as `berth simulate --explain` prints it.
    pub fn name(&self) -> String {
        match self {
            Self::Unschedulable => "NodeUnschedulable".to_owned(),
            Self::UntoleratedTaint => "TaintToleration".to_owned(),
            Self::AffinityMismatch => "NodeAffinity".to_owned(),
            Self::TooManyPods => "TooManyPods".to_owned(),
            Self::Insufficient { resource, .. } => format!("Insufficient {resource}"),
            Self::NoDevices => "NodeUnregistered".to_owned(),
            Self::UnreadableDevices => "NodeRegistrationUnreadable".to_owned(),
            Self::ExpiredRegistration => "NodeRegistrationExpired".to_owned(),
            Self::SilentAgent => "NodeAgentSilent".to_owned(),
            Self::UnreadableAssignment => "NodeAssignmentUnreadable".to_owned(),
            Self::NodeInsufficientDevice => "NodeInsufficientDevice".to_owned(),
            Self::Card { reason, .. } => reason.name().to_owned(),
            Self::AllocatedCardsInsufficientRequest { .. } => "AllocatedCardsInsufficientRequest".to_owned(),
        }
    }

    /// The plugin that rejects the node for it.
    pub fn plugin(&self) -> Plugin {
        match self {
            Self::Unschedulable => Plugin::NodeUnschedulable,
            Self::UntoleratedTaint => Plugin::TaintToleration,
            Self::AffinityMismatch => Plugin::NodeAffinity,
            Self::TooManyPods | Self::Insufficient { .. } => Plugin::NodeResourcesFit,
            Self::NoDevices
            | Self::UnreadableDevices
            | Self::ExpiredRegistration
            | Self::SilentAgent
            | Self::UnreadableAssignment
            | Self::NodeInsufficientDevice
            | Self::Card { .. }
            | Self::AllocatedCardsInsufficientRequest { .. } => Plugin::Devices,
        }
    }

    /// The reason without the amounts of one node: nodes are counted together that fail for the same.
    #[must_use]
    pub fn kind(&self) -> Self {
        match self {
            Self::Insufficient { resource, .. } => {
                Self::Insufficient { resource: resource.clone(), requested: 0, free: 0, capacity: 0 }
            }
            Self::Card { reason, .. } => Self::Card { reason: *reason, count: 0, of: 0 },
            Self::AllocatedCardsInsufficientRequest { .. } => {
                Self::AllocatedCardsInsufficientRequest { count: 0, of: 0 }
            }
            other => other.clone(),
        }
    }
}

/// In kube-scheduler's words, where it has some.
impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Unschedulable => "node(s) were unschedulable",
            Self::UntoleratedTaint => "node(s) had untolerated taint(s)",
            Self::AffinityMismatch => "node(s) didn't match Pod's node affinity/selector",
            Self::TooManyPods => "Too many pods",
            Self::Insufficient { resource, .. } => return write!(formatter, "Insufficient {resource}"),
            Self::NoDevices => "node(s) had no GPUs of the kind that the Pod asks for",
            Self::UnreadableDevices => "node(s) had an unreadable GPU registration",
            Self::ExpiredRegistration => "node(s) had a device plugin that has stopped reporting",
            Self::SilentAgent => "node(s) had a device plugin that does not answer",
            Self::UnreadableAssignment => "node(s) had a Pod with an unreadable GPU assignment",
            Self::NodeInsufficientDevice => "node(s) had fewer GPUs than one container asks for",
            Self::Card { reason, .. } => reason.words(),
            Self::AllocatedCardsInsufficientRequest { .. } => "node(s) had too few GPUs with enough room",
        })
    }
}

/// Why one node can't serve one pod: every reason of the first test that it failed.
pub type NodeReasons = Vec<Reason>;
