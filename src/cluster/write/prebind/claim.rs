//! Claims of devices: the finalizer, and the status with the devices and the pods that use them.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go`, `bindClaim`, `Unreserve`.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Patch, STRATEGIC};
use crate::{
    object::{ResourceClaim, resource_claim::AllocationResult},
    scheduling::{
        PodKey,
        model::claim_use::{ClaimConsumer, FINALIZER},
    },
};

/// Adds the finalizer.
pub(super) fn protected(claim: &ResourceClaim) -> Patch {
    let metadata = json!({"resourceVersion": claim.metadata.resource_version, "finalizers": [FINALIZER]});
    Patch { path: path(claim), kind: STRATEGIC, body: json!({"metadata": metadata}) }
}

/// Takes the finalizer away.
pub(super) fn unprotected(claim: &ResourceClaim) -> Patch {
    let metadata = json!({
        "resourceVersion": claim.metadata.resource_version,
        "$deleteFromPrimitiveList/finalizers": [FINALIZER],
    });
    Patch { path: path(claim), kind: STRATEGIC, body: json!({"metadata": metadata}) }
}

/// Adds the pod to the users, or its PodGroup, and gives the claim these devices.
pub(super) fn reserved(
    claim: &ResourceClaim,
    allocation: Option<&AllocationResult>,
    (pod, consumer): (&PodKey, &ClaimConsumer),
    now: Timestamp,
) -> Patch {
    let mut status = json!({"reservedFor": [consumer.reference((&pod.name, &pod.uid))]});
    if let Some(allocation) = allocation {
        status["allocation"] = serde_json::to_value(allocation).expect("an allocation has string keys only");
        let mut devices = allocation.devices.results.iter();
        // Drivers count their time for preparing a device from here (KEP-5007).
        if devices.any(|device| !device.binding_conditions.is_empty()) {
            status["allocation"]["allocationTimestamp"] = json!(format!("{now:.0}"));
        }
    }
    of_status(claim, &status)
}

/// Takes the user with this uid from the users, and the devices from the claim.
pub(super) fn released(claim: &ResourceClaim, deallocate: bool, user: &str) -> Patch {
    let mut status = json!({"reservedFor": [{"$patch": "delete", "uid": user}]});
    if deallocate {
        status["allocation"] = Value::Null;
    }
    of_status(claim, &status)
}

fn of_status(claim: &ResourceClaim, status: &Value) -> Patch {
    let version = &claim.metadata.resource_version;
    let body = json!({"metadata": {"resourceVersion": version}, "status": status});
    Patch { path: format!("{}/status", path(claim)), kind: STRATEGIC, body }
}

pub(super) fn path(claim: &ResourceClaim) -> String {
    let names = &claim.metadata;
    format!("/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims/{}", names.namespace, names.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim() -> ResourceClaim {
        let metadata = json!({"name": "gpu", "namespace": "team", "uid": "u", "resourceVersion": "9"});
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    }

    fn pod() -> PodKey {
        PodKey { uid: "p-1".into(), namespace: "team".into(), name: "train".into() }
    }

    fn allocation(conditions: &[&str]) -> AllocationResult {
        let result = json!({"request": "gpu", "driver": "d", "pool": "n1", "device": "gpu-0",
            "bindingConditions": conditions});
        serde_json::from_value(json!({"devices": {"results": [result]}})).unwrap()
    }

    #[test]
    fn each_write_is_of_the_version_that_is_known() {
        let writes = [
            protected(&claim()),
            reserved(&claim(), None, (&pod(), &ClaimConsumer::Pod), Timestamp::UNIX_EPOCH),
            released(&claim(), true, "p-1"),
        ];
        for Patch { path, body, .. } in writes {
            assert_eq!(body["metadata"]["resourceVersion"], "9", "{path}");
        }
    }

    #[test]
    fn the_time_is_written_for_devices_that_have_to_be_prepared() {
        let status = |conditions: &[&str]| {
            let user = (&pod(), &ClaimConsumer::Pod);
            let written = reserved(&claim(), Some(&allocation(conditions)), user, Timestamp::UNIX_EPOCH);
            assert_eq!(written.path, "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims/gpu/status");
            written.body["status"].clone()
        };
        let plain = status(&[]);
        assert_eq!(plain["reservedFor"], json!([{"resource": "pods", "name": "train", "uid": "p-1"}]));
        assert_eq!(plain["allocation"]["devices"]["results"][0]["device"], "gpu-0");
        assert_eq!(plain["allocation"].get("allocationTimestamp"), None);
        assert_eq!(status(&["Ready"])["allocation"]["allocationTimestamp"], "1970-01-01T00:00:00Z");
    }

    #[test]
    fn a_claim_keeps_its_devices_while_others_use_it() {
        let removal = json!([{"$patch": "delete", "uid": "p-1"}]);
        let shared = released(&claim(), false, "p-1").body;
        assert_eq!(shared["status"], json!({"reservedFor": removal}));
        let unused = released(&claim(), true, "p-1").body;
        assert_eq!(unused["status"], json!({"reservedFor": removal, "allocation": null}));
    }

    /// As kube-scheduler does (k8s.io/dynamic-resource-allocation v0.37 `resourceclaim/resourceclaim.go`, `BindTo`).
    #[test]
    fn the_user_of_a_claim_of_a_pod_group_is_the_pod_group() {
        let group = ClaimConsumer::PodGroup { name: "train".into(), uid: "g-1".into() };
        let written = reserved(&claim(), None, (&pod(), &group), Timestamp::UNIX_EPOCH).body;
        let user =
            json!({"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "train", "uid": "g-1"});
        assert_eq!(written["status"], json!({"reservedFor": [user]}));
    }
}
