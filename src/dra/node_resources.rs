//! What devices take of their node's own resources, such as cpu and memory, once they are allocated (KEP-5517).
//!
//! It must not know what a pod requests besides, nor how much a node has.
//! Source: kubernetes 1.37 `api/resource/v1/types.go`, `NodeAllocatableResource`, and
//! `pkg/scheduler/framework/plugins/dynamicresources/nodeallocatabledynamicresources.go`.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    AllocationError, DevicePools,
    device::{DeviceId, Mapping, OverheadTaken},
};
use crate::object::{
    Amount,
    resource_claim::{AllocatedDevice, AllocationResult},
};

/// What the devices of a claim take of their node's own resources, by name.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NodeResourcesTaken {
    /// What the devices themselves stand for, once for the claim.
    pub mapped: BTreeMap<Arc<str>, Amount>,
    /// What each user of the claim takes besides.
    pub overhead: BTreeMap<Arc<str>, OverheadTaken>,
}

impl NodeResourcesTaken {
    /// What these devices take, as they are published; of a device that no longer is, nothing is known, and nothing counts.
    pub fn of(allocation: &AllocationResult, pools: &DevicePools) -> Result<Self, AllocationError> {
        let mut taken = Self::default();
        if pools.take_of_nodes() {
            for allocated in &allocation.devices.results {
                taken.add(allocated, pools)?;
            }
        }
        Ok(taken)
    }

    /// Whether one of these devices stands for some of a node's resources: then only one pod may use them.
    pub fn are_mapped(allocation: &AllocationResult, pools: &DevicePools) -> bool {
        let is_mapped = |allocated: &AllocatedDevice| {
            pools.device(&allocated.into()).is_some_and(|device| device.nodes.takes.is_mapped())
        };
        pools.take_of_nodes() && allocation.devices.results.iter().any(is_mapped)
    }

    /// The first of these devices that takes anything of its node.
    pub fn first_taking(allocation: &AllocationResult, pools: &DevicePools) -> Option<DeviceId> {
        let takes = |id: &DeviceId| pools.device(id).is_some_and(|device| !device.nodes.takes.is_nothing());
        let mut devices = allocation.devices.results.iter().map(DeviceId::from);
        pools.take_of_nodes().then(|| devices.find(takes)).flatten()
    }

    /// Whether nothing is taken.
    pub fn is_nothing(&self) -> bool {
        self.mapped.is_empty() && self.overhead.is_empty()
    }

    fn add(&mut self, allocated: &AllocatedDevice, pools: &DevicePools) -> Result<(), AllocationError> {
        let Some(device) = pools.device(&allocated.into()) else { return Ok(()) };
        for (name, resource) in &device.nodes.takes.0 {
            let mapped = match &resource.mapping {
                Some(Mapping::OfDevice(amount)) => Some(*amount),
                Some(Mapping::OfCapacity { name: capacity, each }) => {
                    consumed(allocated, capacity, name)?.map(|consumed| consumed.times(*each))
                }
                None => None,
            };
            if let Some(mapped) = mapped {
                let sum = self.mapped.entry(name.clone()).or_default();
                *sum = sum.plus(mapped);
            }
            if !resource.overhead.is_nothing() {
                let sum = self.overhead.entry(name.clone()).or_default();
                *sum = sum.and(resource.overhead);
            }
        }
        Ok(())
    }
}

/// How much of a capacity the allocation takes; `None`: it takes others alone.
fn consumed(
    allocated: &AllocatedDevice,
    capacity: &str,
    resource: &str,
) -> Result<Option<Amount>, AllocationError> {
    let error = |reason: String| AllocationError::Device {
        device: DeviceId::from(allocated).into(),
        field: format!("nodeAllocatableResources[{resource}].mapping.capacityKey"),
        reason,
    };
    if allocated.consumed_capacity.is_empty() {
        return Err(error(
            "the device was not given as a share, so that no capacity is taken of it".to_owned(),
        ));
    }
    let Some(consumed) = allocated.consumed_capacity.get(capacity) else { return Ok(None) };
    let consumed = consumed.amount();
    consumed.map(Some).map_err(|reason| error(format!("what the claim takes of {capacity}: {reason}")))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::object::Quantity;

    fn pools(devices: &Value) -> DevicePools {
        let spec = json!({"driver": "d", "nodeName": "n", "devices": devices,
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}});
        DevicePools::new(&[serde_json::from_value(json!({"metadata": {"name": "s"}, "spec": spec})).unwrap()])
    }

    /// What a claim with these devices, and so much of the capacity `cores` of each, takes.
    fn taken(devices: &Value, results: &[(&str, Option<&str>)]) -> Result<NodeResourcesTaken, String> {
        let results = results.iter().map(|(device, cores)| {
            let consumed = cores.map_or(json!({}), |cores| json!({"cores": cores}));
            json!({"driver": "d", "pool": "p", "device": device, "consumedCapacity": consumed})
        });
        let allocation = json!({"devices": {"results": results.collect::<Vec<_>>()}});
        let taken = NodeResourcesTaken::of(&serde_json::from_value(allocation).unwrap(), &pools(devices));
        taken.map_err(|error| error.to_string())
    }

    fn amount(text: &str) -> Amount {
        Quantity::from(text).amount().unwrap()
    }

    #[test]
    fn each_device_counts_and_a_capacity_by_what_is_taken_of_it() {
        let resources = json!({
            "cpu": {"mapping": {"capacityKey": "cores", "capacityMultiplier": "1500m"}},
            "memory": {"mapping": {"deviceMultiplier": "1Gi"}, "overhead": {"perPod": "10Mi"}},
            "hugepages-2Mi": {"overhead": {"perPod": "2Mi", "perContainer": "4Mi"}},
        });
        let device = |name: &str| json!({"name": name, "allowMultipleAllocations": true, "nodeAllocatableResources": resources});
        let devices = json!([device("a"), device("b"), {"name": "c"}]);
        let both = taken(&devices, &[("a", Some("2")), ("b", Some("1")), ("c", None)]).unwrap();
        let mapped = [("cpu", "4500m"), ("memory", "2Gi")].map(|(name, one)| (name.into(), amount(one)));
        assert_eq!(both.mapped, mapped.into());
        let overhead = |pod: &str, container: Option<&str>| OverheadTaken {
            per_pod: Some(amount(pod)),
            per_container: container.map(amount),
        };
        let expected = [
            ("hugepages-2Mi".into(), overhead("4Mi", Some("8Mi"))),
            ("memory".into(), overhead("20Mi", None)),
        ];
        assert_eq!(both.overhead, expected.into());
        assert!(taken(&devices, &[("c", None), ("gone", None)]).unwrap().is_nothing());
    }

    #[test]
    fn a_capacity_of_which_nothing_can_be_taken_is_an_error_that_names_the_field() {
        let resources = json!({"cpu": {"mapping": {"capacityKey": "cores", "capacityMultiplier": "2"}}});
        let devices = json!([{"name": "a", "nodeAllocatableResources": resources}]);
        let field = "device d/p/a: nodeAllocatableResources[cpu].mapping.capacityKey";
        let whole = "the device was not given as a share, so that no capacity is taken of it";
        assert_eq!(taken(&devices, &[("a", None)]), Err(format!("{field}: {whole}")));
        let unreadable = taken(&devices, &[("a", Some("many"))]);
        assert_eq!(
            unreadable,
            Err(format!("{field}: what the claim takes of cores: `many` is not a quantity"))
        );
    }
}
