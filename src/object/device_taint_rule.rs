//! A DeviceTaintRule: a taint that administrators add to devices which drivers publish (KEP-5055).
//!
//! Source: kubernetes `staging/src/k8s.io/api/resource/v1/types.go`, 1.37. `v1beta2` has the same fields, since 1.36.

use serde::Deserialize;

use super::{metadata::Metadata, nullable, resource_slice::DeviceTaint};

/// A taint, and the devices that have it.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct DeviceTaintRule {
    /// The rule's name.
    pub metadata: Metadata,
    /// The taint and the devices.
    #[serde(deserialize_with = "nullable")]
    pub spec: DeviceTaintRuleSpec,
}

/// `spec` of a DeviceTaintRule.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceTaintRuleSpec {
    /// The devices; absent: none.
    pub device_selector: Option<DeviceTaintSelector>,
    /// The taint.
    #[serde(deserialize_with = "nullable")]
    pub taint: DeviceTaint,
}

/// Which devices a rule is about: those for which all that is given is true.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct DeviceTaintSelector {
    /// The driver.
    pub driver: Option<String>,
    /// The pool's name, whichever driver's it is.
    pub pool: Option<String>,
    /// The device's name, in whichever pool.
    pub device: Option<String>,
}
