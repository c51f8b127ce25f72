//! What one device takes of its node's own resources, as it is published (KEP-5517).
//!
//! Source: kubernetes 1.37 `api/resource/v1/types.go`, `NodeAllocatableResource`.

use std::{collections::BTreeMap, sync::Arc};

use crate::object::{
    Amount, Quantity,
    resource_slice::{NodeAllocatableMapping, NodeAllocatableOverhead, SliceDevice},
};

/// What a device takes of each resource of its node.
#[derive(Clone, Debug, Default)]
pub(in crate::dra) struct DeviceNodeResources(pub(in crate::dra) BTreeMap<Arc<str>, DeviceNodeResource>);

/// What a device takes of one resource.
#[derive(Clone, Debug)]
pub(in crate::dra) struct DeviceNodeResource {
    pub(in crate::dra) mapping: Option<Mapping>,
    pub(in crate::dra) overhead: OverheadTaken,
}

/// What a device stands for.
#[derive(Clone, Debug)]
pub(in crate::dra) enum Mapping {
    /// So much for each unit of a capacity that is taken of it.
    OfCapacity { name: String, each: Amount },
    /// So much.
    OfDevice(Amount),
}

/// What users of a device take besides; `None`: that is not said.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct OverheadTaken {
    /// Each pod.
    pub per_pod: Option<Amount>,
    /// Each container of it that uses the claim.
    pub per_container: Option<Amount>,
}

impl DeviceNodeResources {
    /// Reads what a device takes; the error is why the pool can't be used.
    pub(in crate::dra) fn read(device: &SliceDevice) -> Result<Self, String> {
        let read = device.node_allocatable_resources.iter().map(|(name, resource)| {
            let mapping = resource.mapping.as_ref().map(Mapping::read).transpose();
            let overhead = resource.overhead.as_ref().map(OverheadTaken::read).transpose();
            let error = |reason| format!("device {}: nodeAllocatableResources[{name}].{reason}", device.name);
            let mapping = mapping.map_err(error)?.flatten();
            Ok((
                name.as_str().into(),
                DeviceNodeResource { mapping, overhead: overhead.map_err(error)?.unwrap_or_default() },
            ))
        });
        Ok(Self(read.collect::<Result<_, String>>()?))
    }

    /// Whether it takes nothing.
    pub(in crate::dra) fn is_nothing(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it stands for some of a resource.
    pub(in crate::dra) fn is_mapped(&self) -> bool {
        self.0.values().any(|resource| resource.mapping.is_some())
    }
}

impl Mapping {
    /// A capacity comes before the device; `None`: neither is named.
    fn read(mapping: &NodeAllocatableMapping) -> Result<Option<Self>, String> {
        let amount = |field: &str, quantity: &Quantity| {
            quantity.amount().map_err(|error| format!("mapping.{field}: {error}"))
        };
        if let Some(name) = mapping.capacity_key.as_ref().filter(|name| !name.is_empty()) {
            let each = mapping.capacity_multiplier.as_ref().map(|each| amount("capacityMultiplier", each));
            let each = each.transpose()?.unwrap_or(Amount::units(1));
            return Ok(Some(Self::OfCapacity { name: name.clone(), each }));
        }
        let device =
            mapping.device_multiplier.as_ref().map(|of| amount("deviceMultiplier", of)).transpose()?;
        Ok(device.map(Self::OfDevice))
    }
}

impl OverheadTaken {
    fn read(overhead: &NodeAllocatableOverhead) -> Result<Self, String> {
        let amount = |field: &str, quantity: Option<&Quantity>| {
            let amount = quantity.map(Quantity::amount).transpose();
            amount.map_err(|error| format!("overhead.{field}: {error}"))
        };
        Ok(Self {
            per_pod: amount("perPod", overhead.per_pod.as_ref())?,
            per_container: amount("perContainer", overhead.per_container.as_ref())?,
        })
    }

    pub(in crate::dra) fn is_nothing(self) -> bool {
        self.per_pod.is_none() && self.per_container.is_none()
    }

    pub(in crate::dra) fn and(self, other: Self) -> Self {
        let sum = |one: Option<Amount>, other: Option<Amount>| match (one, other) {
            (Some(one), Some(other)) => Some(one.plus(other)),
            (one, other) => one.or(other),
        };
        Self {
            per_pod: sum(self.per_pod, other.per_pod),
            per_container: sum(self.per_container, other.per_container),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_quantity_that_is_none_makes_the_pool_unusable() {
        let resources = json!({"cpu": {"overhead": {"perPod": "much"}}});
        let device =
            serde_json::from_value(json!({"name": "a", "nodeAllocatableResources": resources})).unwrap();
        let error = DeviceNodeResources::read(&device).unwrap_err();
        assert_eq!(
            error,
            "device a: nodeAllocatableResources[cpu].overhead.perPod: `much` is not a quantity"
        );
    }
}
