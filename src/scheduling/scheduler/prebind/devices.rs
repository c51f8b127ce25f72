//! Claims of devices: the finalizer that keeps a claim, then its status with the devices and the pod as a user, then what drivers
//! state of the devices.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go`, `PreBind`, `bindClaim`, `Unreserve`.

use std::sync::Arc;

use super::{PrebindProgress, Scheduler, State};
use crate::{
    dra,
    object::{
        ResourceClaim,
        resource_claim::{AllocatedDevice, AllocatedDeviceStatus, AllocationResult},
    },
    scheduling::{
        effect::PrebindWrite,
        model::{
            claim_use::FINALIZER,
            message::Message,
            pod::{PodKey, is_older},
            prebind_step::ClaimChoice,
        },
        world::{node_state::NodeState, resource_claims::MOST_CONSUMERS},
    },
};

/// How far drivers are with the devices of a claim (KEP-5007).
enum Readiness {
    Ready,
    Awaited,
    Failed(String),
}

impl Scheduler {
    /// What is to be done for one claim, as it is known now.
    pub(super) fn claim_progress(
        &self,
        pod: &PodKey,
        node: &NodeState,
        (choice, state): (&ClaimChoice, &State),
    ) -> PrebindProgress {
        let (claims, name) = (self.snapshot.resource_claims(), &choice.claim);
        let known = claims.claim(&pod.namespace, name).filter(|claim| *claim.metadata.uid == *choice.uid);
        let Some(claim) = known else {
            return PrebindProgress::failed(format!("resourceclaim {name:?} not found"));
        };
        if claim.metadata.deletion_timestamp.is_some() {
            return PrebindProgress::failed(format!("resourceclaim {name:?} is being deleted"));
        }
        match state {
            State::Sent | State::Due(_) => return PrebindProgress::Awaited,
            // What is known may be older than what was written.
            State::Written(version) if is_older(&claim.metadata.resource_version, version) => {
                return PrebindProgress::Awaited;
            }
            State::Unsent | State::Written(_) => {}
        }
        if self.is_being_released(pod, choice) {
            return PrebindProgress::Awaited;
        }
        if let Some(allocation) = &claim.status.allocation {
            return with_devices(claim, allocation, pod, node);
        }
        let Some(chosen) = &choice.allocation else {
            // Another pod that is being placed gives it its devices.
            return match claims.allocation(&pod.namespace, name) {
                Some(_) => PrebindProgress::Awaited,
                None => PrebindProgress::failed(format!("resourceclaim {name:?} has lost its devices")),
            };
        };
        if !claim.metadata.finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
            return PrebindProgress::Write(PrebindWrite::ProtectClaim { claim: claim.clone() });
        }
        PrebindProgress::Write(PrebindWrite::ReserveClaim {
            claim: claim.clone(),
            allocation: Some(chosen.clone()),
        })
    }

    /// The write that takes the pod from a claim's users, and its devices from the claim unless others use it; `None`: there is nothing
    /// to take back, or the pod is being placed where it can use the claim.
    pub(super) fn claim_taken_back(&self, pod: &PodKey, choice: &ClaimChoice) -> Option<PrebindWrite> {
        let claims = self.snapshot.resource_claims();
        let claim = claims.claim(&pod.namespace, &choice.claim);
        let claim = claim.filter(|claim| *claim.metadata.uid == *choice.uid)?;
        if self.snapshot.ledger().get(&pod.uid).is_some() {
            return None;
        }
        let reserved = is_reserved(claim, pod);
        let unused = claims.users(&pod.namespace, &choice.claim).iter().all(|user| *user == &*pod.uid);
        let ours =
            choice.allocation.is_some() && claim.status.allocation.as_ref() == choice.allocation.as_deref();
        let deallocate = unused && ours;
        (reserved || deallocate).then(|| PrebindWrite::ReleaseClaim { claim: claim.clone(), deallocate })
    }
}

/// A claim that has devices: the pod must be one of its users, and the devices ready.
pub(super) fn with_devices(
    claim: &Arc<ResourceClaim>,
    allocation: &AllocationResult,
    pod: &PodKey,
    node: &NodeState,
) -> PrebindProgress {
    let name = &claim.metadata.name;
    let selector = allocation.node_selector.as_ref();
    let on = dra::Node { name: &node.info.name, labels: &node.info.labels };
    if !selector.is_none_or(|selector| on.matches(selector)) {
        let elsewhere = format!("resourceclaim {name:?} has devices that are not on");
        let message =
            Message::with_own(format!("{elsewhere} node {}", on.name), format!("{elsewhere} the node"));
        return PrebindProgress::Failed(message);
    }
    if is_reserved(claim, pod) {
        return match readiness(claim, allocation) {
            Readiness::Ready => PrebindProgress::Bound,
            Readiness::Awaited => PrebindProgress::Awaited,
            Readiness::Failed(message) => PrebindProgress::failed(message),
        };
    }
    if claim.status.reserved_for.len() >= MOST_CONSUMERS {
        let message = format!("resourceclaim {name:?} is used by {MOST_CONSUMERS} pods, which is the most");
        return PrebindProgress::failed(message);
    }
    PrebindProgress::Write(PrebindWrite::ReserveClaim { claim: claim.clone(), allocation: None })
}

fn is_reserved(claim: &ResourceClaim, pod: &PodKey) -> bool {
    claim.status.reserved_for.iter().any(|user| *user.uid == *pod.uid)
}

/// Whether every device has the conditions that it must have before a pod is bound, and none of those that it must not have.
fn readiness(claim: &ResourceClaim, allocation: &AllocationResult) -> Readiness {
    let mut ready = true;
    for device in &allocation.devices.results {
        let status = claim.status.devices.iter().find(|status| is_of(status, device));
        let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
        let is_true =
            |kind: &&String| conditions.iter().any(|one| one.kind == **kind && one.status == "True");
        if let Some(failed) = device.binding_failure_conditions.iter().find(is_true) {
            let (name, device) = (&claim.metadata.name, &device.device);
            return Readiness::Failed(format!(
                "resourceclaim {name:?}: device {device:?} has the condition {failed}"
            ));
        }
        ready &= device.binding_conditions.iter().all(|kind| is_true(&kind));
    }
    if ready { Readiness::Ready } else { Readiness::Awaited }
}

fn is_of(status: &AllocatedDeviceStatus, device: &AllocatedDevice) -> bool {
    (&status.driver, &status.pool, &status.device) == (&device.driver, &device.pool, &device.device)
        && status.share_id == device.share_id
}
