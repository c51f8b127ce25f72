//! The devices of a Reservation, for a pod that may use them: before all others, or no others.
//!
//! Source: koordinator `pkg/scheduler/plugins/deviceshare/reservation.go` (`tryAllocateFromReusable`).

use std::collections::{BTreeMap, BTreeSet};

use super::{AllocationSettings, Shortfall, choose, views};
use crate::device::{Amounts, DeviceAllocations, DeviceType, DevicesUsed, JointRequest, Minor, NodeDevices};

/// What is left of a Reservation: each type of which it holds devices, and what is left of each.
pub type ReservedDevices = BTreeMap<DeviceType, BTreeMap<Minor, Amounts>>;

/// A preferred device comes before all others: more than any score of a device.
const PREFERENCE: u64 = 1_000_000;

/// How the devices of a Reservation bear on a choice.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReservationEffect<'a> {
    /// There is none.
    Nothing,
    /// They come first.
    First(&'a ReservedDevices),
    /// Of their types no others are given, and of each no more than is left.
    Only(&'a ReservedDevices),
    /// There is none, and these devices are left to others.
    Without(&'a BTreeSet<(DeviceType, Minor)>),
}

impl ReservationEffect<'_> {
    /// Whether the device may be given.
    pub(super) fn admits(self, kind: DeviceType, minor: Minor) -> bool {
        match self {
            Self::Only(left) => left.get(&kind).is_none_or(|minors| minors.contains_key(&minor)),
            Self::Without(others) => !others.contains(&(kind, minor)),
            Self::Nothing | Self::First(_) => true,
        }
    }

    /// How much of the device may be given at most; `None`: all that is free.
    pub(super) fn bound(&self, kind: DeviceType, minor: Minor) -> Option<&Amounts> {
        match self {
            Self::Only(left) => left.get(&kind)?.get(&minor),
            Self::Nothing | Self::First(_) | Self::Without(_) => None,
        }
    }

    /// What is added to the score of the device.
    pub(super) fn preference(self, kind: DeviceType, minor: Minor) -> u64 {
        match self {
            Self::First(left) if left.get(&kind).is_some_and(|minors| minors.contains_key(&minor)) => {
                PREFERENCE
            }
            _ => 0,
        }
    }
}

/// The devices that a pod is given which may use a Reservation with this left; `used` is what is in use of the node beside that.
///
/// The Reservation's own devices are tried first. Where they do not do, `Restricted` says no, and otherwise the rest of the node counts too.
pub fn allocate_within(
    node: &NodeDevices,
    used: &DevicesUsed,
    request: &JointRequest,
    settings: &AllocationSettings,
    (left, policy): (&ReservedDevices, AllocatePolicy),
) -> Result<DeviceAllocations, Vec<Shortfall>> {
    let within = |reserved| choose(&views(node, used, request, (settings, reserved))?, request);
    match (within(ReservationEffect::Only(left)), policy) {
        (Err(_), AllocatePolicy::Aligned) => within(ReservationEffect::First(left)),
        (given, _) => given,
    }
}

/// Whether a pod that uses a Reservation may have of the node what the Reservation lacks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AllocatePolicy {
    /// It may.
    Aligned,
    /// Not of what the Reservation holds.
    Restricted,
}
