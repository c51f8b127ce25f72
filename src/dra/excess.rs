//! Of what claims were given more than there is: two schedulers can give shares of one device at the same time, or devices that take of one counter.
//!
//! It must not judge devices that were given as a whole and once more: `held` knows these by themselves.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    counters::Counters,
    device::{DeviceId, PoolDevice},
    held::{Excess, HeldDevices},
    pool::{DevicePools, PoolId, VisiblePool},
};

impl DevicePools {
    /// The devices of a pool that claims hold and that have too little of something for all of them, by the pool's newest complete generation. Where none
    /// is complete, or what it says contradicts itself, nothing is known to be too little.
    pub(super) fn excesses(&self, pool: &PoolId, held: &HeldDevices) -> BTreeMap<DeviceId, BTreeSet<Excess>> {
        let shared = held.shared_by_several(pool);
        let Some(pool) = self.complete(pool).filter(|pool| !shared.is_empty() || !pool.counters().is_empty())
        else {
            return BTreeMap::new();
        };
        let counters = exceeded_counters(&pool, held);
        let of = |device: &PoolDevice| -> BTreeSet<Excess> {
            let capacities = shared.contains(&device.id).then(|| exceeded_capacities(device, held));
            let taken =
                counters.iter().filter(|counter| takes_of(device, counter) && held.is_claimed(&device.id));
            let counters = taken.map(|(set, name)| Excess::Counter(set.clone(), name.clone()));
            capacities.into_iter().flatten().chain(counters).collect()
        };
        let exceeded = pool.all_devices().map(|device| (device.id.clone(), of(device)));
        exceeded.filter(|(_, excesses)| !excesses.is_empty()).collect()
    }
}

/// The counters of the pool of which devices that claims hold take more than there is.
fn exceeded_counters(pool: &VisiblePool<'_>, held: &HeldDevices) -> Vec<(Arc<str>, Arc<str>)> {
    if pool.counters().is_empty() {
        return Vec::new();
    }
    Counters::of(pool, held).exceeded()
}

fn exceeded_capacities(device: &PoolDevice, held: &HeldDevices) -> Vec<Excess> {
    let consumed = held.of(&device.id).into_iter().flat_map(|held| &held.consumed);
    let beyond = consumed.filter(|(name, amount)| {
        device.capacity.get(*name).is_some_and(|capacity| **amount > capacity.value.amount)
    });
    beyond.map(|(name, _)| Excess::Capacity(name.as_str().into())).collect()
}

fn takes_of(device: &PoolDevice, (set, name): &(Arc<str>, Arc<str>)) -> bool {
    device.consumes.iter().any(|taken| taken.set == *set && taken.counters.contains_key(name))
}
