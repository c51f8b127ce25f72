//! Why a pod does not fit, as values: for each card and for each node. Text is made of them where they leave the process.

use std::{fmt, sync::Arc};

use super::{devices::Shortfall, tdm::Clock};
use super::{kind::Kind, plugin::Plugin};

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
            Self::CardMarkConflict => {
                "node(s) had only GPUs used by Pods that must not share a GPU with this Pod"
            }
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
    /// Another pod on it has a port that the pod needs.
    HostPortTaken,
    /// Another pod on it has a disk that the pod needs.
    DiskConflict,
    /// Its kubelet lacks a feature that the pod needs.
    FeatureMissing,
    /// It lacks the topology key of a spread constraint.
    SpreadLabelMissing,
    /// The pod would spread the constraint's pods too unevenly.
    SpreadSkew,
    /// It is in another zone or region than a volume.
    VolumeZone,
    /// It can't attach so many volumes.
    VolumeLimit,
    /// A volume that a claim is bound to does not exist.
    VolumeMissing,
    /// A volume that a claim is bound to can't be mounted there.
    VolumeNodeAffinity,
    /// No volume can be bound to a claim or made for it there.
    NoVolumeToBind,
    /// There is too little storage for a volume to be made there.
    StorageFull,
    /// Objects of these kinds, which decide on the pod's claims, are not known yet.
    StorageNotListed(Vec<Kind>),
    /// A claim of this name does not exist.
    ClaimMissing(Arc<str>),
    /// The claim of this name that lives as long as the pod does not exist yet.
    EphemeralClaimMissing(Arc<str>),
    /// The volume of the claim of this name is lost.
    ClaimLost(Arc<str>),
    /// The claim of this name is being deleted.
    ClaimDeleted(Arc<str>),
    /// The claim of this name was not made for the pod.
    ClaimNotOwned(Arc<str>),
    /// A claim is to be bound before the pod is placed, and is not.
    ClaimsUnbound,
    /// Another pod uses a claim that only one pod may use.
    ClaimInUse,
    /// Its claims of devices.
    ResourceClaims(crate::scheduling::model::claim_rejection::ClaimRejection),
    /// No pod that the pod must be near stands in its domain.
    PodAffinity,
    /// A pod that the pod must be away from stands in its domain.
    PodAntiAffinity,
    /// A pod that must be away from the pod stands in its domain.
    ExistingAntiAffinity,
    /// It is in a revocable zone, and the pod is not preemptable or may not use this zone.
    ZoneNotPermitted,
    /// It is in a revocable zone that is closed.
    ZoneClosed {
        /// The zone.
        zone: Arc<str>,
        /// When it opens; `None`: never.
        until: Option<Clock>,
    },
    /// It is in a revocable zone that closes before the pod could finish.
    ZoneClosesTooSoon {
        /// The zone.
        zone: Arc<str>,
        /// When it closes.
        until: Option<Clock>,
    },
    /// No device plugin of the pod's dialect runs there.
    NoDevices,
    /// What its device plugin registered can't be read.
    UnreadableDevices,
    /// Its device plugin reports itself from time to time and has not for too long.
    ExpiredRegistration,
    /// Its device plugin owes an answer for too long.
    SilentAgent,
    /// A pod on it holds cards that can't be identified: any card of the node may be full.
    UnreadableAssignment,
    /// It has fewer cards than one container asks for.
    NodeInsufficientDevice,
    /// Its typed devices do not serve the pod.
    Devices(Shortfall),
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
            Self::HostPortTaken => "NodePorts".to_owned(),
            Self::DiskConflict => "VolumeRestrictions".to_owned(),
            Self::FeatureMissing => "NodeDeclaredFeatures".to_owned(),
            Self::SpreadLabelMissing => "PodTopologySpreadMissingLabel".to_owned(),
            Self::SpreadSkew => "PodTopologySpread".to_owned(),
            Self::VolumeZone => "VolumeZone".to_owned(),
            Self::VolumeLimit => "NodeVolumeLimits".to_owned(),
            Self::VolumeMissing => "VolumeMissing".to_owned(),
            Self::VolumeNodeAffinity => "VolumeNodeAffinity".to_owned(),
            Self::NoVolumeToBind => "VolumeBinding".to_owned(),
            Self::StorageFull => "StorageFull".to_owned(),
            Self::StorageNotListed(_) => "StorageNotListed".to_owned(),
            Self::ClaimMissing(_) | Self::EphemeralClaimMissing(_) => "ClaimMissing".to_owned(),
            Self::ClaimLost(_) => "ClaimLost".to_owned(),
            Self::ClaimDeleted(_) => "ClaimDeleted".to_owned(),
            Self::ClaimNotOwned(_) => "ClaimNotOwned".to_owned(),
            Self::ClaimsUnbound => "ClaimsUnbound".to_owned(),
            Self::ClaimInUse => "ClaimInUse".to_owned(),
            Self::ResourceClaims(rejection) => rejection.name().to_owned(),
            Self::PodAffinity => "PodAffinity".to_owned(),
            Self::PodAntiAffinity => "PodAntiAffinity".to_owned(),
            Self::ExistingAntiAffinity => "ExistingPodAntiAffinity".to_owned(),
            Self::ZoneNotPermitted => "RevocableZoneNotPermitted".to_owned(),
            Self::ZoneClosed { .. } => "RevocableZoneClosed".to_owned(),
            Self::ZoneClosesTooSoon { .. } => "RevocableZoneClosesTooSoon".to_owned(),
            Self::NoDevices => "NodeUnregistered".to_owned(),
            Self::UnreadableDevices => "NodeRegistrationUnreadable".to_owned(),
            Self::ExpiredRegistration => "NodeRegistrationExpired".to_owned(),
            Self::SilentAgent => "NodeAgentSilent".to_owned(),
            Self::UnreadableAssignment => "NodeAssignmentUnreadable".to_owned(),
            Self::NodeInsufficientDevice => "NodeInsufficientDevice".to_owned(),
            Self::Devices(shortfall) => shortfall.to_string(),
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
            Self::HostPortTaken => Plugin::NodePorts,
            Self::DiskConflict | Self::ClaimInUse => Plugin::VolumeRestrictions,
            Self::VolumeLimit => Plugin::NodeVolumeLimits,
            Self::VolumeZone => Plugin::VolumeZone,
            Self::VolumeMissing
            | Self::VolumeNodeAffinity
            | Self::NoVolumeToBind
            | Self::StorageFull
            | Self::StorageNotListed(_)
            | Self::ClaimMissing(_)
            | Self::EphemeralClaimMissing(_)
            | Self::ClaimLost(_)
            | Self::ClaimDeleted(_)
            | Self::ClaimNotOwned(_)
            | Self::ClaimsUnbound => Plugin::VolumeBinding,
            Self::ResourceClaims(_) => Plugin::DynamicResources,
            Self::FeatureMissing => Plugin::NodeDeclaredFeatures,
            Self::SpreadLabelMissing | Self::SpreadSkew => Plugin::PodTopologySpread,
            Self::PodAffinity | Self::PodAntiAffinity | Self::ExistingAntiAffinity => {
                Plugin::InterPodAffinity
            }
            Self::ZoneNotPermitted | Self::ZoneClosed { .. } | Self::ZoneClosesTooSoon { .. } => Plugin::Tdm,
            Self::NoDevices
            | Self::UnreadableDevices
            | Self::ExpiredRegistration
            | Self::SilentAgent
            | Self::UnreadableAssignment
            | Self::NodeInsufficientDevice
            | Self::Devices(_)
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

    /// Its words without the devices and pools that they name, which are not the pod's owner's.
    pub fn own_words(&self) -> String {
        match self {
            Self::ResourceClaims(rejection) => rejection.own_words(),
            other => other.to_string(),
        }
    }

    /// The words of a closed zone; of others none.
    fn fmt_zone(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZoneClosed { zone, until: Some(until) } => {
                write!(formatter, "node(s) in revocable zone {zone} closed until {until}")
            }
            Self::ZoneClosed { zone, until: None } => {
                write!(formatter, "node(s) in revocable zone {zone}, which has no window")
            }
            Self::ZoneClosesTooSoon { zone, until } => {
                write!(formatter, "node(s) in revocable zone {zone}, which closes")?;
                until.iter().try_for_each(|until| write!(formatter, " at {until}"))?;
                write!(formatter, ", before the Pod could finish")
            }
            _ => Ok(()),
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
            Self::HostPortTaken => "node(s) didn't have free ports for the requested pod ports",
            Self::DiskConflict => "node(s) had no available disk",
            Self::FeatureMissing => "node(s) didn't match Pod's required features",
            Self::SpreadLabelMissing => {
                "node(s) didn't match pod topology spread constraints (missing required label)"
            }
            Self::SpreadSkew => "node(s) didn't match pod topology spread constraints",
            Self::VolumeZone => "node(s) had no available volume zone",
            Self::VolumeLimit => "node(s) exceed max volume count",
            Self::VolumeMissing => "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
            Self::VolumeNodeAffinity => "node(s) didn't match PersistentVolume's node affinity",
            Self::NoVolumeToBind => "node(s) didn't find available persistent volumes to bind",
            Self::StorageFull => "node(s) did not have enough free storage",
            Self::StorageNotListed(kinds) => {
                let kinds: Vec<_> = kinds.iter().map(|kind| kind.resource()).collect();
                return write!(formatter, "these are not listed yet: {}", kinds.join(", "));
            }
            Self::ClaimMissing(name) => return write!(formatter, "persistentvolumeclaim {name:?} not found"),
            Self::EphemeralClaimMissing(name) => {
                let what = "waiting for ephemeral volume controller to create the persistentvolumeclaim";
                return write!(formatter, "{what} {name:?}");
            }
            Self::ClaimLost(name) => {
                return write!(formatter, "persistentvolumeclaim {name:?} bound to a non-existent persistentvolume");
            }
            Self::ClaimDeleted(name) => {
                return write!(formatter, "persistentvolumeclaim {name:?} is being deleted");
            }
            Self::ClaimNotOwned(name) => {
                return write!(formatter, "persistentvolumeclaim {name:?} was not created for the pod");
            }
            Self::ClaimsUnbound => "pod has unbound immediate PersistentVolumeClaims",
            Self::ClaimInUse => {
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
            }
            Self::ResourceClaims(rejection) => return write!(formatter, "{rejection}"),
            Self::PodAffinity => "node(s) didn't match pod affinity rules",
            Self::PodAntiAffinity => "node(s) didn't match pod anti-affinity rules",
            Self::ExistingAntiAffinity => "node(s) didn't satisfy existing pods anti-affinity rules",
            Self::ZoneNotPermitted => "node(s) were in a revocable zone that the Pod may not use",
            Self::ZoneClosed { .. } | Self::ZoneClosesTooSoon { .. } => return self.fmt_zone(formatter),
            Self::NoDevices => "node(s) had no GPUs of the kind that the Pod asks for",
            Self::UnreadableDevices => "node(s) had an unreadable GPU registration",
            Self::ExpiredRegistration => "node(s) had a device plugin that has stopped reporting",
            Self::SilentAgent => "node(s) had a device plugin that does not answer",
            Self::UnreadableAssignment => "node(s) had a Pod with an unreadable GPU assignment",
            Self::NodeInsufficientDevice => "node(s) had fewer GPUs than one container asks for",
            Self::Devices(shortfall) => return write!(formatter, "{shortfall}"),
            Self::Card { reason, .. } => reason.words(),
            Self::AllocatedCardsInsufficientRequest { .. } => "node(s) had too few GPUs with enough room",
        })
    }
}

/// Why one node can't serve one pod: every reason of the first test that it failed.
pub type NodeReasons = Vec<Reason>;
