//! Claims of devices in the input of a simulation.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use crate::{
    cli::documents::{Document, DocumentError},
    object::{
        DeviceClass, DeviceTaintRule, Metadata, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
        resource_claim::VERSIONS,
    },
    scheduling::{model::gang::Group, world::object::Object},
};

/// Claims of devices in the input, and what decides on them.
#[derive(Debug, Default)]
pub(super) struct ClaimObjects {
    /// What drivers publish.
    pub(super) slices: Vec<Arc<ResourceSlice>>,
    /// Rules that taint devices.
    pub(super) taint_rules: Vec<Arc<DeviceTaintRule>>,
    /// Classes of devices.
    pub(super) classes: Vec<Arc<DeviceClass>>,
    /// Each claim, and where it stood.
    pub(super) claims: Vec<(ResourceClaim, String)>,
    /// By namespace and name.
    pub(super) templates: BTreeMap<(String, String), ResourceClaimTemplate>,
    /// By full name, the PodGroups of Kubernetes that have claims for their pods.
    pub(super) groups: BTreeMap<Arc<str>, Arc<Group>>,
    /// By namespace and name, the allocations of the input as they are written.
    pub(super) allocated: BTreeMap<(String, String), Value>,
}

impl ClaimObjects {
    /// Takes in which of these objects are PodGroups that have claims for their pods.
    pub(super) fn note_groups(&mut self, objects: &[Object]) {
        let group = |object: &Object| match object {
            Object::PodGroup(_, name, group) if !group.claims.is_empty() => {
                Some((name.clone(), group.clone()))
            }
            _ => None,
        };
        self.groups.extend(objects.iter().filter_map(group));
    }

    /// Takes in a document, if it is of one of these kinds; whether it is.
    pub(super) fn read(&mut self, document: &Document, called: &str) -> Result<bool, DocumentError> {
        if !VERSIONS.contains(&document.api_version()) {
            return Ok(false);
        }
        match document.kind() {
            "ResourceSlice" => self.slices.push(Arc::new(document.read()?)),
            "DeviceTaintRule" => self.taint_rules.push(Arc::new(document.read()?)),
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
