//! One pod through both stages of admission, as the API server leads it: mutation first, then validation of what came of it.

use std::collections::{BTreeMap, BTreeSet};

use json_patch::PatchOperation;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    admission::{
        self, AdmissionStage, Facts, NamespaceQuota, Operation, Request, Verdict, Violation,
        inventory::{InventorySummary, NodeOffer},
        namespace_pods,
        namespace_quota::HolderStanding,
        quota::needs,
        shares::PodShares,
    },
    cli::documents::{Document, DocumentError},
    cluster::read::by_class::modes_by_class,
    config::Config,
    device::Inventory,
    dialect::{
        MissingCount,
        koordinator::{self, Koordinator},
        marks,
    },
    dra::ExtendedResources,
    object::{Device, Namespace, Node, Pod, PodGroup, ResourceQuota, metadata::Controller, workload::Places},
};

/// What came of a review.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub enum ReviewVerdict {
    /// It may come in, perhaps changed.
    Admitted,
    /// It may not.
    Denied,
    /// None of Berth's business.
    Ignored,
}

/// Whether a pod concerns Berth, and why.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Concerned {
    /// It does not.
    No,
    /// It does, by what it asks for or names.
    ByItself,
    /// It does, since its namespace gives Berth all its pods.
    ByItsNamespace,
}

/// A reviewed pod.
#[derive(Clone, Debug, PartialEq)]
pub struct ReviewedPod {
    /// What came of it.
    pub outcome: ReviewVerdict,
    /// Whether it concerns Berth.
    pub concerned: Concerned,
    /// What was changed.
    pub patch: Vec<PatchOperation>,
    /// What the pod's author is warned of; fields are below the pod.
    pub warnings: Vec<Violation>,
    /// Why it was refused; fields are below the pod.
    pub violations: Vec<Violation>,
    /// The pod as it would be stored.
    pub object: Value,
}

/// What the rules may know: the settings, and what the documents show of the cluster. Without a single node among them, what nodes
/// have is not known.
pub fn facts(documents: &[Document], config: &Config) -> Result<Facts, DocumentError> {
    let mut facts = Facts::new(config.admission_settings(), config.dialects());
    let mut namespaces = BTreeMap::new();
    let (mut nodes, mut devices) = (Vec::new(), BTreeMap::new());
    let mut groups = BTreeMap::new();
    let mut classes = ExtendedResources::default();
    for document in documents {
        match document.kind() {
            "Namespace" => {
                let namespace: Namespace = document.read()?;
                namespaces.insert(namespace.metadata.name.clone(), namespace);
            }
            "Node" => nodes.push(document.read::<Node>()?),
            "Device" if koordinator::is_of_group(document.api_version()) => {
                let device: Device = document.read()?;
                devices.insert(device.metadata.name.clone(), device);
            }
            "DeviceClass" => classes.set(&document.read()?),
            "PodGroup" => {
                let PodGroup { metadata, .. } = document.read()?;
                let mark = metadata.annotation(marks::PREEMPTABLE).map(str::to_owned);
                let namespace = document.namespace_or_default().to_owned();
                groups.insert((namespace, metadata.name), mark);
            }
            _ => {}
        }
    }
    facts.namespaces = namespaces.into();
    let offer = |node: &Node| {
        let offer = NodeOffer::read(node, &facts.dialects);
        let device = devices.get(&node.metadata.name);
        match device.and_then(|device| koordinator::node::devices(device).ok()) {
            Some(devices) => {
                offer.with(Koordinator::sharing_mode(), Inventory::default().with_devices(devices))
            }
            None => offer,
        }
    };
    let summary = || {
        InventorySummary::new(nodes.iter().map(offer))
            .serving_by_class(modes_by_class(&facts.dialects, &classes))
    };
    facts.inventory = (!nodes.is_empty()).then(|| summary().into());
    facts.pod_groups = groups.into();
    facts.quotas = quotas(documents, &facts)?.into();
    Ok(facts)
}

/// The limits of every ResourceQuota, and what the pods that have a node use of them.
fn quotas(documents: &[Document], facts: &Facts) -> Result<BTreeMap<String, NamespaceQuota>, DocumentError> {
    let mut quotas: BTreeMap<String, NamespaceQuota> = BTreeMap::new();
    for document in documents.iter().filter(|document| document.kind() == "ResourceQuota") {
        let quota: ResourceQuota = document.read()?;
        let namespace = document.namespace_or_default();
        quotas.entry(namespace.to_owned()).or_default().limit(&quota, &facts.dialects);
    }
    for document in documents.iter().filter(|document| document.kind() == "Pod" && super::is_bound(document))
    {
        let pod: Pod = document.read()?;
        if let Some(quota) = quotas.get_mut(document.namespace_or_default()).filter(|_| !pod.is_terminal()) {
            let standing = match pod.metadata.deletion_timestamp {
                Some(_) => HolderStanding::Terminating,
                None => HolderStanding::Alive,
            };
            let needs = needs(&PodShares::read(&pod, facts, MissingCount::Default), facts);
            quota.charge(&needs);
            quota.note_holder(&pod.metadata.name, standing, &needs);
        }
    }
    Ok(quotas)
}

/// What can't be read of the ResourceQuotas among the documents, and where.
pub(super) fn unread_quotas(documents: &[Document], facts: &Facts) -> Result<Vec<String>, DocumentError> {
    let mut troubles = Vec::new();
    for document in documents.iter().filter(|document| document.kind() == "ResourceQuota") {
        let found = NamespaceQuota::default().limit(&document.read()?, &facts.dialects);
        troubles.extend(found.into_iter().map(|trouble| format!("{}: {trouble}", document.place)));
    }
    Ok(troubles)
}

/// Judges the pod of a document; `places` is where its fields stand there, for errors.
pub fn judge(document: &Document, places: &Places, facts: &Facts) -> Result<ReviewedPod, DocumentError> {
    judge_made_by(None, document, places, facts)
}

/// As [`judge`], for a pod that this workload would make.
pub(super) fn judge_made_by(
    workload: Option<&Document>,
    document: &Document,
    places: &Places,
    facts: &Facts,
) -> Result<ReviewedPod, DocumentError> {
    let mut object = document.value.clone();
    if let Value::Object(fields) = &mut object {
        let metadata = fields.entry("metadata").or_insert(Value::Null);
        if metadata.is_null() {
            *metadata = Value::Object(Map::new());
        }
    }
    let namespace = document.namespace_or_default().to_owned();
    let ask = |object: &Value, stage| -> Result<Verdict, DocumentError> {
        let mut pod: Pod = document.read_part(object, places)?;
        if let (AdmissionStage::Adopt, Some(workload)) = (stage, workload) {
            let name = workload.name().unwrap_or_default();
            pod.metadata.controller =
                Some(Controller::new(workload.api_version(), workload.kind(), name, ""));
        }
        let request = Request { stage, operation: Operation::Create, namespace: &namespace, pod: &pod };
        Ok(admission::review(&request, facts))
    };
    let apply = |object: &mut Value, patch: &[PatchOperation]| {
        json_patch::patch(object, patch)
            .map_err(|error| document.error(&places.of(""), format!("the patch does not apply: {error}")))
    };
    let verdict = ask(&object, AdmissionStage::Mutate)?;
    let warnings = verdict.warnings().to_vec();
    let (concerned, mut patch) = match verdict {
        Verdict::Ignored => (Concerned::No, Vec::new()),
        Verdict::Denied { violations, .. } => {
            return Ok(ReviewedPod { violations, ..judged(ReviewVerdict::Denied, warnings, object) });
        }
        Verdict::Admitted { patch, .. } => (Concerned::ByItself, patch),
    };
    apply(&mut object, &patch)?;
    let gives_all = facts.namespace(&namespace).is_some_and(namespace_pods::are_given);
    let adopted = if gives_all { ask(&object, AdmissionStage::Adopt)? } else { Verdict::Ignored };
    let concerned = match adopted {
        Verdict::Admitted { patch: more, .. } => {
            apply(&mut object, &more)?;
            patch.extend(more);
            Concerned::ByItsNamespace
        }
        Verdict::Ignored | Verdict::Denied { .. } => concerned,
    };
    if concerned == Concerned::No {
        return Ok(judged(ReviewVerdict::Ignored, warnings, object));
    }
    let outcome = match ask(&object, AdmissionStage::Validate)? {
        Verdict::Denied { violations, warnings: more } => {
            ReviewedPod { violations, ..judged(ReviewVerdict::Denied, united(warnings, more), object) }
        }
        Verdict::Ignored => ReviewedPod { patch, ..judged(ReviewVerdict::Admitted, warnings, object) },
        Verdict::Admitted { warnings: more, .. } => {
            ReviewedPod { patch, ..judged(ReviewVerdict::Admitted, united(warnings, more), object) }
        }
    };
    Ok(ReviewedPod { concerned, ..outcome })
}

/// Both stages' warnings; what both say is said once, as kubectl shows it.
fn united(mut warnings: Vec<Violation>, more: Vec<Violation>) -> Vec<Violation> {
    warnings.extend(more);
    let mut said = BTreeSet::new();
    warnings.retain(|warning| said.insert(warning.clone()));
    warnings
}

fn judged(outcome: ReviewVerdict, warnings: Vec<Violation>, object: Value) -> ReviewedPod {
    let concerned = if outcome == ReviewVerdict::Ignored { Concerned::No } else { Concerned::ByItself };
    ReviewedPod { outcome, concerned, patch: Vec::new(), warnings, violations: Vec::new(), object }
}
