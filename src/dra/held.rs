//! What allocated claims hold of devices.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{device::DeviceId, pool::PoolId};
use crate::object::{
    Amount,
    resource_claim::{AllocatedDevice, AllocationResult},
};

/// The pools of which an allocation holds devices.
pub fn pools(allocation: &AllocationResult) -> BTreeSet<PoolId> {
    let results = allocation.devices.results.iter();
    results.map(|result| (result.driver.as_str().into(), result.pool.as_str().into())).collect()
}

/// What of an allocation can't be read, as field and reason.
pub fn unreadable(allocation: &AllocationResult) -> Vec<String> {
    HeldDevices::default().add(allocation)
}

/// Devices that are in use, by all claims that are allocated.
#[derive(Clone, Debug, Default)]
pub struct HeldDevices {
    by_id: BTreeMap<DeviceId, DeviceInUse>,
    /// Of these, no claim holds anything: others use their hardware.
    unclaimed: BTreeSet<DeviceId>,
    /// How many more shares of a device can be given, where more than its capacities limits them.
    shares_left: BTreeMap<DeviceId, u32>,
}

/// What is in use of one device.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DeviceInUse {
    /// Whether it was given as a whole: then it can't be shared, whatever its driver says by now.
    pub whole: bool,
    /// How much shares take of each capacity.
    pub consumed: BTreeMap<String, Amount>,
    /// How often it was given.
    pub given: usize,
}

impl DeviceInUse {
    /// Whether it was given as a whole and once more: two schedulers have given it at the same time.
    pub fn is_given_twice(&self) -> bool {
        self.whole && self.given > 1
    }

    fn add(&mut self, other: Self) {
        self.whole |= other.whole;
        self.given += other.given;
        for (name, amount) in other.consumed {
            self.consume(name, amount);
        }
    }

    fn consume(&mut self, capacity: String, amount: Amount) {
        let consumed = self.consumed.entry(capacity).or_default();
        *consumed = consumed.plus(amount);
    }
}

impl HeldDevices {
    /// Takes out all that is in use of a pool, to be folded anew.
    pub fn clear(&mut self, pool: &PoolId) {
        let own: Vec<DeviceId> = self.of_pool(pool).map(|(id, _)| id.clone()).collect();
        for id in own {
            self.by_id.remove(&id);
        }
    }

    /// Takes in what an allocation holds; returns what of it can't be read, as field and reason. Devices that are watched over by
    /// administrators are not in use.
    pub fn add(&mut self, allocation: &AllocationResult) -> Vec<String> {
        self.add_where(allocation, |_| true)
    }

    /// As [`Self::add`], of one pool's devices alone.
    pub fn add_of(&mut self, allocation: &AllocationResult, (driver, pool): &PoolId) {
        self.add_where(allocation, |result| result.driver == **driver && result.pool == **pool);
    }

    fn add_where(
        &mut self,
        allocation: &AllocationResult,
        counts: impl Fn(&AllocatedDevice) -> bool,
    ) -> Vec<String> {
        let mut unread = Vec::new();
        for (at, result) in allocation.devices.results.iter().enumerate() {
            if result.admin_access == Some(true) || !counts(result) {
                continue;
            }
            let held =
                self.by_id.entry(DeviceId::new(&result.driver, &result.pool, &result.device)).or_default();
            held.whole |= result.share_id.is_none();
            held.given += 1;
            for (name, quantity) in &result.consumed_capacity {
                match quantity.amount() {
                    Ok(amount) => held.consume(name.clone(), amount),
                    Err(error) => {
                        // How much is left is not known, so that nothing more is given of the device.
                        held.whole = true;
                        unread.push(format!(
                            "status.allocation.devices.results[{at}].consumedCapacity.{name}: {error}"
                        ));
                    }
                }
            }
        }
        unread
    }

    /// What claims hold of the devices of these pools.
    #[must_use]
    pub fn of_pools<'a>(&self, pools: impl Iterator<Item = &'a PoolId>) -> Self {
        let mut held = Self::default();
        for pool in pools {
            held.by_id.extend(self.of_pool(pool).map(|(id, held)| (id.clone(), held.clone())));
        }
        held
    }

    fn of_pool(&self, pool: &PoolId) -> impl Iterator<Item = (&DeviceId, &DeviceInUse)> {
        let (driver, name) = pool;
        let first = DeviceId { driver: driver.clone(), pool: name.clone(), device: Arc::default() };
        let from = self.by_id.range(first..);
        from.take_while(move |(id, _)| id.driver == *driver && id.pool == *name)
    }

    /// Takes in what others than claims use of the hardware of a device, and how many more shares can be given of it; `None`: as many as
    /// its capacities allow.
    pub fn add_unclaimed(&mut self, id: &DeviceId, used: Option<DeviceInUse>, shares_left: Option<u32>) {
        if let Some(left) = shares_left {
            self.shares_left.insert(id.clone(), left);
        }
        let Some(used) = used else { return };
        if let Some(held) = self.by_id.get_mut(id) {
            return held.add(used);
        }
        self.by_id.insert(id.clone(), used);
        self.unclaimed.insert(id.clone());
    }

    /// Whether a claim holds something of a device: then it has taken its counters.
    pub fn is_claimed(&self, id: &DeviceId) -> bool {
        self.by_id.contains_key(id) && !self.unclaimed.contains(id)
    }

    /// How many more shares of a device can be given; `None`: as many as its capacities allow.
    pub fn shares_left(&self, id: &DeviceId) -> Option<u32> {
        self.shares_left.get(id).copied()
    }

    /// What is in use of a device; `None`: nothing.
    pub fn of(&self, id: &DeviceId) -> Option<&DeviceInUse> {
        self.by_id.get(id)
    }

    /// Takes in what is in use of a device.
    pub fn insert(&mut self, id: DeviceId, held: DeviceInUse) {
        self.by_id.insert(id, held);
    }
}
