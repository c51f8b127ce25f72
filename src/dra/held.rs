//! What allocated claims hold of devices.

use std::collections::BTreeMap;

use super::device::DeviceId;
use crate::object::{Amount, resource_claim::AllocationResult};

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
    /// Takes in what an allocation holds; returns what of it can't be read, as field and reason. Devices that are watched over by
    /// administrators are not in use.
    pub fn add(&mut self, allocation: &AllocationResult) -> Vec<String> {
        let mut unread = Vec::new();
        for (at, result) in allocation.devices.results.iter().enumerate() {
            if result.admin_access == Some(true) {
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
