//! Devices of containers of their own: one container after the other, the one that takes most first.
//!
//! Each is given what its pod would be given if it were alone. Where a later one then finds nothing, `search` tries what else an earlier one could
//! have, so that a solution is found whenever there is one.

mod alike;
mod search;

use std::cmp::Reverse;

use super::{AllocationSettings, Shortfall, score};
use crate::device::{
    ContainerDeviceRequest, ContainerDevices, DeviceCount, DevicePortion, DevicesUsed, JointRequest,
    NodeDevices,
};

/// What each container of the request is given on this node, in the order of the request; otherwise why one is given nothing.
pub fn by_container(
    node: &NodeDevices,
    used: &DevicesUsed,
    request: &JointRequest,
    settings: &AllocationSettings,
) -> Result<Vec<ContainerDevices>, Vec<Shortfall>> {
    let mut order: Vec<_> = request.containers.iter().enumerate().collect();
    order.sort_by_key(|(_, one)| Reverse(size(one)));
    let requests: Vec<_> = order.iter().map(|(_, one)| &one.request).collect();
    let given = search::choose(node, used, &requests, settings)?;
    let named = |((at, one), devices): (&(usize, &ContainerDeviceRequest), _)| {
        (*at, ContainerDevices { container: one.container.clone(), devices })
    };
    let mut given: Vec<_> = order.iter().zip(given).map(named).collect();
    given.sort_by_key(|(at, _)| *at);
    Ok(given.into_iter().map(|(_, devices)| devices).collect())
}

/// How well the container that takes most would sit on the node, 0 to 100.
pub(super) fn score_of(
    node: &NodeDevices,
    used: &DevicesUsed,
    request: &JointRequest,
    settings: &AllocationSettings,
) -> Result<u64, Vec<Shortfall>> {
    let Some(largest) = request.containers.iter().max_by_key(|one| size(one)) else { return Ok(0) };
    let types = u64::try_from(largest.request.types.len()).unwrap_or(u64::MAX).max(1);
    Ok(score(node, used, &largest.request, settings)? / types)
}

/// Whole devices count before shares, and every device of a type most of all.
fn size(one: &ContainerDeviceRequest) -> (u64, usize) {
    let whole = one.request.types.values().filter(|typed| typed.portion == DevicePortion::Whole);
    let whole = whole.map(|typed| match typed.count {
        DeviceCount::Exactly(count) => count.into(),
        DeviceCount::All => u64::from(u32::MAX),
    });
    (whole.sum(), one.request.types.len())
}
