//! The devices of pools that are pieces of hardware with an id, or parts of such, by node and by driver.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{DevicePools, PoolId};
use crate::{
    dra::device::{DeviceId, PoolDevice},
    persistent::{PersistentMap, PersistentSet, value_of},
};

/// Which pools have such devices.
#[derive(Clone, Debug, Default)]
pub(super) struct HardwareIndex {
    by_node: PersistentMap<Arc<str>, BTreeSet<PoolId>>,
    by_driver: BTreeMap<Arc<str>, DriverPools>,
}

/// Pools of one driver.
#[derive(Clone, Debug, Default)]
struct DriverPools {
    /// Those with devices.
    any: PersistentSet<PoolId>,
    /// Those with devices that name their hardware.
    named: PersistentSet<PoolId>,
}

impl HardwareIndex {
    /// Takes in the devices of a pool that is not there.
    pub(super) fn add<'a>(&mut self, pool: &PoolId, devices: impl Iterator<Item = &'a PoolDevice>) {
        for device in devices {
            let of_driver = self.by_driver.entry(pool.0.clone()).or_default();
            of_driver.any.insert_mut(pool.clone());
            if let (Some(_), Some(node)) = (&device.hardware, device.node()) {
                of_driver.named.insert_mut(pool.clone());
                if !self.by_node.get(node).is_some_and(|pools| pools.contains(pool)) {
                    value_of(&mut self.by_node, &node.into()).insert(pool.clone());
                }
            }
        }
    }

    /// Takes a pool out, with these devices.
    pub(super) fn remove<'a>(&mut self, pool: &PoolId, devices: impl Iterator<Item = &'a PoolDevice>) {
        let Some(of_driver) = self.by_driver.get_mut(&pool.0) else { return };
        of_driver.any.remove_mut(pool);
        of_driver.named.remove_mut(pool);
        if of_driver.any.is_empty() {
            self.by_driver.remove(&pool.0);
        }
        for node in devices.filter(|device| device.hardware.is_some()).filter_map(PoolDevice::node) {
            if let Some(pools) = self.by_node.get_mut(node)
                && pools.remove(pool)
                && pools.is_empty()
            {
                self.by_node.remove_mut(node);
            }
        }
    }
}

impl DevicePools {
    /// How many pools have devices of this node that name their hardware.
    pub fn hardware_pools(&self, node: &str) -> usize {
        self.hardware.by_node.get(node).map_or(0, BTreeSet::len)
    }

    /// The devices of this node that name their hardware, with their pools; of a device that is published at several generations the
    /// newest comes last.
    pub fn hardware_of<'a>(&'a self, node: &'a str) -> impl Iterator<Item = (&'a PoolId, &'a PoolDevice)> {
        let pools = self.hardware.by_node.get(node).into_iter().flatten();
        let devices = pools.flat_map(|pool| self.devices_of(pool).map(move |device| (pool, device)));
        devices.filter(move |(_, device)| device.hardware.is_some() && device.node() == Some(node))
    }

    /// Every device of a pool, whatever node it is of; the newest generation comes last.
    pub fn devices_of(&self, pool: &PoolId) -> impl Iterator<Item = &PoolDevice> {
        let generations = self.pools.get(pool).into_iter();
        let published = generations.flat_map(|generations| generations.published.iter().rev());
        published.flat_map(|published| &published.slices).flat_map(|slice| &slice.devices)
    }

    /// A device, as the newest generation that has it publishes it.
    pub fn device(&self, id: &DeviceId) -> Option<&PoolDevice> {
        let pool = (id.driver.clone(), id.pool.clone());
        self.devices_of(&pool).filter(|device| device.id == *id).last()
    }

    /// Whether devices of this driver may be hardware with an id: not if it publishes devices and none of them names its own.
    pub fn may_name_hardware(&self, driver: &str) -> bool {
        self.hardware.by_driver.get(driver).is_none_or(|pools| !pools.named.is_empty())
    }
}
