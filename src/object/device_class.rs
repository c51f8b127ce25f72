//! A DeviceClass: which devices a request may take, and how they are configured.
//!
//! Source: kubernetes `staging/src/k8s.io/api/resource/v1/types.go`, 1.36. `v1beta2` has the same fields.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{metadata::Metadata, nullable};

/// A class of devices.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct DeviceClass {
    /// The class's name.
    pub metadata: Metadata,
    /// What belongs to the class.
    #[serde(deserialize_with = "nullable")]
    pub spec: DeviceClassSpec,
}

/// `spec` of a DeviceClass.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceClassSpec {
    /// Tests that a device must all pass.
    #[serde(deserialize_with = "nullable")]
    pub selectors: Vec<DeviceSelector>,
    /// Parameters for drivers, for every claim that uses the class.
    #[serde(deserialize_with = "nullable")]
    pub config: Vec<DeviceConfiguration>,
    /// The extended resource for which the class stands.
    pub extended_resource_name: Option<String>,
}

/// One test of devices.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct DeviceSelector {
    /// An expression in CEL; absent where a later version of the API has another kind of test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cel: Option<CelSelector>,
}

/// A test in CEL.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct CelSelector {
    /// The expression, true or false of a `device`.
    #[serde(deserialize_with = "nullable")]
    pub expression: String,
}

/// Parameters for a driver, which the scheduler hands on unread.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct DeviceConfiguration {
    /// The driver and its parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Value>,
}
