//! Claims of devices that a pod uses, as they are printed.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::object::resource_claim::AllocationResult;

/// A claim that a pod uses.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ClaimRow {
    namespace: String,
    name: String,
    /// Absent: it was given nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    allocation: Option<Value>,
    /// Its devices, for the table.
    #[serde(skip)]
    devices: Vec<String>,
}

impl ClaimRow {
    /// A claim with what it was given; what the input holds is printed as it is written there.
    pub fn new(
        (namespace, name): (String, String),
        unchanged: Option<Value>,
        given: Option<&AllocationResult>,
    ) -> Self {
        let allocation = unchanged.or_else(|| given.map(written));
        Self { namespace, name, allocation, devices: given.map(devices).unwrap_or_default() }
    }

    /// Whether it is the claim of this name.
    pub fn is_named(&self, name: &str) -> bool {
        self.name == name
    }

    /// What the table says of it; `None`: it was given nothing.
    pub fn remark(&self) -> Option<String> {
        self.allocation.as_ref().map(|_| format!("claim {}: {}", self.name, self.devices.join(", ")))
    }
}

fn devices(allocation: &AllocationResult) -> Vec<String> {
    let results = allocation.devices.results.iter();
    results.map(|result| format!("{}/{}/{}", result.driver, result.pool, result.device)).collect()
}

fn written(allocation: &AllocationResult) -> Value {
    serde_json::to_value(allocation).expect("an allocation has string keys only")
}
