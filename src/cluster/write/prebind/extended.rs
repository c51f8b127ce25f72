//! The claim that serves extended resources of a pod: made, named in the pod's status, deleted.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go`.

use http::Request;
use serde_json::{Value, json};

use super::{MERGE, Patch, claim::path};
use crate::{
    cluster::write::send::SERVER_TIMEOUT,
    object::{ResourceClaim, pod::ExtendedResourceClaimStatus},
    scheduling::{
        PodKey,
        effect::PrebindWrite,
        model::{
            claim_use::FINALIZER,
            extended_resources::{ANNOTATION, ExtendedClaim},
        },
    },
};

/// Why a status is not written although the API server has answered that it is.
pub(super) const NOT_KEPT: &str = "the API server does not keep status.extendedResourceClaimStatus of pods; its feature gate DRAExtendedResource must be on";

/// Whether what was to be written is in the object as the API server has stored it: it drops fields that it does not serve.
pub(super) fn is_kept(write: &PrebindWrite, stored: &Value) -> bool {
    let PrebindWrite::StateClaim { status: Some(_), .. } = write else { return true };
    stored["status"]["extendedResourceClaimStatus"].is_object()
}

/// Creates the claim, which the pod owns and which is not removed while it has devices.
pub(super) fn creation(pod: &PodKey, claim: &str, made: &ExtendedClaim) -> Request<Vec<u8>> {
    let owner =
        json!({"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": true});
    let body = json!({
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": claim,
            "generateName": prefix(claim),
            "namespace": pod.namespace,
            "annotations": {ANNOTATION: "true"},
            "finalizers": [FINALIZER],
            "ownerReferences": [owner],
        },
        "spec": made.spec,
    });
    let path = format!("/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims", pod.namespace);
    sent(Request::post(timed(&path)), &body)
}

/// The claim's name without the number at its end, as upstream has the API server complete it.
fn prefix(claim: &str) -> &str {
    claim.rfind('-').map_or(claim, |end| &claim[..=end])
}

/// Deletes the claim as it is known.
pub(super) fn deletion(claim: &ResourceClaim) -> Request<Vec<u8>> {
    let preconditions =
        json!({"uid": claim.metadata.uid, "resourceVersion": claim.metadata.resource_version});
    sent(Request::delete(timed(&path(claim))), &json!({"preconditions": preconditions}))
}

/// States which claim serves the pod, which is named by its uid as well; `None`: none does.
pub(super) fn stated(pod: &PodKey, status: Option<&ExtendedResourceClaimStatus>) -> Patch {
    let path = format!("/api/v1/namespaces/{}/pods/{}/status", pod.namespace, pod.name);
    let body = json!({"metadata": {"uid": pod.uid}, "status": {"extendedResourceClaimStatus": status}});
    Patch { path, kind: MERGE, body }
}

fn timed(path: &str) -> String {
    format!("{path}?timeout={}s", SERVER_TIMEOUT.as_secs())
}

fn sent(request: http::request::Builder, body: &Value) -> Request<Vec<u8>> {
    let request = request.header(http::header::CONTENT_TYPE, "application/json");
    let request = request.body(body.to_string().into_bytes());
    request.expect("names of Kubernetes objects are valid in a path")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::resource_claim::ResourceClaimSpec;

    fn pod() -> PodKey {
        PodKey { uid: "p-1".into(), namespace: "team".into(), name: "train".into() }
    }

    #[test]
    fn the_claim_is_the_pods_own_and_kept_while_it_has_devices() {
        let made = ExtendedClaim { spec: ResourceClaimSpec::default(), mappings: Vec::new() };
        let request = creation(&pod(), "train-extended-resources-0123abcd", &made);
        assert_eq!(request.uri().path(), "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims");
        let body: Value = serde_json::from_slice(request.body()).unwrap();
        let metadata = &body["metadata"];
        assert_eq!(metadata["name"], "train-extended-resources-0123abcd");
        assert_eq!(metadata["generateName"], "train-extended-resources-");
        assert_eq!(metadata["finalizers"], json!([FINALIZER]));
        assert_eq!(metadata["ownerReferences"][0]["uid"], "p-1");
    }

    #[test]
    fn a_status_that_the_api_server_drops_is_not_written() {
        let status = ExtendedResourceClaimStatus::default();
        let write = |status| PrebindWrite::StateClaim { claim: "c".into(), status };
        let kept = json!({"status": {"extendedResourceClaimStatus": {"resourceClaimName": "c"}}});
        let stated = write(Some(std::sync::Arc::new(status)));
        assert!(is_kept(&stated, &kept) && !is_kept(&stated, &json!({"status": {}})));
        assert!(is_kept(&write(None), &json!({"status": {}})));
    }
}
