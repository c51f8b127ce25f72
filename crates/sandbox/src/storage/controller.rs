//! Which volume a claim gets: what kube-controller-manager does once a scheduler has written its choice.
//!
//! Source: v1.36 `pkg/controller/volume/persistentvolume`. It must not choose a volume: it finishes what a volume's reference or a
//! claim's selected node begins, and leaves every other claim alone.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::Client;
use serde_json::json;

use super::{Shared, audit, view};
use crate::controller::{all, at_each_change};

/// Volumes of a class with this provisioner are made by hand.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// Runs until the watches end, which they never do by themselves.
pub(super) async fn run(shared: Arc<Shared>) {
    at_each_change(shared.changes(), || sync(&shared)).await;
}

async fn sync(shared: &Shared) -> kube::Result<()> {
    let client = &shared.client;
    // Pods come first: a claim that is not bound in a later list was not bound when the pod was.
    let pods: Vec<Pod> = all(client).await?;
    let claims: Vec<PersistentVolumeClaim> = all(client).await?;
    let volumes: Vec<PersistentVolume> = all(client).await?;
    let classes = view::classes(client).await?;
    let faults = audit::pods(&pods, &claims).into_iter().chain(audit::volumes(&volumes, &claims));
    faults.for_each(|fault| shared.violations.note(fault));
    for volume in &volumes {
        sync_volume(client, volume, &claims).await?;
    }
    for claim in claims.iter().filter(|claim| !view::is_bound(claim)) {
        sync_claim(client, claim, &volumes, &classes).await?;
    }
    Ok(())
}

/// Tells whether a volume may be taken; who binds a claim says that it is bound.
async fn sync_volume(
    client: &Client,
    volume: &PersistentVolume,
    claims: &[PersistentVolumeClaim],
) -> kube::Result<()> {
    let Some(uid) = view::bound_to(volume) else { return view::set_phase(client, volume, "Available").await };
    let exists = claims.iter().any(|claim| claim.metadata.uid.as_deref() == Some(uid));
    if exists { Ok(()) } else { view::set_phase(client, volume, "Released").await }
}

async fn sync_claim(
    client: &Client,
    claim: &PersistentVolumeClaim,
    volumes: &[PersistentVolume],
    classes: &BTreeMap<String, StorageClass>,
) -> kube::Result<()> {
    if let Some(volume) = volumes.iter().find(|volume| view::names(volume, claim)) {
        return bind(client, volume, claim).await;
    }
    let Some(class) = view::class(claim, classes) else { return Ok(()) };
    let waits = view::is_delayed(class) && view::annotation(claim, view::SELECTED_NODE).is_none();
    let asked = view::annotation(claim, view::STORAGE_PROVISIONER).is_some();
    if waits || asked || class.provisioner == NO_PROVISIONER {
        return Ok(());
    }
    let provisioner = &class.provisioner;
    let annotations =
        json!({view::STORAGE_PROVISIONER: provisioner, view::BETA_STORAGE_PROVISIONER: provisioner});
    view::patch_claim(client, claim, json!({"metadata": {"annotations": annotations}})).await.map(drop)
}

/// Binds both sides to each other: the volume first, then the claim, each with its phase.
async fn bind(client: &Client, volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> kube::Result<()> {
    let mut bound = volume.clone();
    if view::bound_to(volume).is_none() {
        let reference = json!({"spec": {"claimRef": view::reference(claim)}});
        bound = view::patch_volume(client, volume, reference).await?;
    }
    view::set_phase(client, &bound, "Bound").await?;
    let annotations = json!({view::BIND_COMPLETED: "yes", view::BOUND_BY_CONTROLLER: "yes"});
    let named =
        json!({"metadata": {"annotations": annotations}, "spec": {"volumeName": volume.metadata.name}});
    let claim = view::patch_claim(client, claim, named).await?;
    let spec = volume.spec.as_ref();
    let status = json!({
        "phase": "Bound",
        "accessModes": spec.and_then(|spec| spec.access_modes.as_ref()),
        "capacity": spec.and_then(|spec| spec.capacity.as_ref()),
    });
    view::patch_claim_status(client, &claim, status).await
}
