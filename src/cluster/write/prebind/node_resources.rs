//! What the pod's status says of the resources of its node that claims take.
//!
//! Source: v1.37 `pkg/scheduler/framework/plugins/dynamicresources/nodeallocatabledynamicresources.go`.

use serde_json::{Value, json};

use super::{MERGE, Patch};
use crate::{
    object::pod::NodeAllocatableClaimStatus,
    scheduling::{PodKey, effect::PrebindWrite},
};

/// Why a status is not written although the API server has answered that it is.
pub(super) const NOT_KEPT: &str = "the API server does not keep status.nodeAllocatableResourceClaimStatuses of pods; its feature gate DRANodeAllocatableResources must be on";

/// Whether what was to be written is in the object as the API server has stored it: it drops fields that it does not serve.
pub(super) fn is_kept(write: &PrebindWrite, stored: &Value) -> bool {
    let PrebindWrite::StateNodeResources { statuses, .. } = write else { return true };
    let stored = stored["status"]["nodeAllocatableResourceClaimStatuses"].as_array();
    statuses.is_empty() || stored.is_some_and(|stored| stored.len() == statuses.len())
}

/// States what claims take, in place of what the pod states at this version; the pod is named by its uid as well. An empty list is written out: the API server keeps what is
/// stored where the list is missing (kubernetes 1.37 `pkg/registry/core/pod/strategy.go`).
pub(super) fn stated(pod: &PodKey, version: &str, statuses: &[NodeAllocatableClaimStatus]) -> Patch {
    let path = format!("/api/v1/namespaces/{}/pods/{}/status", pod.namespace, pod.name);
    let status = json!({"nodeAllocatableResourceClaimStatuses": statuses});
    let metadata = json!({"uid": pod.uid, "resourceVersion": version});
    Patch { path, kind: MERGE, body: json!({"metadata": metadata, "status": status}) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn statuses() -> Arc<[NodeAllocatableClaimStatus]> {
        let status = json!([{"resourceClaimName": "gpu", "containers": ["main"],
            "mapping": [{"name": "cpu", "quantity": "2"}],
            "overhead": [{"name": "memory", "perPod": "1Gi"}]}]);
        serde_json::from_value(status).unwrap()
    }

    #[test]
    fn the_status_says_what_each_claim_takes_and_an_empty_list_is_written_out() {
        let pod = PodKey { uid: "p-1".into(), namespace: "team".into(), name: "train".into() };
        let Patch { path, body, .. } = stated(&pod, "7", &statuses());
        assert_eq!(path, "/api/v1/namespaces/team/pods/train/status");
        assert_eq!(body["metadata"], json!({"uid": "p-1", "resourceVersion": "7"}));
        let expected = json!([{"resourceClaimName": "gpu", "containers": ["main"],
            "mapping": [{"name": "cpu", "quantity": "2"}],
            "overhead": [{"name": "memory", "perPod": "1Gi"}]}]);
        assert_eq!(body["status"]["nodeAllocatableResourceClaimStatuses"], expected);
        assert_eq!(
            stated(&pod, "7", &[]).body["status"],
            json!({"nodeAllocatableResourceClaimStatuses": []})
        );
    }

    #[test]
    fn a_status_that_the_api_server_drops_is_not_written() {
        let write = |statuses| PrebindWrite::StateNodeResources { version: "7".to_owned(), statuses };
        let kept =
            json!({"status": {"nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "gpu"}]}});
        assert!(is_kept(&write(statuses()), &kept) && !is_kept(&write(statuses()), &json!({"status": {}})));
        assert!(is_kept(&write(Arc::default()), &json!({"status": {}})));
    }
}
