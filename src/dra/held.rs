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
    by_id: BTreeMap<DeviceId, Held>,
}

/// What is in use of one device.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Held {
    /// Whether it was given as a whole: then it can't be shared, whatever its driver says by now.
    pub whole: bool,
    /// How much shares take of each capacity.
    pub consumed: BTreeMap<String, Amount>,
}

impl HeldDevices {
    /// Takes out all that is in use of a pool, to be folded anew.
    pub fn clear(&mut self, (driver, pool): &PoolId) {
        let first = DeviceId { driver: driver.clone(), pool: pool.clone(), device: Arc::default() };
        let own = self.by_id.range(first..).map(|(id, _)| id);
        let own: Vec<DeviceId> =
            own.take_while(|id| id.driver == *driver && id.pool == *pool).cloned().collect();
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
            for (name, quantity) in &result.consumed_capacity {
                match quantity.amount() {
                    Ok(amount) => {
                        let consumed = held.consumed.entry(name.clone()).or_default();
                        *consumed = consumed.plus(amount);
                    }
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

    /// What is in use of a device; `None`: nothing.
    pub fn of(&self, id: &DeviceId) -> Option<&Held> {
        self.by_id.get(id)
    }

    /// Takes in what is in use of a device.
    pub fn insert(&mut self, id: DeviceId, held: Held) {
        self.by_id.insert(id, held);
    }
}
