//! What claims and volumes say of each other, and the calls that the volume controller and the provisioner make.
//!
//! It must not decide anything. Every patch is bound to the version that was read, as the update of a real controller is.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::controller::all;

/// The node that a claim's volume is to be made for (v1.36 `k8s.io/component-helpers/storage/volume`, as all of these).
pub(super) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// A claim that the volume controller has finished with.
pub(super) const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// The other side of a claim or a volume was chosen by a program.
pub(super) const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// The provisioner that is to make a claim's volume.
pub(super) const STORAGE_PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
/// The older name of the same.
pub(super) const BETA_STORAGE_PROVISIONER: &str = "volume.beta.kubernetes.io/storage-provisioner";
/// The provisioner that has made a volume.
pub(super) const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

/// An annotation's value.
pub(super) fn annotation<'a>(object: &'a impl Resource, key: &str) -> Option<&'a str> {
    object.meta().annotations.as_ref()?.get(key).map(String::as_str)
}

/// The volume that the claim names, empty where it names none.
pub(super) fn volume_name(claim: &PersistentVolumeClaim) -> &str {
    claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default()
}

/// Whether the volume controller has bound the claim.
pub(super) fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    annotation(claim, BIND_COMPLETED).is_some() && !volume_name(claim).is_empty()
}

/// Whether the volume's reference names the claim; a reference without a uid names every claim of the name.
pub(super) fn names(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    reference.is_some_and(|reference| {
        reference.name == claim.metadata.name
            && reference.namespace == claim.metadata.namespace
            && (reference.uid.is_none() || reference.uid == claim.metadata.uid)
    })
}

/// The uid of the claim that the volume is bound to; `None`: it is free, or a person has reserved it.
pub(super) fn bound_to(volume: &PersistentVolume) -> Option<&str> {
    volume.spec.as_ref()?.claim_ref.as_ref()?.uid.as_deref()
}

/// A reference to the claim, as a volume carries it.
pub(super) fn reference(claim: &PersistentVolumeClaim) -> Value {
    let names = &claim.metadata;
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": names.namespace, "name": names.name,
        "uid": names.uid, "resourceVersion": names.resource_version})
}

/// The storage classes by name.
pub(super) async fn classes(client: &Client) -> kube::Result<BTreeMap<String, StorageClass>> {
    Ok(all::<StorageClass>(client).await?.into_iter().map(|class| (class.name_any(), class)).collect())
}

/// The claim's storage class.
pub(super) fn class<'a>(
    claim: &PersistentVolumeClaim,
    classes: &'a BTreeMap<String, StorageClass>,
) -> Option<&'a StorageClass> {
    classes.get(claim.spec.as_ref()?.storage_class_name.as_deref()?)
}

/// Whether the class binds claims with their first pod.
pub(super) fn is_delayed(class: &StorageClass) -> bool {
    class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer")
}

/// Changes a claim that has this version; returns it as it is then.
pub(super) async fn patch_claim(
    client: &Client,
    claim: &PersistentVolumeClaim,
    patch: Value,
) -> kube::Result<PersistentVolumeClaim> {
    let claims = claims_beside(client, claim);
    claims.patch(&claim.name_any(), &PatchParams::default(), &versioned(claim, patch)).await
}

/// Changes the status of a claim that has this version.
pub(super) async fn patch_claim_status(
    client: &Client,
    claim: &PersistentVolumeClaim,
    status: Value,
) -> kube::Result<()> {
    let claims = claims_beside(client, claim);
    let patch = versioned(claim, json!({ "status": status }));
    claims.patch_status(&claim.name_any(), &PatchParams::default(), &patch).await.map(drop)
}

/// Changes a volume that has this version; returns it as it is then.
pub(super) async fn patch_volume(
    client: &Client,
    volume: &PersistentVolume,
    patch: Value,
) -> kube::Result<PersistentVolume> {
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    volumes.patch(&volume.name_any(), &PatchParams::default(), &versioned(volume, patch)).await
}

/// Brings a volume that has this version to the phase.
pub(super) async fn set_phase(client: &Client, volume: &PersistentVolume, phase: &str) -> kube::Result<()> {
    let known = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    if known == Some(phase) {
        return Ok(());
    }
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    let patch = versioned(volume, json!({"status": {"phase": phase}}));
    volumes.patch_status(&volume.name_any(), &PatchParams::default(), &patch).await.map(drop)
}

fn claims_beside(client: &Client, claim: &PersistentVolumeClaim) -> Api<PersistentVolumeClaim> {
    Api::namespaced(client.clone(), claim.metadata.namespace.as_deref().unwrap_or_default())
}

fn versioned(object: &impl Resource, mut patch: Value) -> Patch<Value> {
    patch["metadata"]["resourceVersion"] = json!(object.meta().resource_version);
    Patch::Merge(patch)
}
