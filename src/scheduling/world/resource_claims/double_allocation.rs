//! Devices that claims were given twice: the API has no reservation, so two schedulers can give a device at the same time, or shares of it, or devices
//! that take of one counter, that are more than there is.

use std::{collections::BTreeSet, sync::Arc};

use super::{ClaimStanding, ResourceClaims, holders::MOST_CLAIMS};
use crate::dra::device::DeviceId;

/// Of the devices of the claim with this full name, those that another claim has too and that are not to be shared, and those of which claims have more
/// than there is.
pub(in crate::scheduling) fn double_allocations(claim: &str, claims: &ResourceClaims) -> BTreeSet<DeviceId> {
    if claims.held.is_consistent() {
        return BTreeSet::new();
    }
    devices_of(claim, claims).filter(|id| claims.held.is_given_twice(id)).collect()
}

/// The full names of the claims that have this device, or another that takes of a counter of which both together take too much. Of a pool with very many
/// claims, the first are looked at.
pub(in crate::scheduling) fn claims_with(device: &DeviceId, known: &ResourceClaims) -> BTreeSet<Arc<str>> {
    let pool = (device.driver.clone(), device.pool.clone());
    let devices = known.held.beside(device);
    let claims = known.by_pool.get(&pool).into_iter().flatten().take(MOST_CLAIMS);
    claims.filter(|claim| devices_of(claim, known).any(|id| devices.contains(&id))).cloned().collect()
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

    /// What every device has of the capacity `memory`.
    const MEMORY: u32 = 10;
    /// What every device takes of the counter of its pool, and how much there is: too little for two.
    const TAKEN: [u32; 2] = [4, 6];

    /// The devices of a claim, by pool and device: of each a share with so much memory; `None`: the whole device.
    type Given = BTreeMap<(usize, usize), Option<u32>>;

    fn id((pool, device): (usize, usize)) -> DeviceId {
        DeviceId::new("gpu.example.com", &format!("p{pool}"), &format!("d{device}"))
    }

    fn claim(at: usize, given: &Given) -> Arc<ResourceClaim> {
        let result = |(device, share): (&(usize, usize), &Option<u32>)| {
            let DeviceId { driver, pool, device } = &id(*device);
            let mut result = json!({"request": "r", "driver": **driver, "pool": **pool, "device": **device});
            if let Some(memory) = share {
                result["shareID"] = json!("s");
                result["consumedCapacity"] = json!({"memory": memory.to_string()});
            }
            result
        };
        let results: Vec<Value> = given.iter().map(result).collect();
        let claim = json!({
            "metadata": {"name": format!("claim-{at}"), "namespace": "team", "uid": format!("u{at}")},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
            "status": {"allocation": {"devices": {"results": results}}},
        });
        Arc::new(serde_json::from_value(claim).unwrap())
    }

    /// Publishes two devices of a pool, which may be shared, with this counter.
    fn publish(known: &mut ResourceClaims, pool: usize, counter: u32) {
        let capacity = json!({"memory": {"value": MEMORY.to_string()}});
        let consumes = json!([{"counterSet": "set", "counters": {"slots": {"value": TAKEN[0].to_string()}}}]);
        let device = |at: usize| {
            json!({"name": format!("d{at}"), "allowMultipleAllocations": true, "capacity": capacity,
                "consumesCounters": consumes})
        };
        let set = json!([{"name": "set", "counters": {"slots": {"value": counter.to_string()}}}]);
        for (part, field, content) in
            [("devices", "devices", json!([device(0), device(1)])), ("counters", "sharedCounters", set)]
        {
            let name = format!("{part}-{pool}");
            let slice = json!({
                "metadata": {"name": name},
                "spec": {"driver": "gpu.example.com", "allNodes": true, field: content,
                    "pool": {"name": format!("p{pool}"), "generation": 1, "resourceSliceCount": 2}},
            });
            known.set_slice(&name, Some(Arc::new(serde_json::from_value(slice).unwrap())));
        }
    }

    /// By the claims alone: the devices of this one that are given as a whole, by whichever claim, and to another one, too; those of which shares are more than
    /// there is; and those that take too much of their pool's counter with others.
    fn recomputed(
        at: usize,
        claims: &BTreeMap<usize, Given>,
        counters: &BTreeMap<usize, u32>,
    ) -> BTreeSet<DeviceId> {
        let of = |device: (usize, usize)| claims.values().filter_map(move |given| given.get(&device));
        let is_twice = |device: &(usize, usize)| {
            let has_whole = of(*device).any(Option::is_none);
            let shared: u32 = of(*device).flatten().sum();
            let is_known = counters.contains_key(&device.0);
            let exceeds = !has_whole && is_known && shared > MEMORY;
            of(*device).count() > 1 && (has_whole || exceeds)
        };
        let takes_too_much = |(pool, _): &(usize, usize)| {
            let given: BTreeSet<_> =
                claims.values().flat_map(BTreeMap::keys).filter(|(of, _)| of == pool).collect();
            let taken = TAKEN[0] * u32::try_from(given.len()).unwrap();
            counters.get(pool).is_some_and(|counter| taken > *counter)
        };
        let own = claims.get(&at).into_iter().flat_map(Given::keys);
        own.filter(|device| is_twice(device) || takes_too_much(device)).map(|device| id(*device)).collect()
    }

    #[derive(Clone, Debug)]
    enum Change {
        /// A claim is seen with these devices, or is gone.
        Claim(usize, Option<Given>),
        /// The devices of a pool are published with such a counter, or no longer.
        Pool(usize, Option<u32>),
    }

    fn change() -> impl Strategy<Value = Change> {
        let share = proptest::option::weighted(0.7, 0..=MEMORY);
        let given = proptest::collection::btree_map((0_usize..2, 0_usize..2), share, 1..3);
        let claim = (0_usize..4, proptest::option::weighted(0.8, given));
        let pool = (0_usize..2, proptest::option::weighted(0.8, prop_oneof![Just(TAKEN[1]), Just(100)]));
        prop_oneof![
            3 => claim.prop_map(|(at, given)| Change::Claim(at, given)),
            1 => pool.prop_map(|(pool, counter)| Change::Pool(pool, counter)),
        ]
    }

    proptest! {
        #[test]
        fn double_allocations_of_a_claim_are_those_that_all_claims_say(
            changes in proptest::collection::vec(change(), 1..20),
        ) {
            let (mut known, mut claims, mut counters) = (ResourceClaims::default(), BTreeMap::new(), BTreeMap::new());
            for change in changes {
                match change {
                    Change::Claim(at, given) => {
                        let seen = given.as_ref().map(|given| claim(at, given));
                        known.see(&format!("team/claim-{at}").into(), seen);
                        match given {
                            Some(given) => drop(claims.insert(at, given)),
                            None => drop(claims.remove(&at)),
                        }
                    }
                    Change::Pool(pool, Some(counter)) => {
                        publish(&mut known, pool, counter);
                        counters.insert(pool, counter);
                    }
                    Change::Pool(pool, None) => {
                        known.set_slice(&format!("counters-{pool}"), None);
                        counters.remove(&pool);
                    }
                }
                for at in 0..4 {
                    prop_assert_eq!(double_allocations(&format!("team/claim-{at}"), &known), recomputed(at, &claims, &counters));
                }
            }
        }
    }

    /// What is known of claims with these devices each, whose pool is published with this counter.
    fn known(counter: u32, claims: &[Given]) -> ResourceClaims {
        let mut known = ResourceClaims::default();
        publish(&mut known, 0, counter);
        for (at, given) in claims.iter().enumerate() {
            known.see(&format!("team/claim-{at}").into(), Some(claim(at, given)));
        }
        known
    }

    #[test]
    fn claims_whose_devices_take_too_much_together_are_named_together() {
        let of = |device: (usize, usize), share| Given::from([(device, share)]);
        let together = |claims: &[Given], counter| {
            let known = known(counter, claims);
            let named = claims_with(&id((0, 0)), &known);
            (
                named.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
                known.held().excess(&id((0, 0))).cloned(),
            )
        };
        let (one, other) = (of((0, 0), Some(6)), of((0, 1), Some(6)));
        let fit = [one.clone(), other.clone()];
        assert_eq!(together(&fit, 100), ("team/claim-0".to_owned(), None));
        let counter = crate::dra::Excess::Counter("set".into(), "slots".into());
        assert_eq!(together(&fit, TAKEN[1]), ("team/claim-0 team/claim-1".to_owned(), Some(counter)));
        let memory = crate::dra::Excess::Capacity("memory".into());
        assert_eq!(
            together(&[one.clone(), one.clone(), other], 100),
            ("team/claim-0 team/claim-1".to_owned(), Some(memory))
        );
        assert_eq!(together(&[one, of((0, 0), None)], 100).1, None, "it was given as a whole and once more");
    }
}
