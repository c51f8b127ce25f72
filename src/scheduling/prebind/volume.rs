//! Claims of volumes: a volume is bound to a claim, or a claim is given the node that a volume is to be made for; then the volume
//! controller and the provisioner do their part.

use std::sync::Arc;

use super::{
    reason::{PrebindReason, VolumeFailure},
    step::{ClaimProgress, ClaimState},
    view::PrebindView,
};
use crate::{
    object::storage::{PersistentVolume, PersistentVolumeClaim},
    scheduling::{
        model::{
            name::NodeName,
            pod::{PodKey, is_older},
            prebind_step::VolumeChoice,
            prebind_write::PrebindWrite,
        },
        plugin::volume_binding,
        world::node_state::NodeState,
    },
};

/// What is to be done for one claim, as claim and volume are known now.
pub(super) fn progress(
    pod: &PodKey,
    node: &NodeState,
    (choice, state): (&VolumeChoice, &ClaimState),
    view: &PrebindView<'_>,
) -> ClaimProgress {
    let objects = view.snapshot.objects();
    let Some(claim) = objects.claim(&pod.namespace, choice.claim()) else {
        return failed(VolumeFailure::ClaimNotFound(choice.claim().clone()));
    };
    if claim.is_bound() {
        return mountable(node, claim, view);
    }
    if matches!(state, ClaimState::Sent | ClaimState::Due(_)) {
        return ClaimProgress::Awaited;
    }
    match choice {
        VolumeChoice::Provision { .. } => provision(&node.info.name, claim, state),
        VolumeChoice::Bind { volume, .. } => match objects.volume(volume) {
            Some(volume) => bind(volume, claim, state),
            None => failed(VolumeFailure::VolumeNotFound(volume.clone())),
        },
    }
}

/// A claim that is bound must be bound to a volume that can be mounted on the node.
fn mountable(node: &NodeState, claim: &PersistentVolumeClaim, view: &PrebindView<'_>) -> ClaimProgress {
    let name = &claim.spec.volume_name;
    let Some(volume) = view.snapshot.objects().volume(name) else { return ClaimProgress::Awaited };
    if volume_binding::is_mountable(volume, &node.info) {
        return ClaimProgress::Bound;
    }
    failed(VolumeFailure::NotMountable { volume: name.as_str().into(), node: node.info.name.clone() })
}

/// The write that takes it back; `None`: the claim is bound or gone, or nothing was written.
pub(super) fn taken_back(
    pod: &PodKey,
    node: &NodeName,
    choice: &VolumeChoice,
    view: &PrebindView<'_>,
) -> Option<PrebindWrite> {
    let claim = view.snapshot.objects().claim(&pod.namespace, choice.claim())?;
    if claim.is_bound() {
        return None;
    }
    match choice {
        VolumeChoice::Provision { .. } => {
            let selected = volume_binding::selected_node(claim)?;
            let write = PrebindWrite::SelectNode { claim: claim.clone(), node: None };
            (selected == &**node).then_some(write)
        }
        VolumeChoice::Bind { volume, .. } => {
            let volume = view.snapshot.objects().volume(volume)?;
            let ours = volume_binding::is_bound_to(volume, claim);
            ours.then(|| PrebindWrite::BindVolume { volume: volume.clone(), claim: None })
        }
    }
}

/// A claim for which a volume is to be made on the node.
fn provision(node: &NodeName, claim: &Arc<PersistentVolumeClaim>, state: &ClaimState) -> ClaimProgress {
    let known = &claim.metadata.resource_version;
    let selected = volume_binding::selected_node(claim);
    match state {
        // What is known may be older than what was written.
        ClaimState::Written(version) if is_older(known, version) => ClaimProgress::Awaited,
        ClaimState::Written(_) if selected == Some(node) => ClaimProgress::Awaited,
        _ if selected == Some(node) => ClaimProgress::Adopted(known.clone()),
        // The provisioner takes the node away where it can't make the volume.
        ClaimState::Written(_) => failed(VolumeFailure::ProvisioningFailed {
            claim: claim.metadata.name.as_str().into(),
            node: node.clone(),
        }),
        _ => {
            ClaimProgress::Write(PrebindWrite::SelectNode { claim: claim.clone(), node: Some(node.clone()) })
        }
    }
}

/// A volume that is to be bound to the claim.
fn bind(
    volume: &Arc<PersistentVolume>,
    claim: &Arc<PersistentVolumeClaim>,
    state: &ClaimState,
) -> ClaimProgress {
    let known = &volume.metadata.resource_version;
    let bound = volume_binding::is_bound_to(volume, claim);
    let name = || volume.metadata.name.as_str().into();
    match state {
        ClaimState::Written(version) if is_older(known, version) => ClaimProgress::Awaited,
        ClaimState::Written(_) if bound => ClaimProgress::Awaited,
        _ if bound => ClaimProgress::Adopted(known.clone()),
        ClaimState::Written(_) => failed(VolumeFailure::ClaimRefReset(name())),
        _ if volume.spec.claim_ref.is_some() && !volume_binding::is_meant_for(volume, claim) => {
            failed(VolumeFailure::BoundToAnother(name()))
        }
        _ => ClaimProgress::Write(PrebindWrite::BindVolume {
            volume: volume.clone(),
            claim: Some(claim.clone()),
        }),
    }
}

fn failed(failure: VolumeFailure) -> ClaimProgress {
    ClaimProgress::Failed(PrebindReason::Volume(failure))
}
