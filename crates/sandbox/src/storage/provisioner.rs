//! How volumes are made for claims: an external provisioner whose volumes can be mounted on one node only.
//!
//! Source: `sig-storage-lib-external-provisioner` v13, `controller/controller.go`. It must not bind: the volume controller does.

use std::{collections::BTreeMap, sync::Arc};

use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

use super::{Conduct, PROVISIONER, Shared, view};
use crate::controller::{all, at_each_change};

/// The label that tells the nodes of volumes apart.
const TOPOLOGY: &str = "kubernetes.io/hostname";

/// Runs until the watches end, which they never do by themselves.
pub(super) async fn run(shared: Arc<Shared>) {
    let conduct = stream::unfold(shared.conduct.subscribe(), async |mut conduct| {
        conduct.changed().await.ok().map(|()| ((), conduct))
    });
    let changes = stream::select(shared.changes(), conduct.boxed());
    at_each_change(changes, || sync(&shared)).await;
}

async fn sync(shared: &Shared) -> kube::Result<()> {
    let conduct = shared.conduct.borrow().clone();
    if conduct == Conduct::Hold {
        return Ok(());
    }
    let claims: Vec<PersistentVolumeClaim> = all(&shared.client).await?;
    let classes = view::classes(&shared.client).await?;
    for claim in claims.iter().filter(|claim| is_ours(claim, &classes)) {
        provision(shared, claim, &conduct).await?;
    }
    Ok(())
}

/// Whether the volume controller asks this provisioner for the claim's volume, and a scheduler has selected its node.
fn is_ours(claim: &PersistentVolumeClaim, classes: &BTreeMap<String, StorageClass>) -> bool {
    let asked = view::annotation(claim, view::STORAGE_PROVISIONER) == Some(PROVISIONER);
    let delayed = view::class(claim, classes).is_some_and(view::is_delayed);
    let selected = view::annotation(claim, view::SELECTED_NODE).is_some_and(|node| !node.is_empty());
    asked && delayed && selected && view::volume_name(claim).is_empty()
}

async fn provision(shared: &Shared, claim: &PersistentVolumeClaim, conduct: &Conduct) -> kube::Result<()> {
    let selected = view::annotation(claim, view::SELECTED_NODE).unwrap_or_default();
    let nodes: Api<Node> = Api::all(shared.client.clone());
    let node = nodes.get_opt(selected).await?;
    let given_up = matches!(conduct, Conduct::GiveUpOn(given_up) if given_up == selected);
    let Some(node) = node.filter(|_| !given_up) else {
        let back = json!({"metadata": {"annotations": {view::SELECTED_NODE: null}}});
        return view::patch_claim(&shared.client, claim, back).await.map(drop);
    };
    let place = node.metadata.labels.unwrap_or_default().remove(TOPOLOGY);
    let volume = serde_json::from_value(volume(claim, place.as_deref())).map_err(kube::Error::SerdeError)?;
    let volumes: Api<PersistentVolume> = Api::all(shared.client.clone());
    match volumes.create(&PostParams::default(), &volume).await {
        // It was made in an earlier round.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        outcome => outcome.map(drop),
    }
}

/// The volume of the claim, bound to it, for the nodes with this value of the topology's label.
fn volume(claim: &PersistentVolumeClaim, place: Option<&str>) -> Value {
    let name = format!("pvc-{}", claim.metadata.uid.as_deref().unwrap_or_default());
    let spec = claim.spec.as_ref();
    let requests = spec.and_then(|spec| spec.resources.as_ref()).and_then(|asked| asked.requests.as_ref());
    let nodes =
        json!({"matchExpressions": [{"key": TOPOLOGY, "operator": "In", "values": place.as_slice()}]});
    json!({
        "metadata": {"name": name, "annotations": {view::PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "accessModes": spec.and_then(|spec| spec.access_modes.as_ref()),
            "capacity": requests,
            "claimRef": view::reference(claim),
            "csi": {"driver": PROVISIONER, "volumeHandle": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [nodes]}},
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": spec.and_then(|spec| spec.storage_class_name.as_ref()),
            "volumeMode": "Filesystem",
        },
    })
}
