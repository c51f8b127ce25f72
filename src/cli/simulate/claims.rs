//! Claims of devices in a simulation: what the input holds of them, what stands in for the controller that makes claims from templates,
//! and what is printed.

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;
use serde_json::Value;

use super::place::Run;
use crate::{
    cli::documents::{Document, DocumentError},
    object::{
        DeviceClass, Metadata, Pod, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
        pod::PodResourceClaimStatus,
        resource_claim::{AllocationResult, VERSIONS},
    },
    scheduling::{
        PodInfo,
        model::{extended_resources::INFIX, prebind_step::PrebindStep},
        world::{object::Object, resource_claims::unreadable},
    },
};

/// Claims of devices in the input, and what decides on them.
#[derive(Debug, Default)]
pub(super) struct ClaimObjects {
    slices: Vec<Arc<ResourceSlice>>,
    classes: Vec<Arc<DeviceClass>>,
    /// Each claim, and where it stood.
    claims: Vec<(ResourceClaim, String)>,
    /// By namespace and name.
    templates: BTreeMap<(String, String), ResourceClaimTemplate>,
    /// By namespace and name, the allocations of the input as they are written.
    allocated: BTreeMap<(String, String), Value>,
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

impl Run<'_> {
    /// Takes in what decides on claims, and what claims hold.
    pub(super) fn set_claims(&mut self) {
        let objects = &self.input.claims;
        for slice in &objects.slices {
            self.snapshot.set_object(Object::ResourceSlice(slice.clone()));
        }
        for class in &objects.classes {
            self.snapshot.set_object(Object::DeviceClass(class.clone()));
        }
        for (claim, called) in &objects.claims {
            let unread = claim.status.allocation.as_ref().map(unreadable).unwrap_or_default();
            self.warnings.extend(unread.into_iter().map(|trouble| format!("{called}: {trouble}")));
            self.snapshot.set_object(Object::ResourceClaim(Arc::new(claim.clone())));
        }
    }

    /// Makes the pod's claims from their templates, as the resourceclaim controller does, and notes them in its status. A claim that is
    /// there already is the pod's; a template that is missing is an entry without a claim. Returns what is missing.
    pub(super) fn make_claims(&mut self, pod: &mut Pod) -> Vec<String> {
        let mut missing = Vec::new();
        for (at, entry) in pod.spec.resource_claims.iter().enumerate() {
            let Some(template) = &entry.resource_claim_template_name else { continue };
            if pod.status.resource_claim_statuses.iter().any(|status| status.name == entry.name) {
                continue;
            }
            let namespace = pod.metadata.namespace.clone();
            let Some(template) = self.input.claims.templates.get(&(namespace.clone(), template.to_string()))
            else {
                missing.push(format!(
                    "spec.resourceClaims[{at}].resourceClaimTemplateName: no ResourceClaimTemplate {namespace}/{template}"
                ));
                continue;
            };
            let name = format!("{}-{}", pod.metadata.name, entry.name);
            if self.snapshot.resource_claims().claim(&namespace, &name).is_none() {
                let uid = format!("{}-{}", pod.metadata.uid, entry.name);
                let metadata = Metadata { namespace, name: name.clone(), uid, ..Metadata::default() };
                let spec = template.spec.spec.clone();
                let claim = ResourceClaim { metadata, spec, ..ResourceClaim::default() };
                self.snapshot.set_object(Object::ResourceClaim(Arc::new(claim)));
            }
            pod.status.resource_claim_statuses.push(PodResourceClaimStatus {
                name: entry.name.clone(),
                resource_claim_name: Some(name.into()),
            });
        }
        missing
    }

    /// The claims that the pod uses, as they stand now.
    pub(super) fn claims(&self, info: &PodInfo) -> Vec<ClaimRow> {
        let known = self.snapshot.resource_claims();
        let mut rows: Vec<ClaimRow> = Vec::new();
        for name in info.footprint.resource_claims.iter().filter_map(|used| used.claim.as_ref()) {
            let Some(claim) = known.claim(&info.key.namespace, name) else { continue };
            if rows.iter().any(|row| row.name == **name) {
                continue;
            }
            let (namespace, name) = (claim.metadata.namespace.clone(), name.to_string());
            let given = known.allocation(&claim.metadata.namespace, &claim.metadata.name);
            let unchanged = self.input.claims.allocated.get(&(namespace.clone(), name.clone())).cloned();
            let devices = given.map(devices).unwrap_or_default();
            let allocation = unchanged.or_else(|| given.map(written));
            rows.push(ClaimRow { namespace, name, allocation, devices });
        }
        rows.extend(self.extended_claim(info));
        rows
    }
}

impl Run<'_> {
    /// The claim that serves extended resources of the pod, called by what it has in common in every run.
    fn extended_claim(&self, info: &PodInfo) -> Option<ClaimRow> {
        let charge = self.snapshot.ledger().get(&info.key.uid)?;
        let (_, given) = charge.steps.iter().find_map(PrebindStep::extended)?.made.as_ref()?;
        Some(ClaimRow {
            namespace: info.key.namespace.to_string(),
            name: format!("{}{INFIX}", info.key.name),
            allocation: Some(written(given)),
            devices: devices(given),
        })
    }
}

fn devices(allocation: &AllocationResult) -> Vec<String> {
    let results = allocation.devices.results.iter();
    results.map(|result| format!("{}/{}/{}", result.driver, result.pool, result.device)).collect()
}

fn written(allocation: &AllocationResult) -> Value {
    serde_json::to_value(allocation).expect("an allocation has string keys only")
}
