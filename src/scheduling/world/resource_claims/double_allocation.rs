//! Devices that two claims were given: the API has no reservation, so two schedulers can give a device at the same time.

use std::{collections::BTreeSet, sync::Arc};

use super::{ClaimStanding, ResourceClaims, holders::MOST_CLAIMS};
use crate::dra::device::DeviceId;

/// Of the devices of the claim with this full name, those that another claim has too and that are not to be shared.
pub(in crate::scheduling) fn double_allocations(claim: &str, claims: &ResourceClaims) -> BTreeSet<DeviceId> {
    let double = claims.held.double_allocations();
    if double.is_empty() {
        return BTreeSet::new();
    }
    devices_of(claim, claims).filter(|id| double.contains(id)).collect()
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
    held.map(DeviceId::from)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::object::ResourceClaim;

    /// The devices of a claim: pool, device, and whether it is a share.
    type Given = BTreeMap<(usize, usize), bool>;

    fn id((pool, device): (usize, usize)) -> DeviceId {
        DeviceId::new("gpu.example.com", &format!("p{pool}"), &format!("d{device}"))
    }

    fn claim(at: usize, given: &Given) -> Arc<ResourceClaim> {
        let result = |(device, is_share): (&(usize, usize), &bool)| {
            let DeviceId { driver, pool, device } = &id(*device);
            let share = is_share.then_some("s");
            json!({"request": "r", "driver": **driver, "pool": **pool, "device": **device, "shareID": share})
        };
        let results: Vec<Value> = given.iter().map(result).collect();
        let claim = json!({
            "metadata": {"name": format!("claim-{at}"), "namespace": "team", "uid": format!("u{at}")},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
            "status": {"allocation": {"devices": {"results": results}}},
        });
        Arc::new(serde_json::from_value(claim).unwrap())
    }

    /// By the claims alone: the devices of this one that are given as a whole, by whichever claim, and to another one, too.
    fn recomputed(at: usize, claims: &BTreeMap<usize, Given>) -> BTreeSet<DeviceId> {
        let of = |device| claims.values().filter_map(move |given| given.get(device));
        let own = claims.get(&at).into_iter().flat_map(Given::keys);
        own.filter(|device| of(device).count() > 1 && of(device).any(|is_share| !is_share))
            .map(|device| id(*device))
            .collect()
    }

    /// A claim is seen with these devices, or is gone.
    fn change() -> impl Strategy<Value = (usize, Option<Given>)> {
        let given = proptest::collection::btree_map((0_usize..2, 0_usize..2), any::<bool>(), 1..3);
        (0_usize..4, proptest::option::weighted(0.8, given))
    }

    proptest! {
        #[test]
        fn double_allocations_of_a_claim_are_those_that_all_claims_say(
            changes in proptest::collection::vec(change(), 1..20),
        ) {
            let (mut known, mut claims) = (ResourceClaims::default(), BTreeMap::new());
            for (at, given) in changes {
                let seen = given.as_ref().map(|given| claim(at, given));
                known.see(&format!("team/claim-{at}").into(), seen);
                match given {
                    Some(given) => drop(claims.insert(at, given)),
                    None => drop(claims.remove(&at)),
                }
                for at in 0..4 {
                    prop_assert_eq!(double_allocations(&format!("team/claim-{at}"), &known), recomputed(at, &claims));
                }
            }
        }
    }
}
