//! Claims of devices in a simulation: what the input holds of them, and what is printed of each.

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;
use serde_json::Value;

use crate::{
    cli::documents::{Document, DocumentError},
    object::{
        DeviceClass, Metadata, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
        resource_claim::{AllocationResult, VERSIONS},
    },
};

/// Claims of devices in the input, and what decides on them.
#[derive(Debug, Default)]
pub(super) struct ClaimObjects {
    /// What drivers publish.
    pub(super) slices: Vec<Arc<ResourceSlice>>,
    /// Classes of devices.
    pub(super) classes: Vec<Arc<DeviceClass>>,
    /// Each claim, and where it stood.
    pub(super) claims: Vec<(ResourceClaim, String)>,
    /// By namespace and name.
    pub(super) templates: BTreeMap<(String, String), ResourceClaimTemplate>,
    /// By namespace and name, the allocations of the input as they are written.
    pub(super) allocated: BTreeMap<(String, String), Value>,
}

/// A claim that a pod uses.
#[derive(Clone, Debug, Serialize)]
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
    pub(super) fn new(
        (namespace, name): (String, String),
        unchanged: Option<Value>,
        given: Option<&AllocationResult>,
    ) -> Self {
        let allocation = unchanged.or_else(|| given.map(written));
        Self { namespace, name, allocation, devices: given.map(devices).unwrap_or_default() }
    }

    /// Whether it is the claim of this name.
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.name == name
    }

    /// What the table says of it; `None`: it was given nothing.
    pub(super) fn remark(&self) -> Option<String> {
        self.allocation.as_ref().map(|_| format!("claim {}: {}", self.name, self.devices.join(", ")))
    }
}

impl ClaimObjects {
    /// Takes in a document, if it is of one of these kinds; whether it is.
    pub(super) fn read(&mut self, document: &Document, called: &str) -> Result<bool, DocumentError> {
        if !VERSIONS.contains(&document.api_version()) {
            return Ok(false);
        }
        match document.kind() {
            "ResourceSlice" => self.slices.push(Arc::new(document.read()?)),
            "DeviceClass" => self.classes.push(Arc::new(document.read()?)),
            "ResourceClaimTemplate" => {
                let mut template: ResourceClaimTemplate = document.read()?;
                self.templates.insert(key(&mut template.metadata), template);
            }
            "ResourceClaim" => {
                let mut claim: ResourceClaim = document.read()?;
                let key = key(&mut claim.metadata);
                if claim.status.allocation.is_some() {
                    let allocation = document.value["status"]["allocation"].clone();
                    self.allocated.insert(key, allocation);
                }
                self.claims.push((claim, called.to_owned()));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Namespace and name; an object that names no namespace is in `default`.
fn key(metadata: &mut Metadata) -> (String, String) {
    if metadata.namespace.is_empty() {
        "default".clone_into(&mut metadata.namespace);
    }
    (metadata.namespace.clone(), metadata.name.clone())
}

fn devices(allocation: &AllocationResult) -> Vec<String> {
    let results = allocation.devices.results.iter();
    results.map(|result| format!("{}/{}/{}", result.driver, result.pool, result.device)).collect()
}

fn written(allocation: &AllocationResult) -> Value {
    serde_json::to_value(allocation).expect("an allocation has string keys only")
}
