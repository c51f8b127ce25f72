//! A ResourceClaim: the devices that pods ask for, and those that they were given.
//!
//! Source: kubernetes `staging/src/k8s.io/api/resource/v1/types.go`, 1.36 and 1.37. `v1beta2` has the same fields.

mod allocation;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    device_class::{DeviceSelector, Opaque},
    metadata::Metadata,
    nullable,
    quantity::Quantity,
};

pub use allocation::{
    AllocatedDevice, AllocationConfiguration, AllocationResult, ConfigurationSource, DeviceAllocationResult,
};

/// Devices that one or more pods ask for.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct ResourceClaim {
    /// Name and namespace.
    pub metadata: Metadata,
    /// What is asked for.
    #[serde(deserialize_with = "nullable")]
    pub spec: ResourceClaimSpec,
    /// What was given.
    #[serde(deserialize_with = "nullable")]
    pub status: ResourceClaimStatus,
}

/// A template from which each pod that names it gets a claim of its own.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct ResourceClaimTemplate {
    /// Name and namespace.
    pub metadata: Metadata,
    /// The claim.
    #[serde(deserialize_with = "nullable")]
    pub spec: ResourceClaimTemplateSpec,
}

/// `spec` of a ResourceClaimTemplate.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct ResourceClaimTemplateSpec {
    /// `spec` of each claim.
    #[serde(deserialize_with = "nullable")]
    pub spec: ResourceClaimSpec,
}

/// The versions of `resource.k8s.io` that are read from files: they have the same fields.
pub const VERSIONS: &[&str] = &["resource.k8s.io/v1", "resource.k8s.io/v1beta2"];

/// `spec` of a ResourceClaim.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct ResourceClaimSpec {
    /// The devices.
    #[serde(deserialize_with = "nullable")]
    pub devices: DeviceClaim,
}

/// The devices that a claim asks for.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct DeviceClaim {
    /// Requests, all of which must be served.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<DeviceRequest>,
    /// What must hold between the devices of several requests.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<DeviceConstraint>,
    /// Parameters for drivers.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub config: Vec<ClaimConfiguration>,
}

/// One request: exactly one set of devices, or the first of several that can be had.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceRequest {
    /// The request's name.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// The one set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exactly: Option<RequestedDevices>,
    /// Several sets, the preferred first.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub first_available: Vec<RequestedDevices>,
}

/// Devices of one class.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RequestedDevices {
    /// The name among the alternatives of a request; empty for one that has none.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The class.
    #[serde(deserialize_with = "nullable")]
    pub device_class_name: String,
    /// Tests that a device must pass beside those of the class.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub selectors: Vec<DeviceSelector>,
    /// `ExactCount`, also when absent, or `All`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation_mode: Option<String>,
    /// How many with `ExactCount`; absent: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<i64>,
    /// Whether the devices are watched over and not used, so that others may have them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_access: Option<bool>,
    /// Taints that the request tolerates.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<DeviceToleration>,
    /// How much is needed of each device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<CapacityRequirements>,
    /// Attributes that are computed of each device, for constraints, since 1.37 (KEP-6080).
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub derived_attributes: Vec<DerivedAttribute>,
}

/// An attribute that is computed of a device.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct DerivedAttribute {
    /// The attribute's full name.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// What it is, in CEL.
    #[serde(deserialize_with = "nullable")]
    pub expression: String,
}

/// How much is needed of each device.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct CapacityRequirements {
    /// Amounts by the capacity's name, as the device spells it.
    #[serde(deserialize_with = "nullable")]
    pub requests: BTreeMap<String, Quantity>,
}

/// What must hold between devices. One of the two attributes is set.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceConstraint {
    /// The requests whose devices are compared, by `request` or `request/alternative`; none: all.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<String>,
    /// The attribute that must be the same on all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_attribute: Option<String>,
    /// The attribute that must be different on each of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distinct_attribute: Option<String>,
}

/// Parameters for a driver.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct ClaimConfiguration {
    /// The requests for whose devices they are meant; none: all.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<String>,
    /// The parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

/// A request's toleration of a taint.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceToleration {
    /// The taint's key; absent with `Exists`: every key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// `Equal` or `Exists`; the API server stores `Equal` where none is given.
    #[serde(default = "equal", deserialize_with = "equal_unless_given")]
    pub operator: String,
    /// The taint's value, for `Equal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The effect; absent: every effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// For how long a `NoExecute` taint is tolerated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

fn equal() -> String {
    "Equal".to_owned()
}

/// The API server takes an empty text for none, too (kubernetes `staging/src/k8s.io/api/resource/v1/types.go`: `+default="Equal"`).
fn equal_unless_given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let given: Option<String> = Option::deserialize(deserializer)?;
    Ok(given.filter(|operator| !operator.is_empty()).unwrap_or_else(equal))
}

/// `status` of a ResourceClaim.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceClaimStatus {
    /// What was given; absent: nothing yet.
    pub allocation: Option<AllocationResult>,
    /// The pods that may use it, 256 at most.
    #[serde(deserialize_with = "nullable")]
    pub reserved_for: Vec<ConsumerReference>,
    /// What drivers state of devices that were given.
    #[serde(deserialize_with = "nullable")]
    pub devices: Vec<AllocatedDeviceStatus>,
}

/// What a driver states of a device that was given.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct AllocatedDeviceStatus {
    /// The driver.
    #[serde(deserialize_with = "nullable")]
    pub driver: String,
    /// The driver's pool.
    #[serde(deserialize_with = "nullable")]
    pub pool: String,
    /// The device's name in the pool.
    #[serde(deserialize_with = "nullable")]
    pub device: String,
    /// Which share of the device; absent: the whole device.
    #[serde(rename = "shareID")]
    pub share_id: Option<String>,
    /// Conditions, such as those that must be true before a pod is bound (KEP-5007).
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<DeviceCondition>,
}

/// A condition of a device.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct DeviceCondition {
    /// The condition's type.
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    #[serde(deserialize_with = "nullable")]
    pub status: String,
    /// Why, in words.
    #[serde(deserialize_with = "nullable")]
    pub message: String,
}

/// A user of a claim.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct ConsumerReference {
    /// The API group of the resource; empty for pods.
    #[serde(rename = "apiGroup", deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub api_group: String,
    /// The resource: `pods`, or `podgroups` of `scheduling.k8s.io`.
    #[serde(deserialize_with = "nullable")]
    pub resource: String,
    /// The user's name.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// The user's uid.
    #[serde(deserialize_with = "nullable")]
    pub uid: String,
}
