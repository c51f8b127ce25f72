//! Claims that are bound with a pod of a simulation: what is printed of them, and what the volume controller would make of them.

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;

use crate::{
    object::storage::{ClaimRef, PersistentVolumeClaim},
    scheduling::{Snapshot, model::prebind_step::VolumeChoice, world::object::Object},
};

/// A claim that is bound with the pod: to a volume, or to one that is made on the pod's node.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeRow {
    claim: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    volume: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provision_on: Option<String>,
}

impl VolumeRow {
    pub(super) fn of(choices: &[&VolumeChoice], node: &str) -> Vec<Self> {
        let row = |choice: &VolumeChoice| match choice {
            VolumeChoice::Bind { claim, volume } => {
                Self { claim: claim.to_string(), volume: Some(volume.to_string()), provision_on: None }
            }
            VolumeChoice::Provision { claim } => {
                Self { claim: claim.to_string(), volume: None, provision_on: Some(node.to_owned()) }
            }
        };
        choices.iter().copied().map(row).collect()
    }
}

/// Binds the claim at once, or has its volume made for the node from now on.
pub(super) fn bind(snapshot: &mut Snapshot, namespace: &str, choice: &VolumeChoice, node: &str) {
    let (VolumeChoice::Bind { claim, .. } | VolumeChoice::Provision { claim }) = choice;
    let Some(found) = snapshot.objects().claim(namespace, claim) else { return };
    let mut claim = PersistentVolumeClaim::clone(found);
    let annotations = claim.metadata.annotations.get_or_insert_with(BTreeMap::new);
    match choice {
        VolumeChoice::Provision { .. } => {
            annotations.insert("volume.kubernetes.io/selected-node".to_owned(), node.to_owned());
        }
        VolumeChoice::Bind { volume, .. } => {
            annotations.insert("pv.kubernetes.io/bind-completed".to_owned(), "yes".to_owned());
            claim.spec.volume_name = volume.to_string();
            if let Some(found) = snapshot.objects().volume(volume) {
                let mut volume = found.as_ref().clone();
                let names = &claim.metadata;
                volume.spec.claim_ref = Some(ClaimRef {
                    namespace: names.namespace.clone(),
                    name: names.name.clone(),
                    uid: names.uid.clone(),
                });
                "Bound".clone_into(&mut volume.status.phase);
                snapshot.set_object(Object::PersistentVolume(Arc::new(volume)));
            }
        }
    }
    snapshot.set_object(Object::PersistentVolumeClaim(Arc::new(claim)));
}
