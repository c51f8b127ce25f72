//! What allocated claims hold of devices.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use super::{
    device::DeviceId,
    pool::{DevicePools, PoolId},
};
use crate::{
    object::{
        Amount,
        resource_claim::{AllocatedDevice, AllocationResult},
    },
    persistent::{PersistentMap, value_of},
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
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HeldDevices {
    by_id: PersistentMap<DeviceId, DeviceInUse>,
    /// Of these, no claim holds anything: others use their hardware.
    unclaimed: BTreeSet<DeviceId>,
    /// How many more shares of a device can be given, where more than its capacities limits them.
    shares_left: BTreeMap<DeviceId, u32>,
    /// Of these, each was given as a whole and once more.
    double_allocations: BTreeSet<DeviceId>,
    /// Of these, more was given than there is, as [`Self::judge`] has found.
    excesses: BTreeMap<DeviceId, BTreeSet<Excess>>,
}

/// What is in use of one device.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct DeviceInUse {
    /// Whether it was given as a whole: then it can't be shared, whatever its driver says by now.
    pub whole: bool,
    /// How much shares take of each capacity.
    pub consumed: BTreeMap<String, Amount>,
    /// How often it was given.
    pub given: usize,
}

/// Something of which claims hold more than a pool publishes.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Excess {
    /// A capacity of the device, which is shared.
    Capacity(Arc<str>),
    /// A counter that devices of the pool share, by its set and its name.
    Counter(Arc<str>, Arc<str>),
}

impl fmt::Display for Excess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capacity(name) => write!(formatter, "capacity {name}"),
            Self::Counter(set, name) => write!(formatter, "counter {set}/{name}"),
        }
    }
}

impl DeviceInUse {
    /// Whether it was given as a whole and once more: two schedulers have given it at the same time.
    pub fn is_double_allocation(&self) -> bool {
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
            self.by_id.remove_mut(&id);
            self.double_allocations.remove(&id);
            self.excesses.remove(&id);
        }
    }

    /// Finds out of which devices of a pool more was given than is published: to be asked once what is in use of the pool, or what is published of it, has
    /// changed.
    pub fn judge(&mut self, pool: &PoolId, inventory: &DevicePools) {
        let of_pool = |id: &DeviceId| id.driver == pool.0 && id.pool == pool.1;
        self.excesses.retain(|id, _| !of_pool(id));
        if self.of_pool(pool).next().is_some() {
            let excesses = inventory.excesses(pool, self);
            self.excesses.extend(excesses);
        }
    }

    /// The devices of a pool of which several shares and nothing else was given.
    pub(super) fn shared_by_several(&self, pool: &PoolId) -> BTreeSet<&DeviceId> {
        let shared = self.of_pool(pool).filter(|(_, held)| !held.whole && held.given > 1);
        shared.map(|(id, _)| id).collect()
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
            let id = DeviceId::from(result);
            let held = value_of(&mut self.by_id, &id);
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
            if held.is_double_allocation() {
                self.double_allocations.insert(id);
            }
        }
        unread
    }

    /// What claims hold of the devices of these pools.
    #[must_use]
    pub fn of_pools<'a>(&self, pools: impl Iterator<Item = &'a PoolId>) -> Self {
        let mut held = Self::default();
        for pool in pools {
            for (id, in_use) in self.of_pool(pool) {
                held.by_id.insert_mut(id.clone(), in_use.clone());
            }
        }
        let double = held.by_id.iter().filter(|(_, held)| held.is_double_allocation());
        held.double_allocations = double.map(|(id, _)| id.clone()).collect();
        held
    }

    /// What is in use of a pool's devices, by their names.
    pub(super) fn of_pool(&self, pool: &PoolId) -> impl Iterator<Item = (&DeviceId, &DeviceInUse)> {
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
        let Some(held) = self.by_id.get_mut(id) else {
            self.unclaimed.insert(id.clone());
            return self.insert(id.clone(), used);
        };
        held.add(used);
        if held.is_double_allocation() {
            self.double_allocations.insert(id.clone());
        }
    }

    /// Whether a claim holds something of a device: then it has taken its counters.
    pub fn is_claimed(&self, id: &DeviceId) -> bool {
        self.by_id.contains_key(id) && !self.is_unclaimed(id)
    }

    /// Whether others than claims use the hardware of a device of which no claim holds anything.
    pub(super) fn is_unclaimed(&self, id: &DeviceId) -> bool {
        self.unclaimed.contains(id)
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
        if held.is_double_allocation() {
            self.double_allocations.insert(id.clone());
        } else {
            self.double_allocations.remove(&id);
        }
        self.by_id.insert_mut(id, held);
    }

    /// Each device of which [`Self::is_given_twice`] holds.
    pub fn given_twice(&self) -> BTreeSet<&DeviceId> {
        self.double_allocations.iter().chain(self.excesses.keys()).collect()
    }

    /// Whether the device was given as a whole and once more, or it has too little of something for all claims that have it, or take of the same counter.
    pub fn is_given_twice(&self, id: &DeviceId) -> bool {
        self.double_allocations.contains(id) || self.excesses.contains_key(id)
    }

    /// Whether there is no device that was given twice.
    pub fn is_consistent(&self) -> bool {
        self.double_allocations.is_empty() && self.excesses.is_empty()
    }

    /// Of what more was given than there is, where the device was not given as a whole and once more.
    pub fn excess(&self, id: &DeviceId) -> Option<&Excess> {
        let excesses = self.excesses.get(id).filter(|_| !self.double_allocations.contains(id));
        excesses?.first()
    }

    /// The devices that take too much together with this one, itself among them: those that take of the same counter.
    pub fn beside(&self, id: &DeviceId) -> BTreeSet<DeviceId> {
        let own = self.excesses.get(id).into_iter().flatten();
        let own: BTreeSet<&Excess> = own.filter(|excess| matches!(excess, Excess::Counter(..))).collect();
        let is_of_pool = |other: &DeviceId| (&other.driver, &other.pool) == (&id.driver, &id.pool);
        let others = self.excesses.iter().filter(|(other, excesses)| {
            is_of_pool(other) && excesses.iter().any(|excess| own.contains(excess))
        });
        others.map(|(other, _)| other.clone()).chain([id.clone()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// What happens to devices `d0` and `d1` of the pools `p0` and `p1`.
    #[derive(Clone, Debug)]
    enum Change {
        /// An allocation of these devices, each given as a whole or as a share; administrators may watch over one.
        Add(Vec<(usize, Part)>),
        /// What is in use of a device is replaced.
        Insert(usize, bool, usize),
        /// Others than claims use a device.
        AddUnclaimed(usize, bool, usize),
        /// A pool is to be folded anew.
        Clear(usize),
        /// Only one pool is looked at from now on.
        Narrow(usize),
    }

    #[derive(Clone, Copy, Debug)]
    enum Part {
        Whole,
        Share,
        UnreadShare,
        Watched,
    }

    fn id(device: usize) -> DeviceId {
        DeviceId::new("gpu.example.com", &format!("p{}", device % 2), &format!("d{}", device / 2))
    }

    fn pool(of: usize) -> PoolId {
        ("gpu.example.com".into(), format!("p{of}").as_str().into())
    }

    fn allocation(of: &[(usize, Part)]) -> AllocationResult {
        let results = of.iter().map(|(device, part)| {
            let DeviceId { driver, pool, device } = &id(*device);
            let share = matches!(part, Part::Share | Part::UnreadShare).then_some("s");
            let consumed =
                if matches!(part, Part::UnreadShare) { json!({"memory": "much"}) } else { json!({}) };
            json!({"request": "r", "driver": **driver, "pool": **pool, "device": **device, "shareID": share,
                "consumedCapacity": consumed, "adminAccess": matches!(part, Part::Watched)})
        });
        serde_json::from_value(json!({"devices": {"results": results.collect::<Vec<_>>()}})).unwrap()
    }

    fn apply(held: &mut HeldDevices, change: Change) {
        let used = |whole, given| DeviceInUse { whole, given, ..DeviceInUse::default() };
        match change {
            Change::Add(of) => drop(held.add(&allocation(&of))),
            Change::Insert(device, whole, given) => held.insert(id(device), used(whole, given)),
            Change::AddUnclaimed(device, whole, given) => {
                held.add_unclaimed(&id(device), Some(used(whole, given)), None);
            }
            Change::Clear(of) => held.clear(&pool(of)),
            Change::Narrow(of) => *held = held.of_pools([pool(of)].iter()),
        }
    }

    fn change() -> impl Strategy<Value = Change> {
        let part =
            prop_oneof![Just(Part::Whole), Just(Part::Share), Just(Part::UnreadShare), Just(Part::Watched)];
        let used = || (0_usize..4, any::<bool>(), 0_usize..3);
        prop_oneof![
            6 => proptest::collection::vec((0_usize..4, part), 1..3).prop_map(Change::Add),
            2 => used().prop_map(|(of, whole, given)| Change::Insert(of, whole, given)),
            2 => used().prop_map(|(of, whole, given)| Change::AddUnclaimed(of, whole, given)),
            2 => (0_usize..2).prop_map(Change::Clear),
            1 => (0_usize..2).prop_map(Change::Narrow),
        ]
    }

    proptest! {
        #[test]
        fn the_double_allocations_are_those_of_all_devices_in_use(
            changes in proptest::collection::vec(change(), 1..30),
        ) {
            let mut held = HeldDevices::default();
            for change in changes {
                apply(&mut held, change);
                let double = held.by_id.iter().filter(|(_, held)| held.is_double_allocation());
                let double: BTreeSet<_> = double.map(|(id, _)| id.clone()).collect();
                prop_assert_eq!(held.given_twice(), double.iter().collect());
            }
        }
    }
}
