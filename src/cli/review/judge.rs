//! The pod of a document, judged by what the rules may know from documents.

use std::collections::BTreeMap;

use crate::{
    admission::{
        Facts, NamespaceQuota,
        inventory::{InventorySummary, NodeOffer},
        namespace_quota::HolderStanding,
        passage::{self, ReviewedPod},
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
    object::{
        Device, Namespace, Node, Pod, PodGroup, ResourceQuota, UnreadableField, metadata::Controller,
        workload::Places,
    },
};

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
                offer.with(Koordinator::sharing_mode(), Inventory::default().with_devices(devices).into())
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
    let controller = workload.map(|workload| {
        let name = workload.name().unwrap_or_default();
        Controller::new(workload.api_version(), workload.kind(), name, "")
    });
    let of = (document.namespace_or_default(), controller.as_ref());
    let led = passage::lead(document.value.clone(), of, facts);
    led.map_err(|UnreadableField { field, reason }| document.error(&places.of(&field), reason))
}
