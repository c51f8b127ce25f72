//! A ResourceSlice: devices that a driver publishes for Dynamic Resource Allocation.
//!
//! Source: kubernetes `staging/src/k8s.io/api/resource/v1/types.go`, 1.36 and 1.37. `v1beta2` has the same fields. Left out, since it changes no
//! allocation: `partitionTypeAttribute`, by which Kubernetes reports the devices of a pool (KEP-5677).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{affinity::NodeSelector, metadata::Metadata, nullable, quantity::Quantity};

/// Some of the devices of a pool.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct ResourceSlice {
    /// The slice's name.
    pub metadata: Metadata,
    /// The devices.
    #[serde(deserialize_with = "nullable")]
    pub spec: ResourceSliceSpec,
}

/// `spec` of a ResourceSlice. One of the four fields that select nodes is set.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceSliceSpec {
    /// The driver that publishes the slice.
    #[serde(deserialize_with = "nullable")]
    pub driver: String,
    /// The pool that the slice belongs to.
    #[serde(deserialize_with = "nullable")]
    pub pool: ResourcePool,
    /// The one node from which the devices can be reached.
    pub node_name: Option<String>,
    /// The nodes from which the devices can be reached.
    pub node_selector: Option<NodeSelector>,
    /// Whether the devices can be reached from every node.
    #[serde(deserialize_with = "nullable")]
    pub all_nodes: bool,
    /// Whether each device selects its nodes itself.
    #[serde(deserialize_with = "nullable")]
    pub per_device_node_selection: bool,
    /// The devices.
    #[serde(deserialize_with = "nullable")]
    pub devices: Vec<SliceDevice>,
    /// Sets of counters from which devices of the pool take; a slice has these or devices.
    #[serde(deserialize_with = "nullable")]
    pub shared_counters: Vec<CounterSet>,
    /// What kubelet need not ask the driver to do for these devices, since 1.37 (`DRAOptionalNodeOperations`).
    #[serde(deserialize_with = "nullable")]
    pub skip_node_operations: Vec<String>,
}

/// The pool of a slice.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourcePool {
    /// Its name, which is unique together with the driver's.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// The pool's version: slices of a lower one are obsolete.
    #[serde(deserialize_with = "nullable")]
    pub generation: i64,
    /// How many slices the pool has at this generation.
    #[serde(deserialize_with = "nullable")]
    pub resource_slice_count: i64,
}

/// One device.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct SliceDevice {
    /// Its name, unique in the pool.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// Attributes by name; a name without a domain belongs to the driver's.
    #[serde(deserialize_with = "nullable")]
    pub attributes: BTreeMap<String, DeviceAttribute>,
    /// Capacities by name, as attributes are named.
    #[serde(deserialize_with = "nullable")]
    pub capacity: BTreeMap<String, DeviceCapacity>,
    /// What it takes of shared counters once it is allocated.
    #[serde(deserialize_with = "nullable")]
    pub consumes_counters: Vec<CounterConsumption>,
    /// The one node from which it can be reached, where each device selects its nodes.
    pub node_name: Option<String>,
    /// The nodes from which it can be reached, where each device selects its nodes.
    pub node_selector: Option<NodeSelector>,
    /// Whether it can be reached from every node, where each device selects its nodes.
    #[serde(deserialize_with = "nullable")]
    pub all_nodes: bool,
    /// Its taints.
    #[serde(deserialize_with = "nullable")]
    pub taints: Vec<DeviceTaint>,
    /// Whether an allocation holds for the node alone for which it was made.
    #[serde(deserialize_with = "nullable")]
    pub binds_to_node: bool,
    /// Conditions that must be true before a pod is bound.
    #[serde(deserialize_with = "nullable")]
    pub binding_conditions: Vec<String>,
    /// Conditions of which none may be true.
    #[serde(deserialize_with = "nullable")]
    pub binding_failure_conditions: Vec<String>,
    /// Whether several requests can share it, each with a part of its capacity.
    #[serde(deserialize_with = "nullable")]
    pub allow_multiple_allocations: bool,
    /// What an allocation takes of the node's own resources, by name (KEP-5517), under its names of 1.37 and 1.36.
    #[serde(alias = "nodeAllocatableResourceMappings", deserialize_with = "nullable")]
    pub node_allocatable_resources: BTreeMap<String, NodeAllocatableResource>,
}

/// How a device takes one of the node's own resources. 1.36 has other fields, which are not read: both of these are absent then.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct NodeAllocatableResource {
    /// What the device itself stands for.
    pub mapping: Option<NodeAllocatableMapping>,
    /// What its users take besides.
    pub overhead: Option<NodeAllocatableOverhead>,
}

/// How much of a resource a device stands for: by a capacity that is taken of it, or by itself.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeAllocatableMapping {
    /// The capacity.
    pub capacity_key: Option<String>,
    /// How much a unit of that capacity is; absent: 1.
    pub capacity_multiplier: Option<Quantity>,
    /// How much the device is.
    pub device_multiplier: Option<Quantity>,
}

/// How much of a resource the users of a device take besides.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeAllocatableOverhead {
    /// Each pod.
    pub per_pod: Option<Quantity>,
    /// Each container, besides.
    pub per_container: Option<Quantity>,
}

/// The value of an attribute. One field is set; what a later version of the API adds leaves all of them absent.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct DeviceAttribute {
    /// A number.
    pub int: Option<i64>,
    /// A truth value.
    pub bool: Option<bool>,
    /// A text.
    pub string: Option<String>,
    /// A version, as semver.org has it.
    pub version: Option<String>,
    /// Numbers.
    pub ints: Option<Vec<i64>>,
    /// Truth values.
    pub bools: Option<Vec<bool>>,
    /// Texts.
    pub strings: Option<Vec<String>>,
    /// Versions.
    pub versions: Option<Vec<String>>,
}

impl DeviceAttribute {
    /// Whether it has a list of values.
    pub fn is_list(&self) -> bool {
        let Self { int: _, bool: _, string: _, version: _, ints, bools, strings, versions } = self;
        ints.is_some() || bools.is_some() || strings.is_some() || versions.is_some()
    }
}

/// A capacity.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceCapacity {
    /// How much there is.
    pub value: Quantity,
    /// Which amounts can be asked of a shared device.
    pub request_policy: Option<CapacityRequestPolicy>,
}

/// Which amounts of a capacity can be asked for. At most one of the two sets is given.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct CapacityRequestPolicy {
    /// What a request takes that names no amount.
    pub default: Option<Quantity>,
    /// The amounts, in ascending order.
    pub valid_values: Option<Vec<Quantity>>,
    /// A range of amounts.
    pub valid_range: Option<CapacityRange>,
}

/// A range of amounts.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct CapacityRange {
    /// The least.
    pub min: Option<Quantity>,
    /// The most.
    pub max: Option<Quantity>,
    /// By how much amounts differ, counted from the least.
    pub step: Option<Quantity>,
}

/// A set of counters.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct CounterSet {
    /// Its name, unique in the pool.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// The counters by name.
    #[serde(deserialize_with = "nullable")]
    pub counters: BTreeMap<String, Counter>,
}

/// What a device takes of one set of counters.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct CounterConsumption {
    /// The set's name.
    #[serde(deserialize_with = "nullable")]
    pub counter_set: String,
    /// How much it takes of each counter.
    #[serde(deserialize_with = "nullable")]
    pub counters: BTreeMap<String, Counter>,
    /// The groups of which devices that take of the set at the same time must have one in common, since 1.37 (KEP-5963). A device without groups shares
    /// the set only with others that have none.
    #[serde(deserialize_with = "nullable")]
    pub compatibility_groups: Vec<String>,
}

/// An amount of a counter.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct Counter {
    /// The amount.
    pub value: Quantity,
}

/// A taint of a device.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[serde(default)]
pub struct DeviceTaint {
    /// The taint's key.
    #[serde(deserialize_with = "nullable")]
    pub key: String,
    /// Its value; empty when absent.
    #[serde(deserialize_with = "nullable")]
    pub value: String,
    /// `NoSchedule` and `NoExecute` keep requests away that do not tolerate the taint; `None` and other effects do not.
    #[serde(deserialize_with = "nullable")]
    pub effect: String,
}
