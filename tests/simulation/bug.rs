//! Deliberate bugs, each with the story that shows it.
//!
//! It must not say how Berth is made to have them ([`crate::lie`]).

use crate::{
    stories::{
        ALLOCATORS, CLAIM_RANKS, CLAIMS, CLASSES, DEVICES, DOUBT, ENDS, GAPS, HANDOVERS, LATE, LEADS, LOCKS,
        MACHINES, NAMES, NEIGHBOURS, PLACES, QUOTAS, RANKS, RECALLS, RIVALS, SHARERS, TEAMS, TREES, USERS,
        WINDOWS, ZONES,
    },
    story::{GENERAL, Story},
};

/// A bug that Berth could have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Bug {
    /// The lock is taken whatever the node's version.
    LockWithoutCompareAndSwap,
    /// The node lock is never seen.
    LockNotRead,
    /// A foreign holder that lives is taken for gone.
    HolderNotRespected,
    /// The lock is left out although another scheduler runs.
    LockLeftOut,
    /// A Binding whose answer is lost is taken for refused: its assumption is dropped.
    AssumptionDroppedOnTimeout,
    /// In doubt about a Binding, the pod is taken to be gone: its assumption is dropped.
    AssumptionDroppedInDoubt,
    /// The Binding names no uid.
    BindingWithoutUid,
    /// Pods are told apart by their names.
    ConfirmWithoutUid,
    /// A pod that is being deleted counts as ended.
    TerminatingNotCharged,
    /// What vanished while nobody watched is still there after a list.
    ResyncMissesDeletions,
    /// A node that comes back with other cards is taken to have those of before.
    NodeReadOnce,
    /// A pod's answer is taken for given as soon as it is bound.
    AnswerNotAwaited,
    /// What the assignment says is not what the ledger holds.
    WrongAssignment,
    /// Quotas are not read.
    QuotaNotRead,
    /// The Lease is taken and renewed whatever its version.
    LeaseWithoutCompareAndSwap,
    /// Others respect the Lease for a shorter time than its holder claims the lead.
    ClaimOutlastsLease,
    /// A Binding is sent although its claim has run out: what was cut off arrives all the same.
    FenceIgnored,
    /// The Lease is given back before the last Binding.
    LeaseGivenBackEarly,
    /// A claim stays selected for the node of a pod that did not get there.
    ClaimLeftSelected,
    /// The labels of pods that are bound do not count.
    NeighbourNotCounted,
    /// A pod that is gone still counts in the zone where it stood.
    CountNotUndone,
    /// Pods are preempted although the nomination of the pod that they go for was not written.
    NominationNotWritten,
    /// After a restart, the pods of a gang that are bound are taken for pods of none.
    GangMemberForgotten,
    /// What becomes free for a pod is given to others meanwhile: its nomination is forgotten.
    FreedCapacityGivenTwice,
    /// The same of devices that become free for a claim.
    FreedDevicesGivenTwice,
    /// What another scheduler gives away is not read.
    OthersAllocationNotRead,
    /// What another scheduler gives of shared devices takes nothing.
    OthersShareNotCounted,
    /// What another scheduler gives of cards that are parted takes nothing.
    OthersPartNotCounted,
    /// The pods of a job are counted in each zone by themselves.
    BudgetCountedByZone,
    /// A node stays kept for a pod that was deleted while it waited.
    NominationOutlivesPod,
    /// Only the binder that has evicted a pod knows that it leaves.
    EvictionRepeated,
    /// What pods hold of a node's devices is forgotten while the node has no Device.
    UseForgottenWithDevice,
    /// The virtual functions that pods hold are not read.
    FunctionGivenTwice,
    /// A device that is not healthy is given.
    SickDeviceGiven,
    /// The devices of a Device that was deleted are still given.
    DeviceOutlivesItsObject,
    /// What Reservations hold is given to any pod.
    ReservationNotRead,
    /// A pod that goes elsewhere stays a user of its claims.
    ClaimLeftReserved,
    /// The capacity that claims consume of shared devices is not counted.
    CapacityNotCounted,
    /// It is counted twice.
    CapacityCountedTwice,
    /// The devices of a claim are free at once for others, although a write may give the claim these devices.
    WriteNotAwaited,
    /// A pod may be evicted as long as it says so, whatever it was bound as.
    MarkTakenBack,
    /// Claims are given devices without the finalizer.
    FinalizerLeftOut,
    /// The status of claims is written whatever their version.
    ClaimWithoutCompareAndSwap,
    /// The work for pods of all namespaces is counted as that of one.
    NamespacesNotToldApart,
    /// The pods of a namespace may hold any number of cards for volumes.
    PlacesHeldWithoutBound,
    /// What was used is counted from a minute before the time to which it was counted.
    UsageCountedTwice,
    /// One pod of a PodGroup of Kubernetes is taken for enough.
    GroupMinimumNotRead,
    /// PodGroups are taken for groups that are in no other.
    ParentNotRead,
    /// The label of nodes that all pods below a CompositePodGroup share is not read.
    RackNotRead,
    /// A claim of a PodGroup is taken to be reserved for it as soon as it has devices.
    GroupReservationNotWritten,
    /// After a restart, the pods of a PodGroup that are bound are taken for pods of none.
    PodOfGroupForgotten,
}

impl Bug {
    pub(crate) const ALL: [Self; 51] = [
        Self::LockWithoutCompareAndSwap,
        Self::LockNotRead,
        Self::HolderNotRespected,
        Self::LockLeftOut,
        Self::AssumptionDroppedOnTimeout,
        Self::AssumptionDroppedInDoubt,
        Self::BindingWithoutUid,
        Self::ConfirmWithoutUid,
        Self::TerminatingNotCharged,
        Self::ResyncMissesDeletions,
        Self::NodeReadOnce,
        Self::AnswerNotAwaited,
        Self::WrongAssignment,
        Self::QuotaNotRead,
        Self::LeaseWithoutCompareAndSwap,
        Self::ClaimOutlastsLease,
        Self::FenceIgnored,
        Self::LeaseGivenBackEarly,
        Self::ClaimLeftSelected,
        Self::NeighbourNotCounted,
        Self::CountNotUndone,
        Self::NominationNotWritten,
        Self::FreedCapacityGivenTwice,
        Self::FreedDevicesGivenTwice,
        Self::OthersAllocationNotRead,
        Self::OthersShareNotCounted,
        Self::OthersPartNotCounted,
        Self::GangMemberForgotten,
        Self::BudgetCountedByZone,
        Self::NominationOutlivesPod,
        Self::EvictionRepeated,
        Self::MarkTakenBack,
        Self::UseForgottenWithDevice,
        Self::FunctionGivenTwice,
        Self::SickDeviceGiven,
        Self::DeviceOutlivesItsObject,
        Self::ReservationNotRead,
        Self::ClaimLeftReserved,
        Self::CapacityNotCounted,
        Self::CapacityCountedTwice,
        Self::WriteNotAwaited,
        Self::FinalizerLeftOut,
        Self::ClaimWithoutCompareAndSwap,
        Self::NamespacesNotToldApart,
        Self::PlacesHeldWithoutBound,
        Self::UsageCountedTwice,
        Self::GroupMinimumNotRead,
        Self::ParentNotRead,
        Self::RackNotRead,
        Self::GroupReservationNotWritten,
        Self::PodOfGroupForgotten,
    ];

    /// What shows it.
    pub(crate) fn story(self) -> &'static Story {
        match self {
            Self::LockWithoutCompareAndSwap | Self::LockNotRead | Self::HolderNotRespected => &LOCKS,
            Self::LockLeftOut => &RIVALS,
            Self::AssumptionDroppedOnTimeout | Self::AssumptionDroppedInDoubt => &DOUBT,
            Self::BindingWithoutUid | Self::ConfirmWithoutUid => &NAMES,
            Self::TerminatingNotCharged => &ENDS,
            Self::ResyncMissesDeletions => &GAPS,
            Self::NodeReadOnce => &MACHINES,
            Self::QuotaNotRead => &QUOTAS,
            Self::AnswerNotAwaited | Self::WrongAssignment => &GENERAL,
            Self::LeaseWithoutCompareAndSwap | Self::ClaimOutlastsLease => &LEADS,
            Self::FenceIgnored | Self::LeaseGivenBackEarly | Self::UsageCountedTwice => &HANDOVERS,
            Self::ClaimLeftSelected | Self::NeighbourNotCounted => &NEIGHBOURS,
            Self::CountNotUndone => &ZONES,
            Self::NominationNotWritten | Self::FreedCapacityGivenTwice => &RANKS,
            Self::GangMemberForgotten => &TEAMS,
            Self::BudgetCountedByZone | Self::EvictionRepeated | Self::MarkTakenBack => &WINDOWS,
            Self::NominationOutlivesPod => &RECALLS,
            Self::UseForgottenWithDevice
            | Self::FunctionGivenTwice
            | Self::SickDeviceGiven
            | Self::DeviceOutlivesItsObject
            | Self::ReservationNotRead => &DEVICES,
            Self::CapacityNotCounted | Self::CapacityCountedTwice | Self::FinalizerLeftOut => &CLAIMS,
            Self::ClaimLeftReserved | Self::ClaimWithoutCompareAndSwap => &USERS,
            Self::WriteNotAwaited => &LATE,
            Self::FreedDevicesGivenTwice => &CLAIM_RANKS,
            Self::OthersAllocationNotRead => &ALLOCATORS,
            Self::OthersShareNotCounted | Self::OthersPartNotCounted => &SHARERS,
            Self::NamespacesNotToldApart => &CLASSES,
            Self::GroupMinimumNotRead
            | Self::ParentNotRead
            | Self::RackNotRead
            | Self::GroupReservationNotWritten
            | Self::PodOfGroupForgotten => &TREES,
            Self::PlacesHeldWithoutBound => &PLACES,
        }
    }

    /// The seed with which the search begins: that of a run in which the bug was found, so that the search is short. Any change of what a run does
    /// may move it; the search then goes on, and says where it ended.
    pub(crate) fn first_seed(self) -> u64 {
        match self {
            Self::LockLeftOut
            | Self::ResyncMissesDeletions
            | Self::GangMemberForgotten
            | Self::ClaimLeftReserved
            | Self::GroupMinimumNotRead => 1,
            Self::ClaimLeftSelected
            | Self::SickDeviceGiven
            | Self::CountNotUndone
            | Self::WriteNotAwaited
            | Self::FreedDevicesGivenTwice => 2,
            Self::LeaseGivenBackEarly
            | Self::NeighbourNotCounted
            | Self::UseForgottenWithDevice
            | Self::DeviceOutlivesItsObject
            | Self::ClaimWithoutCompareAndSwap
            | Self::PodOfGroupForgotten => 3,
            Self::CapacityCountedTwice | Self::FreedCapacityGivenTwice | Self::RackNotRead => 4,
            Self::ClaimOutlastsLease => 5,
            Self::ReservationNotRead => 11,
            Self::FenceIgnored => 47,
            _ => 0,
        }
    }
}
