//! Devices that two claims were given: the API has no reservation, so two schedulers can give a device at the same time.

use std::{collections::BTreeSet, sync::Arc};

use super::{ClaimStanding, ResourceClaims, holders::MOST_CLAIMS};
use crate::{
    dra::{device::DeviceId, held::DeviceInUse},
    object::resource_claim::AllocatedDevice,
};

/// Of the devices of the claim with this full name, those that another claim has too and that are not to be shared.
pub(in crate::scheduling) fn given_twice(claim: &str, claims: &ResourceClaims) -> BTreeSet<DeviceId> {
    let is_given_twice = |id: &DeviceId| claims.held.of(id).is_some_and(DeviceInUse::is_given_twice);
    devices_of(claim, claims).filter(is_given_twice).collect()
}

/// The full names of the claims that have this device. Of a pool with very many claims, the first are looked at.
pub(in crate::scheduling) fn claims_with(device: &DeviceId, known: &ResourceClaims) -> BTreeSet<Arc<str>> {
    let pool = (device.driver.clone(), device.pool.clone());
    let claims = known.by_pool.get(&pool).into_iter().flatten().take(MOST_CLAIMS);
    claims.filter(|claim| devices_of(claim, known).any(|id| id == *device)).cloned().collect()
}

/// The devices of the claim; what administrators watch over is not held.
fn devices_of(claim: &str, claims: &ResourceClaims) -> impl Iterator<Item = DeviceId> {
    let allocation = claims.claims.get(claim).and_then(ClaimStanding::allocation);
    let results = allocation.into_iter().flat_map(|allocation| &allocation.devices.results);
    let held = results.filter(|result| result.admin_access != Some(true));
    held.map(|AllocatedDevice { driver, pool, device, .. }| DeviceId::new(driver, pool, device))
}
