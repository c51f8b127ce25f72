//! What the pod's status says of the resources of its node that claims take: it is written before the pod is bound, and kubelet reads it.
//!
//! A write replaces what the pod's status says of it, and is a compare-and-swap on the pod: one that was sent before a kill, and arrives late, changes
//! nothing of a pod that was bound meanwhile.
//! Source: v1.37 `pkg/scheduler/framework/plugins/dynamicresources/nodeallocatabledynamicresources.go`,
//! `patchNodeAllocatableResourceClaimStatus` and `clearNodeAllocatableResourceClaimStatus`.

use std::sync::Arc;

use super::{
    step::{ClaimProgress, ClaimState},
    view::PrebindView,
};
use crate::scheduling::model::{
    node_resources::say_the_same,
    pod::{PodKey, is_older},
    prebind_step::NodeResourcesChoice,
    prebind_write::PrebindWrite,
};

/// Whether what is known of the pod may be from before a write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Doubt {
    /// It may.
    Some,
    /// It is not.
    None,
}

/// What is to be done for the pod's status, as it is known now.
pub(super) fn progress(
    pod: &PodKey,
    (choice, state): (&NodeResourcesChoice, &ClaimState),
    view: &PrebindView<'_>,
) -> ClaimProgress {
    let Some(info) = view.pods.pod(&pod.uid) else { return ClaimProgress::Awaited };
    match state {
        ClaimState::Sent | ClaimState::Due(_) => return ClaimProgress::Awaited,
        ClaimState::Written(version) if is_older(&info.resource_version, version) => {
            return ClaimProgress::Awaited;
        }
        ClaimState::Unsent | ClaimState::Written(_) => {}
    }
    if say_the_same(&info.status.taken, &choice.statuses) {
        return ClaimProgress::Bound;
    }
    let (version, statuses) = (info.resource_version.to_string(), choice.statuses.clone());
    ClaimProgress::Write(PrebindWrite::StateNodeResources { version, statuses })
}

/// The write that takes everything back; `None`: nothing is stated, or the pod is being placed, and what it states then is written for that.
pub(super) fn taken_back(pod: &PodKey, doubt: Doubt, view: &PrebindView<'_>) -> Option<PrebindWrite> {
    let info = view.pods.pod(&pod.uid)?;
    let is_placed = view.snapshot.ledger().get(&pod.uid).is_some();
    let may_state = doubt == Doubt::Some || !info.status.taken.is_empty();
    let version = info.resource_version.to_string();
    (!is_placed && may_state).then(|| PrebindWrite::StateNodeResources { version, statuses: Arc::default() })
}
