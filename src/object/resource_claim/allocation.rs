//! What a claim was given: `status.allocation`, as the scheduler writes it and everything else reads it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::DeviceToleration;
use crate::object::{affinity::NodeSelector, device_class::Opaque, nullable, quantity::Quantity};

/// The devices, and the nodes from which they can be used.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AllocationResult {
    /// The devices.
    #[serde(deserialize_with = "nullable")]
    pub devices: DeviceAllocationResult,
    /// The nodes; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<NodeSelector>,
}

/// The devices of an allocation, and their configuration.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct DeviceAllocationResult {
    /// Each device.
    #[serde(deserialize_with = "nullable")]
    pub results: Vec<AllocatedDevice>,
    /// Parameters for drivers: first those of classes, then those of the claim.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub config: Vec<AllocationConfiguration>,
}

/// A device that was given for a request.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AllocatedDevice {
    /// The request, as `request` or `request/alternative`.
    #[serde(deserialize_with = "nullable")]
    pub request: String,
    /// The driver.
    #[serde(deserialize_with = "nullable")]
    pub driver: String,
    /// The driver's pool.
    #[serde(deserialize_with = "nullable")]
    pub pool: String,
    /// The device's name in the pool.
    #[serde(deserialize_with = "nullable")]
    pub device: String,
    /// Whether it is watched over and not used: others may have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_access: Option<bool>,
    /// The taints that the request tolerates.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<DeviceToleration>,
    /// Conditions that must be true before a pod is bound.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub binding_conditions: Vec<String>,
    /// Conditions of which none may be true.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub binding_failure_conditions: Vec<String>,
    /// Which share of a device it is, as a UUID; absent: the whole device.
    #[serde(rename = "shareID", skip_serializing_if = "Option::is_none")]
    pub share_id: Option<String>,
    /// How much it takes of each capacity of a shared device.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "BTreeMap::is_empty")]
    pub consumed_capacity: BTreeMap<String, Quantity>,
    /// What kubelet need not ask the driver to do for it, as its slice said when it was given.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub skip_node_operations: Vec<String>,
}

/// Parameters for a driver.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct AllocationConfiguration {
    /// Where they come from.
    pub source: ConfigurationSource,
    /// The requests for whose devices they are meant; none: all.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<String>,
    /// The parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

/// Where parameters come from.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum ConfigurationSource {
    /// From the class of a request.
    #[default]
    FromClass,
    /// From the claim.
    FromClaim,
}
