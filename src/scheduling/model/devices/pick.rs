//! Devices one by one: the best first, those near a set of PCIe switches before the others.
//!
//! Source: koordinator `device_resources.go` (`sortDeviceResourcesByPreferredPCIe`), `device_allocator.go` (`defaultAllocateDevices`).

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Shortfall, view::View};
use crate::device::Minor;

/// The order in which devices are tried: the best of each preferred switch, then the next best of each, then all others. Of each device: its
/// minor, its score, and its switch.
pub fn order(devices: &[(Minor, u64, Option<&Arc<str>>)], preferred: &BTreeSet<Arc<str>>) -> Vec<Minor> {
    let mut devices = devices.to_vec();
    devices.sort_by_key(|&(minor, score, _)| (Reverse(score), minor));
    let mut seen = BTreeMap::<&Arc<str>, usize>::new();
    let mut ranked = Vec::new();
    for (minor, score, switch) in devices {
        let rank = switch.filter(|switch| preferred.contains(*switch)).map_or(usize::MAX, |switch| {
            let of_switch = seen.entry(switch).or_default();
            *of_switch += 1;
            *of_switch
        });
        ranked.push((rank, Reverse(score), minor));
    }
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, _, minor)| minor).collect()
}

/// The first `most` devices with enough left, `least` of them at least.
pub(super) fn choose(
    view: &View<'_>,
    least: usize,
    most: usize,
    preferred: &BTreeSet<Arc<str>>,
) -> Result<Vec<Minor>, Shortfall> {
    let devices: Vec<_> = view.fitting().map(|(minor, one)| (minor, one.score, one.device.pcie())).collect();
    let mut minors = order(&devices, preferred);
    minors.truncate(most);
    if minors.len() < least { Err(Shortfall::Devices(view.kind)) } else { Ok(minors) }
}
