//! The claim that serves extended resources of a pod: it is made, given its devices, and named in the pod's status, before the pod is bound.
//!
//! Its name is the one that the pod's status states, or else follows from the pod ([`crate::scheduling::model::extended_resources`]). So a claim whose
//! creation had no answer is not made twice, and one that an earlier attempt, an earlier process or another scheduler has made is taken up. One that is
//! no longer needed is deleted.
//! Source: v1.36 `pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go`.

use std::sync::Arc;

use super::{
    devices::{failed, is_protected, with_devices},
    flow::PrebindFlow,
    reason::{DevicesFailure, OtherDevices},
    step::{ClaimProgress, ClaimState, ClaimStep},
    view::PrebindView,
};
use crate::{
    object::{ResourceClaim, resource_claim::AllocationResult},
    scheduling::{
        model::{
            claim_use::ClaimConsumer,
            extended_resources::{ANNOTATION, ExtendedChoice, ExtendedClaim, asks_for_same},
            name::Uid,
            pod::{PodKey, is_older},
            prebind_step::PrebindStep,
            prebind_write::PrebindWrite,
        },
        world::node_state::NodeState,
    },
};

/// What is to be done for the claim, as it is known now.
pub(super) fn progress(
    pod: &PodKey,
    node: &NodeState,
    (choice, step): (&ExtendedChoice, &ClaimStep),
    view: &PrebindView<'_>,
) -> ClaimProgress {
    if matches!(step.state, ClaimState::Sent | ClaimState::Due(_)) {
        return ClaimProgress::Awaited;
    }
    let known = view.snapshot.resource_claims().claim(&pod.namespace, &choice.claim);
    let Some(made) = &choice.made else {
        return unmade_progress(pod, known.filter(|claim| is_own(claim, &pod.uid)), (choice, step), view);
    };
    match known {
        Some(claim) => made_progress(pod, node, (claim, made), step, view),
        None if step.gave => failed(&choice.claim, DevicesFailure::Deleted),
        // It was made, and has not been seen yet.
        None if matches!(step.state, ClaimState::Written(_)) => ClaimProgress::Awaited,
        None => ClaimProgress::Write(PrebindWrite::CreateClaim {
            claim: choice.claim.clone(),
            made: made.0.clone(),
        }),
    }
}

/// A claim that exists: it is given its devices, then the pod's status names it.
fn made_progress(
    pod: &PodKey,
    node: &NodeState,
    (claim, (made, devices)): (&Arc<ResourceClaim>, &(Arc<ExtendedClaim>, Arc<AllocationResult>)),
    step: &ClaimStep,
    view: &PrebindView<'_>,
) -> ClaimProgress {
    let name = &claim.metadata.name;
    if !is_own(claim, &pod.uid) {
        return failed(name, DevicesFailure::OfAnother);
    }
    if claim.metadata.deletion_timestamp.is_some() {
        return failed(name, DevicesFailure::BeingDeleted);
    }
    if !asks_for_same(&claim.spec, &made.spec) {
        return failed(name, DevicesFailure::ForAnotherNode);
    }
    if is_behind(step, &claim.metadata.resource_version) {
        return ClaimProgress::Awaited;
    }
    if !is_protected(claim) {
        return ClaimProgress::Write(PrebindWrite::ProtectClaim { claim: claim.clone() });
    }
    let Some(allocation) = &claim.status.allocation else {
        let (claim, allocation) = (claim.clone(), Some(devices.clone()));
        let consumer = ClaimConsumer::Pod;
        return ClaimProgress::Write(PrebindWrite::ReserveClaim { claim, consumer, allocation });
    };
    let others = || OtherDevices::Sought;
    match with_devices((claim, allocation), (&ClaimConsumer::Pod, &others), pod, node, view) {
        ClaimProgress::Bound => stated_progress(pod, Some(made), step, name, view),
        other => other,
    }
}

/// A claim that the node needs none of: it is deleted, and the pod's status names it no longer.
fn unmade_progress(
    pod: &PodKey,
    known: Option<&Arc<ResourceClaim>>,
    (choice, step): (&ExtendedChoice, &ClaimStep),
    view: &PrebindView<'_>,
) -> ClaimProgress {
    match known.map(|claim| (claim, deletion(claim))) {
        Some((claim, _)) if is_behind(step, &claim.metadata.resource_version) => ClaimProgress::Awaited,
        Some((_, Some(write))) if !has_no_version(&step.state) => ClaimProgress::Write(write),
        Some((_, Some(_))) => ClaimProgress::Awaited,
        Some((_, None)) | None => stated_progress(pod, None, step, &choice.claim, view),
    }
}

/// What the pod's status says of the claim: kubelet gives containers the devices that it names.
fn stated_progress(
    pod: &PodKey,
    made: Option<&Arc<ExtendedClaim>>,
    step: &ClaimStep,
    claim: &str,
    view: &PrebindView<'_>,
) -> ClaimProgress {
    let Some(info) = view.pods.pod(&pod.uid) else { return ClaimProgress::Awaited };
    let status = made.map(|made| made.status(claim));
    if info.status.served.as_ref().map(|stated| &*stated.status) == status.as_ref() {
        return ClaimProgress::Bound;
    }
    match &step.state {
        ClaimState::Written(version) if step.stated && is_older(&info.resource_version, version) => {
            ClaimProgress::Awaited
        }
        _ => ClaimProgress::Write(PrebindWrite::StateClaim {
            claim: claim.into(),
            status: status.map(Arc::new),
        }),
    }
}

/// The next write that deletes a claim of the pod's own that is not used after all; `state` is how far that is, and `flow` how far the pod is with
/// its claims. `None`: there is nothing to delete, or the pod is being placed where it uses the claim.
pub(super) fn taken_back(
    pod: &PodKey,
    (choice, state): (&ExtendedChoice, &ClaimState),
    flow: Option<&PrebindFlow>,
    view: &PrebindView<'_>,
) -> Option<PrebindWrite> {
    let claim = view.snapshot.resource_claims().claim(&pod.namespace, &choice.claim)?;
    if !is_own(claim, &pod.uid) || has_no_version(state) || is_used(claim, &pod.uid, flow, view) {
        return None;
    }
    deletion(claim)
}

/// Whether the pod is placed, or being placed, where it uses the claim, or where the claim is taken from it.
pub(super) fn is_used(
    claim: &ResourceClaim,
    pod: &Uid,
    flow: Option<&PrebindFlow>,
    view: &PrebindView<'_>,
) -> bool {
    let (Some(info), Some(_)) = (view.pods.pod(pod), view.snapshot.ledger().get(pod)) else {
        return false;
    };
    let named = info
        .status
        .served
        .as_ref()
        .is_some_and(|stated| stated.status.resource_claim_name == claim.metadata.name);
    named || flow.is_some_and(|flow| flow.has(PrebindStep::extended))
}

/// Whether the claim was made for extended resources of this pod.
pub(super) fn is_own(claim: &ResourceClaim, pod: &Uid) -> bool {
    let owned = claim.metadata.controller.as_ref().is_some_and(|owner| owner.uid() == &**pod);
    owned && claim.metadata.annotation(ANNOTATION) == Some("true")
}

/// The next write on the way to its deletion; `None`: nothing is left to be written. The finalizer goes last, so that the claim is never there with
/// devices and without it.
pub(super) fn deletion(claim: &Arc<ResourceClaim>) -> Option<PrebindWrite> {
    if claim.metadata.deletion_timestamp.is_none() {
        return Some(PrebindWrite::DeleteClaim { claim: claim.clone() });
    }
    is_protected(claim).then(|| PrebindWrite::UnprotectClaim { claim: claim.clone() })
}

/// Whether what is known of the claim is older than what was written to it.
fn is_behind(step: &ClaimStep, known: &str) -> bool {
    !step.stated && matches!(&step.state, ClaimState::Written(version) if is_older(known, version))
}

/// Whether the last write was a deletion, whose answer has no version.
fn has_no_version(state: &ClaimState) -> bool {
    matches!(state, ClaimState::Written(version) if version.is_empty())
}
