//! Claims of devices after a write for a pod: the claim as the API server stores it, with devices that their drivers have prepared.

use std::sync::Arc;

use crate::{
    object::{
        Metadata, ResourceClaim,
        metadata::Controller,
        resource_claim::{AllocatedDeviceStatus, AllocationResult, ConsumerReference, DeviceCondition},
    },
    scheduling::{
        ObjectChange, PodInfo, PodKey,
        effect::PrebindWrite,
        model::{claim_use::FINALIZER, extended_resources::ANNOTATION, kind::Kind},
        world::{object::Object, resource_claims::ResourceClaims},
    },
};

/// What is seen of the claim after the write; `None`: the write is to no claim of devices.
pub(super) fn written(pod: &PodKey, write: &PrebindWrite, version: &str) -> Option<ObjectChange> {
    let mut claim = match write {
        PrebindWrite::ProtectClaim { claim } => changed(claim, |claim| {
            claim.metadata.finalizers.push(FINALIZER.into());
        }),
        PrebindWrite::UnprotectClaim { claim } => changed(claim, |claim| {
            claim.metadata.finalizers.retain(|finalizer| finalizer != FINALIZER);
        }),
        PrebindWrite::ReserveClaim { claim, consumer, allocation } => changed(claim, |claim| {
            claim.status.reserved_for.push(consumer.reference((&pod.name, &pod.uid)));
            if let Some(allocation) = allocation {
                claim.status.devices = prepared(allocation);
                claim.status.allocation = Some(AllocationResult::clone(allocation));
            }
        }),
        PrebindWrite::ReleaseClaim { claim, consumer, deallocate } => changed(claim, |claim| {
            claim.status.reserved_for.retain(|user| *user.uid != **consumer.uid(&pod.uid));
            if *deallocate {
                (claim.status.allocation, claim.status.devices) = (None, Vec::new());
            }
        }),
        PrebindWrite::CreateClaim { claim, made } => {
            let (namespace, name) = (pod.namespace.to_string(), claim.to_string());
            let uid = format!("claim-{namespace}-{name}");
            let mut metadata = Metadata { name, namespace, uid, ..Metadata::default() };
            metadata.annotations.get_or_insert_default().insert(ANNOTATION.to_owned(), "true".to_owned());
            metadata.finalizers.push(FINALIZER.into());
            metadata.controller = Some(Controller::new("v1", "Pod", &pod.name, &pod.uid));
            ResourceClaim { metadata, spec: made.spec.clone(), ..ResourceClaim::default() }
        }
        PrebindWrite::DeleteClaim { claim } => {
            let name = Object::ResourceClaim(claim.clone()).name();
            return Some(ObjectChange::Gone(Kind::ResourceClaim, name));
        }
        PrebindWrite::BindVolume { .. }
        | PrebindWrite::SelectNode { .. }
        | PrebindWrite::StateClaim { .. }
        | PrebindWrite::StateNodeResources { .. } => {
            return None;
        }
    };
    version.clone_into(&mut claim.metadata.resource_version);
    Some(ObjectChange::Seen(Object::ResourceClaim(Arc::new(claim))))
}

/// The claims of a pod that has ended, as Kubernetes' resourceclaim controller leaves them: without the pod, and without devices where no other uses them.
/// One whose user is the pod's PodGroup stays as it is until the PodGroup is deleted.
pub(super) fn left(pod: &PodInfo, known: &ResourceClaims) -> Vec<ResourceClaim> {
    let is_user = |user: &ConsumerReference| *user.uid == *pod.key.uid;
    let claims = pod.footprint.claim_names().filter_map(|name| known.claim(&pod.key.namespace, name));
    let used = claims.filter(|claim| claim.status.reserved_for.iter().any(is_user));
    let freed = used.map(|claim| {
        changed(claim, |claim| {
            claim.status.reserved_for.retain(|user| !is_user(user));
            if claim.status.reserved_for.is_empty() {
                (claim.status.allocation, claim.status.devices) = (None, Vec::new());
            }
        })
    });
    freed.collect()
}

fn changed(claim: &ResourceClaim, change: impl FnOnce(&mut ResourceClaim)) -> ResourceClaim {
    let mut claim = claim.clone();
    change(&mut claim);
    claim
}

/// What drivers state of these devices once they are ready: the conditions without which no pod is bound (KEP-5007).
fn prepared(allocation: &AllocationResult) -> Vec<AllocatedDeviceStatus> {
    let awaited = allocation.devices.results.iter().filter(|device| !device.binding_conditions.is_empty());
    let ready = |kind: &String| DeviceCondition {
        kind: kind.clone(),
        status: "True".to_owned(),
        message: String::new(),
    };
    let prepared = awaited.map(|device| AllocatedDeviceStatus {
        driver: device.driver.clone(),
        pool: device.pool.clone(),
        device: device.device.clone(),
        share_id: device.share_id.clone(),
        conditions: device.binding_conditions.iter().map(ready).collect(),
    });
    prepared.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::scheduling::{
        Claim, Footprint, Snapshot, fixtures,
        model::claim_use::{ClaimSource, ResourceClaimUse},
    };

    #[test]
    fn the_last_user_of_a_claim_leaves_its_devices_free() {
        let freed_by = |users: &[&str]| {
            let users: Vec<_> =
                users.iter().map(|uid| json!({"resource": "pods", "name": uid, "uid": uid})).collect();
            let status = json!({"allocation": {"devices": {"results": []}}, "reservedFor": users});
            let claim = json!({"metadata": {"name": "c", "namespace": "default"}, "status": status});
            let mut snapshot = Snapshot::default();
            let claim: ResourceClaim = serde_json::from_value(claim).unwrap();
            snapshot.set_object(Object::ResourceClaim(Arc::new(claim)));
            let used =
                ResourceClaimUse { entry: "gpu".into(), claim: Some("c".into()), source: ClaimSource::Named };
            let footprint = Footprint { resource_claims: [used].into(), ..Footprint::default() };
            let pod = PodInfo { footprint: Arc::new(footprint), ..fixtures::pod("ended", Claim::None) };
            let left = left(&pod, snapshot.resource_claims());
            left.into_iter().map(|claim| claim.status.allocation.is_none()).collect::<Vec<_>>()
        };
        assert_eq!(freed_by(&["ended"]), [true]);
        assert_eq!(freed_by(&["ended", "other"]), [false], "another pod uses it");
        assert_eq!(freed_by(&["other"]), Vec::<bool>::new(), "it was not the pod's");
    }
}
