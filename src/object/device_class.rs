//! A DeviceClass: which devices a request may take, and how they are configured.
//!
//! Source: kubernetes `staging/src/k8s.io/api/resource/v1/types.go`, 1.36. `v1beta2` has the same fields.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, value::RawValue};

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
    pub opaque: Option<Opaque>,
}

/// A driver and its parameters, which may be any JSON. The API server allows 10,000 levels of it; what has more than about 120 can't be
/// read, and costs the object nothing else.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Opaque(Option<Value>);

impl Opaque {
    /// Whether it can be handed on.
    pub fn is_read(&self) -> bool {
        self.0.is_some()
    }
}

impl<'de> Deserialize<'de> for Opaque {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(serde_json::from_str(json.get()).ok()))
    }
}

impl Serialize for Opaque {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use crate::object::ResourceClaim;

    #[test]
    fn a_claim_is_read_however_deep_the_parameters_for_its_driver_are() {
        for (depth, read) in [(1, true), (100, true), (5000, false)] {
            let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            let config =
                format!(r#"[{{"requests":["r"],"opaque":{{"driver":"d","parameters":{{"a":{deep}}}}}}}]"#);
            let claim = format!(
                r#"{{"metadata":{{"name":"c"}},"spec":{{"devices":{{"config":{config}}}}},
                "status":{{"allocation":{{"devices":{{"results":[{{"device":"gpu-0"}}],"config":{config}}}}}}}}}"#
            );
            let claim: ResourceClaim = serde_json::from_str(&claim).unwrap();
            let devices = &claim.status.allocation.as_ref().unwrap().devices;
            assert_eq!(devices.results[0].device, "gpu-0");
            for opaque in [&claim.spec.devices.config[0].opaque, &devices.config[0].opaque] {
                assert_eq!(opaque.as_ref().unwrap().is_read(), read, "{depth} levels");
            }
            serde_json::to_value(claim.status.allocation).unwrap();
        }
    }
}
