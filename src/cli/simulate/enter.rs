//! The pods of a simulation that want a place: admitted, completed as by the API server and its controllers, and read.

use std::sync::Arc;

use anyhow::Result;
use jiff::Timestamp;

use super::{
    admit::{self, Entrance},
    input::{Incoming, SimulationInput, called},
    lists::SimulationLists,
};
use crate::{
    admission::Facts,
    cluster::Reader,
    object::{Metadata, Pod, ResourceClaim, pod::PodResourceClaimStatus},
    scheduling::model::{claim_use::ResourceClaimUse, name::full_name},
    simulation::{Entered, SimulatedPod, Wants},
};

/// What a pod has to pass before it wants a place.
pub(super) struct PodEntry<'a> {
    /// The documents.
    pub(super) input: &'a SimulationInput,
    /// What reads objects.
    pub(super) reader: &'a Reader,
    /// What the rules may know.
    pub(super) facts: Facts,
    /// Whether pods meet the rules.
    pub(super) entrance: Entrance,
    /// The present.
    pub(super) now: Timestamp,
}

impl PodEntry<'_> {
    /// Lists the pod, unless it is denied. Returns its row so far.
    pub(super) fn enter(&self, incoming: &Incoming, lists: &mut SimulationLists) -> Result<SimulatedPod> {
        let document = &incoming.document;
        let mut row = SimulatedPod::new(document.namespace_or_default(), document.name().unwrap_or_default());
        let entered = admit::enter(incoming, self.entrance, &self.facts, &lists.extended)?;
        let mut pod = match entered {
            Entered::Ignored(warnings) => {
                // A node may be kept for it.
                let pod: Pod = document.read_part(&document.value, &incoming.places)?;
                lists.lists.pods.push(self.reader.pod(&pod).0);
                row.warnings = warnings;
                return Ok(row);
            }
            Entered::Denied(violations, warnings) => return Ok(row.denied(violations, warnings)),
            Entered::Ours(pod, warnings) => {
                row.warnings = warnings;
                pod
            }
        };
        let called = called(document);
        pod.spec.priority = Some(self.input.priorities.of(&pod).unwrap_or_else(|class| {
            let message = format!("{called}: spec.priorityClassName: no PriorityClass {class}; taken as 0");
            lists.warnings.push(message);
            0
        }));
        pod.metadata.creation_timestamp.get_or_insert(self.now);
        let missing = self.make_claims(&mut pod, lists);
        lists.warnings.extend(missing.into_iter().map(|trouble| format!("{called}: {trouble}")));
        let (info, troubles) = self.reader.pod(&pod);
        lists.warn(&called, &troubles);
        let (row, wants) = row.entering(&info.claim, admit::is_gated(document));
        if wants == Wants::Place {
            lists.positions.insert(info.key.uid.clone(), incoming.position);
        }
        lists.lists.pods.push(info);
        Ok(row)
    }

    /// Makes the pod's claims and those of its PodGroup from their templates, as the resourceclaim controller does, and notes them in its status. A
    /// claim that is there already is the pod's or the PodGroup's; a template that is missing is an entry without a claim. Returns what is missing.
    fn make_claims(&self, pod: &mut Pod, lists: &mut SimulationLists) -> Vec<String> {
        let mut missing = Vec::new();
        let entries = ResourceClaimUse::all(pod);
        let group = pod.spec.scheduling_group.as_ref().and_then(|group| group.pod_group_name.as_deref());
        let group = group.and_then(|name| {
            let group = self.input.claims.groups.get(&full_name(&pod.metadata.namespace, name))?;
            Some((name, group))
        });
        let of_group = |entry: &str| {
            let used = entries.iter().find(|used| *used.entry == *entry)?;
            group.filter(|(_, group)| group.has_claim(used))
        };
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
            let (owner, uid) = match of_group(&entry.name) {
                Some((name, group)) => (name, &*group.status.uid),
                None => (pod.metadata.name.as_str(), pod.metadata.uid.as_str()),
            };
            let (name, uid) = (format!("{owner}-{}", entry.name), format!("{uid}-{}", entry.name));
            lists.claims.entry((namespace.clone(), name.clone())).or_insert_with(|| {
                let metadata = Metadata { namespace, name: name.clone(), uid, ..Metadata::default() };
                let spec = template.spec.spec.clone();
                Arc::new(ResourceClaim { metadata, spec, ..ResourceClaim::default() })
            });
            pod.status.resource_claim_statuses.push(PodResourceClaimStatus {
                name: entry.name.clone(),
                resource_claim_name: Some(name.into()),
            });
        }
        missing
    }
}
