//! The writes for a pod's claims before the pod is bound: the claim of a volume, or the node for which a volume is to be made.
//!
//! Each write is a compare-and-swap on the object's resource version, so that a write of the volume controller or of another scheduler
//! makes it a conflict.

use http::{Request, header::CONTENT_TYPE};
use kube::Client;
use serde_json::{Value, json};

use super::send::{CLIENT_TIMEOUT, SERVER_TIMEOUT, send};
use crate::{
    object::storage::{PersistentVolume, PersistentVolumeClaim},
    scheduling::{WriteOutcome, effect::VolumeWrite, plugin::volume_binding::SELECTED_NODE},
};

/// Marks a volume that a controller has bound, not a user (v1.36 `k8s.io/component-helpers/storage/volume`).
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

/// Sends the write, if the object still has the known resource version.
pub async fn write(client: Client, write: &VolumeWrite) -> WriteOutcome {
    match send::<Value>(client, request(write), CLIENT_TIMEOUT).await {
        Ok(object) => WriteOutcome::Written {
            resource_version: object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned(),
        },
        Err(error) if error.is_refusal() => WriteOutcome::Refused(error.to_string()),
        Err(error) => WriteOutcome::Failed(error.setback()),
    }
}

fn request(write: &VolumeWrite) -> Request<Vec<u8>> {
    let (path, body) = match write {
        VolumeWrite::BindVolume { volume, claim: Some(claim) } => (volume_path(volume), bound(volume, claim)),
        VolumeWrite::BindVolume { volume, claim: None } => (volume_path(volume), released(volume)),
        VolumeWrite::SelectNode { claim, node } => {
            let metadata = json!({
                "resourceVersion": claim.metadata.resource_version,
                "annotations": {SELECTED_NODE: node.as_deref()},
            });
            (claim_path(claim), json!({"metadata": metadata}))
        }
    };
    Request::patch(format!("{path}?timeout={}s", SERVER_TIMEOUT.as_secs()))
        .header(CONTENT_TYPE, "application/merge-patch+json")
        .body(body.to_string().into_bytes())
        .expect("names of Kubernetes objects are valid in a path")
}

fn volume_path(volume: &PersistentVolume) -> String {
    format!("/api/v1/persistentvolumes/{}", volume.metadata.name)
}

fn claim_path(claim: &PersistentVolumeClaim) -> String {
    let names = &claim.metadata;
    format!("/api/v1/namespaces/{}/persistentvolumeclaims/{}", names.namespace, names.name)
}

fn bound(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Value {
    let names = &claim.metadata;
    let reference = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": names.namespace,
        "name": names.name,
        "uid": names.uid,
        "resourceVersion": names.resource_version,
    });
    // A volume that a person has reserved for the claim stays the person's.
    let reserved = volume.spec.claim_ref.is_some();
    let annotations = if reserved { json!({}) } else { json!({BOUND_BY_CONTROLLER: "yes"}) };
    json!({
        "metadata": {"resourceVersion": volume.metadata.resource_version, "annotations": annotations},
        "spec": {"claimRef": reference},
    })
}

fn released(volume: &PersistentVolume) -> Value {
    let by_controller = volume.metadata.annotation(BOUND_BY_CONTROLLER).is_some();
    let reference = if by_controller { Value::Null } else { json!({"uid": null, "resourceVersion": null}) };
    json!({
        "metadata": {
            "resourceVersion": volume.metadata.resource_version,
            "annotations": {BOUND_BY_CONTROLLER: null},
        },
        "spec": {"claimRef": reference},
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn volume(spec: &Value, annotations: &Value) -> Arc<PersistentVolume> {
        let metadata = json!({"name": "pv-1", "resourceVersion": "7", "annotations": annotations});
        Arc::new(serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap())
    }

    fn claim() -> Arc<PersistentVolumeClaim> {
        let metadata = json!({"name": "data", "namespace": "team", "uid": "u", "resourceVersion": "9"});
        Arc::new(serde_json::from_value(json!({"metadata": metadata})).unwrap())
    }

    fn sent(write: &VolumeWrite) -> (String, Value) {
        let request = request(write);
        (request.uri().path().to_owned(), serde_json::from_slice(request.body()).unwrap())
    }

    #[test]
    fn a_volume_is_bound_at_the_version_that_is_known_and_released_as_it_was() {
        let free = volume(&json!({}), &json!({}));
        let (path, body) = sent(&VolumeWrite::BindVolume { volume: free, claim: Some(claim()) });
        assert_eq!(path, "/api/v1/persistentvolumes/pv-1");
        assert_eq!(body["metadata"]["resourceVersion"], "7");
        assert_eq!(body["metadata"]["annotations"][BOUND_BY_CONTROLLER], "yes");
        assert_eq!(
            (&body["spec"]["claimRef"]["uid"], &body["spec"]["claimRef"]["name"]),
            (&json!("u"), &json!("data"))
        );
        let ours = volume(
            &json!({"claimRef": {"name": "data", "namespace": "team", "uid": "u"}}),
            &json!({BOUND_BY_CONTROLLER: "yes"}),
        );
        let (_, body) = sent(&VolumeWrite::BindVolume { volume: ours, claim: None });
        assert_eq!(body["spec"]["claimRef"], Value::Null);
    }

    #[test]
    fn a_volume_that_a_person_has_reserved_stays_reserved() {
        let reserved = volume(&json!({"claimRef": {"name": "data", "namespace": "team"}}), &json!({}));
        let (_, body) = sent(&VolumeWrite::BindVolume { volume: reserved.clone(), claim: Some(claim()) });
        assert_eq!(body["metadata"]["annotations"], json!({}));
        let (_, body) = sent(&VolumeWrite::BindVolume { volume: reserved, claim: None });
        assert_eq!(body["spec"]["claimRef"], json!({"uid": null, "resourceVersion": null}));
    }

    #[test]
    fn a_claim_is_given_a_node_and_loses_it() {
        let node =
            |node: Option<&str>| VolumeWrite::SelectNode { claim: claim(), node: node.map(Into::into) };
        let (path, body) = sent(&node(Some("n1")));
        assert_eq!(path, "/api/v1/namespaces/team/persistentvolumeclaims/data");
        assert_eq!(body["metadata"], json!({"resourceVersion": "9", "annotations": {SELECTED_NODE: "n1"}}));
        assert_eq!(sent(&node(None)).1["metadata"]["annotations"], json!({SELECTED_NODE: null}));
    }
}
