//! Claims of devices: the finalizer that keeps a claim, then its status with the devices and the pod as a user, then what drivers
//! state of the devices.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go`, `PreBind`, `bindClaim`, `Unreserve`.

use std::sync::Arc;

use super::{
    reason::{DevicesFailure, OtherDevices, PrebindReason},
    step::{ClaimProgress, ClaimState},
    view::PrebindView,
};
use crate::{
    object::{
        ResourceClaim,
        resource_claim::{AllocatedDevice, AllocatedDeviceStatus, AllocationResult},
    },
    scheduling::{
        model::{
            claim_use::{ClaimConsumer, FINALIZER},
            name::{Uid, full_name},
            pod::{PodKey, is_older},
            prebind_step::{ClaimChoice, PrebindStep},
            prebind_write::PrebindWrite,
        },
        world::{
            ledger::Commitment,
            node_state::NodeState,
            resource_claims::{
                MOST_CONSUMERS,
                double_allocation::{claims_with, double_allocations},
            },
        },
    },
};

/// What is to be done for one claim, as it is known now.
pub(super) fn progress(
    pod: &PodKey,
    node: &NodeState,
    (choice, state): (&ClaimChoice, &ClaimState),
    view: &PrebindView<'_>,
) -> ClaimProgress {
    let (claims, name) = (view.snapshot.resource_claims(), &choice.claim);
    let known = claims.claim(&pod.namespace, name).filter(|claim| *claim.metadata.uid == *choice.uid);
    let Some(claim) = known else { return failed(name, DevicesFailure::NotFound) };
    if claim.metadata.deletion_timestamp.is_some() {
        return failed(name, DevicesFailure::BeingDeleted);
    }
    match state {
        ClaimState::Sent | ClaimState::Due(_) => return ClaimProgress::Awaited,
        // What is known may be older than what was written.
        ClaimState::Written(version) if is_older(&claim.metadata.resource_version, version) => {
            return ClaimProgress::Awaited;
        }
        ClaimState::Unsent | ClaimState::Written(_) => {}
    }
    if let Some(allocation) = &claim.status.allocation {
        let others = || {
            let is_only_user = is_only_user(pod, (name, &choice.consumer), view);
            if is_only_user { OtherDevices::Sought } else { OtherDevices::None }
        };
        return with_devices((claim, allocation), (&choice.consumer, &others), pod, node, view);
    }
    let Some(chosen) = &choice.allocation else {
        // Another pod that is being placed gives it its devices.
        return match claims.allocation(&pod.namespace, name) {
            Some(_) => ClaimProgress::Awaited,
            None => failed(name, DevicesFailure::LostDevices),
        };
    };
    if !is_protected(claim) {
        return ClaimProgress::Write(PrebindWrite::ProtectClaim { claim: claim.clone() });
    }
    ClaimProgress::Write(PrebindWrite::ReserveClaim {
        claim: claim.clone(),
        consumer: choice.consumer.clone(),
        allocation: Some(chosen.clone()),
    })
}

/// As [`release`]; `None` for a pod that is being placed where it can use the claim, too.
pub(super) fn taken_back(pod: &PodKey, choice: &ClaimChoice, view: &PrebindView<'_>) -> Option<PrebindWrite> {
    if view.snapshot.ledger().get(&pod.uid).is_some() {
        return None;
    }
    release(pod, choice, view)
}

/// The write that takes the pod from a claim's users, or its PodGroup, and its devices from the claim unless others use it; `None`: there is nothing
/// to take back, or other pods of the PodGroup use it.
pub(super) fn release(pod: &PodKey, choice: &ClaimChoice, view: &PrebindView<'_>) -> Option<PrebindWrite> {
    if group_uses(pod, choice, view) {
        return None;
    }
    let claims = view.snapshot.resource_claims();
    let claim = claims.claim(&pod.namespace, &choice.claim);
    let claim = claim.filter(|claim| *claim.metadata.uid == *choice.uid)?;
    let reserved = is_reserved(claim, choice.consumer.uid(&pod.uid));
    let ours =
        choice.allocation.is_some() && claim.status.allocation.as_ref() == choice.allocation.as_deref();
    let deallocate = ours && is_only_user(pod, (&choice.claim, &choice.consumer), view);
    (reserved || deallocate).then(|| PrebindWrite::ReleaseClaim {
        claim: claim.clone(),
        consumer: choice.consumer.clone(),
        deallocate,
    })
}

/// Whether another pod of the PodGroup for which the claim is uses it.
fn group_uses(pod: &PodKey, choice: &ClaimChoice, view: &PrebindView<'_>) -> bool {
    let Some(group) = choice.consumer.group() else { return false };
    let (group, ledger) = (full_name(&pod.namespace, group), view.snapshot.ledger());
    let is_mate = |uid: &Uid| {
        *uid != pod.uid
            && ledger.get(uid).is_some_and(|charge| charge.importance.group.as_ref() == Some(&group))
    };
    ledger.users_of_claim(&full_name(&pod.namespace, &choice.claim)).any(is_mate)
}

/// Whether no other pod uses the claim or is going to, and no other PodGroup than the pod's where that is the user.
fn is_only_user(pod: &PodKey, (claim, consumer): (&str, &ClaimConsumer), view: &PrebindView<'_>) -> bool {
    let users = view.snapshot.resource_claims().users(&pod.namespace, claim);
    let consumer = consumer.uid(&pod.uid);
    users.iter().all(|user| *user == &*pod.uid || *user == &**consumer)
}

/// A claim that has devices: the pod must be one of its users, or its PodGroup, and the devices ready. `others`: what follows where another claim has
/// one of them.
pub(super) fn with_devices(
    (claim, allocation): (&Arc<ResourceClaim>, &AllocationResult),
    (consumer, others): (&ClaimConsumer, &dyn Fn() -> OtherDevices),
    pod: &PodKey,
    node: &NodeState,
    view: &PrebindView<'_>,
) -> ClaimProgress {
    let name = &claim.metadata.name;
    if let Some(device) = given_away(claim, view) {
        return failed(name, DevicesFailure::DoubleAllocation(device, others()));
    }
    if !node.target().can_use(allocation) {
        return failed(name, DevicesFailure::NotOnNode(node.info.name.clone()));
    }
    if is_reserved(claim, consumer.uid(&pod.uid)) {
        return match readiness(claim, allocation) {
            Ok(DriverReadiness::Ready) => ClaimProgress::Bound,
            Ok(DriverReadiness::Awaited) => ClaimProgress::Awaited,
            Err(failure) => failed(name, failure),
        };
    }
    if claim.status.reserved_for.len() >= MOST_CONSUMERS {
        return failed(name, DevicesFailure::InUse(MOST_CONSUMERS));
    }
    if consumer.group().is_some() && !is_first(pod, claim, consumer, view) {
        // Another pod of the PodGroup has it written.
        return ClaimProgress::Awaited;
    }
    let (claim, consumer) = (claim.clone(), consumer.clone());
    ClaimProgress::Write(PrebindWrite::ReserveClaim { claim, consumer, allocation: None })
}

/// Whether the pod is the first by uid of those that are being placed and for which the PodGroup is to become a user of the claim: it is written once.
fn is_first(pod: &PodKey, claim: &ResourceClaim, consumer: &ClaimConsumer, view: &PrebindView<'_>) -> bool {
    let ledger = view.snapshot.ledger();
    let (namespace, name) = (&claim.metadata.namespace, &claim.metadata.name);
    let awaits = |uid: &&Uid| {
        let charge = ledger.get(uid).filter(|charge| charge.commitment == Commitment::Assumed);
        let mut choices =
            charge.into_iter().flat_map(|charge| &charge.steps).filter_map(PrebindStep::devices);
        choices.any(|choice| *choice.claim == **name && choice.consumer == *consumer)
    };
    let full = full_name(namespace, name);
    let mut users = ledger.users_of_claim(&full);
    users.find(awaits).is_none_or(|first| *first == pod.uid)
}

/// A device of the claim that another claim has too, to which this one gives way; `None`: there is none. What was written before this claim got its
/// devices is known by now. Whoever else gives devices does not look: Berth gives way to all but claims of pods that it is placing itself, and among
/// these the first by name stays.
fn given_away(claim: &ResourceClaim, view: &PrebindView<'_>) -> Option<Arc<str>> {
    let (claims, ledger) = (view.snapshot.resource_claims(), view.snapshot.ledger());
    let own = full_name(&claim.metadata.namespace, &claim.metadata.name);
    let is_being_placed = |claim: &str| {
        let mut users = ledger.users_of_claim(claim).peekable();
        let is_assumed =
            |uid: &Uid| ledger.get(uid).is_some_and(|charge| charge.commitment == Commitment::Assumed);
        users.peek().is_some() && users.all(is_assumed)
    };
    let stays = |other: &Arc<str>| *other == own || *other > own && is_being_placed(other);
    let given = double_allocations(&own, claims).into_iter();
    given.filter(|device| !claims_with(device, claims).iter().all(stays)).map(|device| device.device).next()
}

fn is_reserved(claim: &ResourceClaim, consumer: &Uid) -> bool {
    claim.status.reserved_for.iter().any(|user| *user.uid == **consumer)
}

/// How far drivers are with the devices of a claim (KEP-5007).
enum DriverReadiness {
    Ready,
    Awaited,
}

/// Whether every device has the conditions that it must have before a pod is bound, and none of those that it must not have.
fn readiness(
    claim: &ResourceClaim,
    allocation: &AllocationResult,
) -> Result<DriverReadiness, DevicesFailure> {
    let mut ready = true;
    for device in &allocation.devices.results {
        let status = claim.status.devices.iter().find(|status| is_of(status, device));
        let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
        let is_true =
            |kind: &&String| conditions.iter().any(|one| one.kind == **kind && one.status == "True");
        if let Some(failed) = device.binding_failure_conditions.iter().find(is_true) {
            return Err(DevicesFailure::Condition {
                device: device.device.as_str().into(),
                condition: failed.as_str().into(),
            });
        }
        ready &= device.binding_conditions.iter().all(|kind| is_true(&kind));
    }
    Ok(if ready { DriverReadiness::Ready } else { DriverReadiness::Awaited })
}

fn is_of(status: &AllocatedDeviceStatus, device: &AllocatedDevice) -> bool {
    (&status.driver, &status.pool, &status.device) == (&device.driver, &device.pool, &device.device)
        && status.share_id == device.share_id
}

/// Whether the claim stays while it has devices.
pub(super) fn is_protected(claim: &ResourceClaim) -> bool {
    claim.metadata.finalizers.iter().any(|finalizer| finalizer == FINALIZER)
}

/// The pod can't be placed where it would use the claim.
pub(super) fn failed(claim: &str, failure: DevicesFailure) -> ClaimProgress {
    ClaimProgress::Failed(PrebindReason::devices(claim, failure))
}
