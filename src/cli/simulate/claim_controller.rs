//! What stands in for the resourceclaim controller: claims of devices that are made from templates, and how those of a pod stand in the end.

use std::sync::Arc;

use super::{claims::ClaimRow, run::SimulationRun};
use crate::{
    object::{Metadata, Pod, ResourceClaim, pod::PodResourceClaimStatus},
    scheduling::{
        PodInfo,
        model::{extended_resources::INFIX, prebind_step::PrebindStep},
        world::{object::Object, resource_claims::unreadable},
    },
};

impl SimulationRun<'_> {
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
            if rows.iter().any(|row| row.is_named(name)) {
                continue;
            }
            let names = (claim.metadata.namespace.clone(), name.to_string());
            let given = known.allocation(&claim.metadata.namespace, &claim.metadata.name);
            let unchanged = self.input.claims.allocated.get(&names).cloned();
            rows.push(ClaimRow::new(names, unchanged, given));
        }
        rows.extend(self.extended_claim(info));
        rows
    }

    /// The claim that serves extended resources of the pod, called by what it has in common in every run.
    fn extended_claim(&self, info: &PodInfo) -> Option<ClaimRow> {
        let charge = self.snapshot.ledger().get(&info.key.uid)?;
        let (_, given) = charge.steps.iter().find_map(PrebindStep::extended)?.made.as_ref()?;
        let names = (info.key.namespace.to_string(), format!("{}{INFIX}", info.key.name));
        Some(ClaimRow::new(names, None, Some(given)))
    }
}
