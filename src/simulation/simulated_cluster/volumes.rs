//! Volumes and their claims after a write for a pod: what the volume controller and a provisioner make of it.

use std::sync::Arc;

use crate::{
    object::{
        Metadata,
        affinity::{NodeSelector, NodeSelectorTerm},
        node::HOSTNAME,
        requirement::Requirement,
        storage::{
            ClaimRef, CsiSource, PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec, Phase,
            VolumeNodeAffinity,
        },
    },
    scheduling::{
        ObjectChange,
        effect::PrebindWrite,
        model::label_set::LabelSet,
        world::{World, object::Object},
    },
};

/// Marks a claim whose volume is known (v1.36 `k8s.io/component-helpers/storage/volume`).
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

/// What is seen of claim and volume after the write.
pub(super) fn written(write: &PrebindWrite, world: &World, version: &str) -> Vec<ObjectChange> {
    match write {
        PrebindWrite::BindVolume { volume, claim: Some(claim) } => bound(volume, claim, version),
        PrebindWrite::BindVolume { volume, claim: None } => {
            let mut volume = PersistentVolume::clone(volume);
            volume.spec.claim_ref = None;
            vec![of_volume(volume, version)]
        }
        PrebindWrite::SelectNode { claim, node: Some(node) } => {
            let labels = world.node(node).map(|state| &state.info.labels);
            bound(&provisioned(claim, labels, world), claim, version)
        }
        _ => Vec::new(),
    }
}

/// The volume is bound to the claim, and the claim to the volume.
fn bound(volume: &PersistentVolume, claim: &PersistentVolumeClaim, version: &str) -> Vec<ObjectChange> {
    let (mut volume, mut claim) = (volume.clone(), claim.clone());
    let Metadata { namespace, name, uid, .. } = &claim.metadata;
    volume.spec.claim_ref =
        Some(ClaimRef { namespace: namespace.clone(), name: name.clone(), uid: uid.clone() });
    "Bound".clone_into(&mut volume.status.phase);
    claim.spec.volume_name.clone_from(&volume.metadata.name);
    "Bound".clone_into(&mut claim.status.phase);
    claim.metadata.annotations.get_or_insert_default().insert(BIND_COMPLETED.to_owned(), "yes".to_owned());
    version.clone_into(&mut claim.metadata.resource_version);
    let claim = Object::PersistentVolumeClaim(Arc::new(claim));
    vec![of_volume(volume, version), ObjectChange::Seen(claim)]
}

fn of_volume(mut volume: PersistentVolume, version: &str) -> ObjectChange {
    version.clone_into(&mut volume.metadata.resource_version);
    ObjectChange::Seen(Object::PersistentVolume(Arc::new(volume)))
}

/// The volume that is made for the claim. A pod that uses it later has to go to the same node.
fn provisioned(claim: &PersistentVolumeClaim, labels: Option<&LabelSet>, world: &World) -> PersistentVolume {
    let name = format!("pvc-{}", claim.metadata.uid);
    let class = claim.spec.storage_class_name.clone().unwrap_or_default();
    let driver = world.objects().class(&class).map(|class| class.provisioner.clone());
    let csi = driver.map(|driver| CsiSource { driver, volume_handle: name.clone() });
    PersistentVolume {
        metadata: Metadata { name, ..Metadata::default() },
        spec: PersistentVolumeSpec {
            capacity: claim.spec.resources.requests.clone().unwrap_or_default(),
            access_modes: claim.spec.access_modes.clone(),
            storage_class_name: class,
            volume_mode: claim.spec.volume_mode.clone(),
            volume_attributes_class_name: claim.spec.volume_attributes_class_name.clone(),
            node_affinity: labels.and_then(only_there),
            csi,
            claim_ref: None,
        },
        status: Phase::default(),
    }
}

/// The affinity to a node with these labels: by its host name, else by all that it is labelled with.
fn only_there(labels: &LabelSet) -> Option<VolumeNodeAffinity> {
    let named: Vec<_> = labels.get(HOSTNAME).map(|name| (HOSTNAME, name)).into_iter().collect();
    let by = if named.is_empty() { labels.iter().collect() } else { named };
    let requirement = |(key, value): (&str, &str)| Requirement {
        key: key.to_owned(),
        operator: "In".to_owned(),
        values: vec![value.to_owned()],
    };
    let match_expressions: Vec<Requirement> = by.into_iter().map(requirement).collect();
    let term = NodeSelectorTerm { match_expressions, ..NodeSelectorTerm::default() };
    let is_empty = term.match_expressions.is_empty();
    (!is_empty)
        .then(|| VolumeNodeAffinity { required: Some(NodeSelector { node_selector_terms: vec![term] }) })
}
