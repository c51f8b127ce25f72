//! The claim of a volume, or the node for which a volume is to be made.

use serde_json::{Value, json};

use super::{MERGE, Patch};
use crate::{
    object::storage::{PersistentVolume, PersistentVolumeClaim},
    scheduling::plugin::volume_binding::SELECTED_NODE,
};

/// Marks a volume that a controller has bound, not a user (v1.36 `k8s.io/component-helpers/storage/volume`).
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

fn volume_path(volume: &PersistentVolume) -> String {
    format!("/api/v1/persistentvolumes/{}", volume.metadata.name)
}

fn claim_path(claim: &PersistentVolumeClaim) -> String {
    let names = &claim.metadata;
    format!("/api/v1/namespaces/{}/persistentvolumeclaims/{}", names.namespace, names.name)
}

/// Binds the volume to the claim.
pub(super) fn bound(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Patch {
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
    let body = json!({
        "metadata": {"resourceVersion": volume.metadata.resource_version, "annotations": annotations},
        "spec": {"claimRef": reference},
    });
    Patch { path: volume_path(volume), kind: MERGE, body }
}

/// Frees the volume again.
pub(super) fn released(volume: &PersistentVolume) -> Patch {
    let by_controller = volume.metadata.annotation(BOUND_BY_CONTROLLER).is_some();
    let reference = if by_controller { Value::Null } else { json!({"uid": null, "resourceVersion": null}) };
    let body = json!({
        "metadata": {
            "resourceVersion": volume.metadata.resource_version,
            "annotations": {BOUND_BY_CONTROLLER: null},
        },
        "spec": {"claimRef": reference},
    });
    Patch { path: volume_path(volume), kind: MERGE, body }
}

/// Names the node for which a volume is to be made; `None`: none is.
pub(super) fn for_node(claim: &PersistentVolumeClaim, node: Option<&str>) -> Patch {
    let metadata = json!({
        "resourceVersion": claim.metadata.resource_version,
        "annotations": {SELECTED_NODE: node},
    });
    Patch { path: claim_path(claim), kind: MERGE, body: json!({"metadata": metadata}) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(spec: &Value, annotations: &Value) -> PersistentVolume {
        let metadata = json!({"name": "pv-1", "resourceVersion": "7", "annotations": annotations});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    fn claim() -> PersistentVolumeClaim {
        let metadata = json!({"name": "data", "namespace": "team", "uid": "u", "resourceVersion": "9"});
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    }

    #[test]
    fn a_volume_is_bound_at_the_version_that_is_known_and_released_as_it_was() {
        let free = volume(&json!({}), &json!({}));
        let Patch { path, body, .. } = bound(&free, &claim());
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
        let Patch { body, .. } = released(&ours);
        assert_eq!(body["spec"]["claimRef"], Value::Null);
    }

    #[test]
    fn a_volume_that_a_person_has_reserved_stays_reserved() {
        let reserved = volume(&json!({"claimRef": {"name": "data", "namespace": "team"}}), &json!({}));
        let Patch { body, .. } = bound(&reserved, &claim());
        assert_eq!(body["metadata"]["annotations"], json!({}));
        let Patch { body, .. } = released(&reserved);
        assert_eq!(body["spec"]["claimRef"], json!({"uid": null, "resourceVersion": null}));
    }

    #[test]
    fn a_claim_is_given_a_node_and_loses_it() {
        let Patch { path, body, .. } = for_node(&claim(), Some("n1"));
        assert_eq!(path, "/api/v1/namespaces/team/persistentvolumeclaims/data");
        assert_eq!(body["metadata"], json!({"resourceVersion": "9", "annotations": {SELECTED_NODE: "n1"}}));
        assert_eq!(for_node(&claim(), None).body["metadata"]["annotations"], json!({SELECTED_NODE: null}));
    }
}
