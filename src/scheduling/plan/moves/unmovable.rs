//! Why a pod is not moved.

use std::fmt;

/// Why a pod is not moved.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Unmovable {
    /// Its annotations say so, or it is of the namespace of the system.
    Refused,
    /// Nothing would create it again.
    NoController,
    /// What created it may not create it again as it was, or only on the same node.
    Controller,
    /// It would lose data that is only on its node.
    LocalData,
    /// Another scheduler would place it.
    OtherScheduler,
    /// What it asks for can't be read.
    Unreadable,
    /// It uses claims of devices.
    Claims,
    /// It uses a Reservation.
    Reservation,
    /// It is placed together with others.
    Gang,
    /// It is being started or deleted, or its device plugin has not served it.
    Unsettled,
    /// A PodDisruptionBudget does not allow its eviction now.
    Budget,
}

impl Unmovable {
    /// As JSON says it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::NoController => "noController",
            Self::Controller => "controller",
            Self::LocalData => "localData",
            Self::OtherScheduler => "otherScheduler",
            Self::Unreadable => "unreadable",
            Self::Claims => "claims",
            Self::Reservation => "reservation",
            Self::Gang => "gang",
            Self::Unsettled => "unsettled",
            Self::Budget => "budget",
        }
    }
}

/// What holds of such a pod: `has no controller`.
impl fmt::Display for Unmovable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Refused => "must not be moved, by annotation or namespace",
            Self::NoController => "has no controller",
            Self::Controller => "has a controller of a kind whose pods are not moved",
            Self::LocalData => "has local data",
            Self::OtherScheduler => "is placed by another scheduler",
            Self::Unreadable => "has a request that can't be read",
            Self::Claims => "uses claims of devices",
            Self::Reservation => "uses a Reservation",
            Self::Gang => "is placed together with others",
            Self::Unsettled => "is being started or deleted",
            Self::Budget => "has a PodDisruptionBudget that allows no eviction now",
        })
    }
}
