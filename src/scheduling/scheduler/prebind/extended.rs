//! The claim that serves extended resources of a pod: it is made, given its devices, and named in the pod's status, before the pod is bound.
//!
//! Its name is the pod's own ([`crate::scheduling::model::extended_resources`]), so that a claim whose creation had no answer is not made twice,
//! and one that an earlier attempt or an earlier process has made is taken up. One that is no longer needed is deleted.
//! Source: v1.36 `pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go`.

use std::sync::Arc;

use super::{PrebindProgress, Scheduler, State, Step, devices::with_devices, undo::Undo};
use crate::{
    object::{ResourceClaim, resource_claim::AllocationResult},
    scheduling::{
        effect::PrebindWrite,
        model::{
            claim_use::FINALIZER,
            extended_resources::{ANNOTATION, ExtendedChoice, ExtendedClaim, asks_for_same},
            name::{NodeName, Uid},
            pod::{Placer, PodKey, is_older},
            prebind_step::PrebindStep,
        },
        world::node_state::NodeState,
    },
};

impl Scheduler {
    /// What is to be done for the claim, as it is known now.
    pub(super) fn extended_progress(
        &self,
        pod: &PodKey,
        node: &NodeState,
        (choice, step): (&ExtendedChoice, &Step),
    ) -> PrebindProgress {
        if matches!(step.state, State::Sent | State::Due(_)) {
            return PrebindProgress::Awaited;
        }
        let known = self.snapshot.resource_claims().claim(&pod.namespace, &choice.claim);
        match &choice.made {
            Some(made) => match known {
                Some(claim) => self.made_progress(pod, node, (claim, made), step),
                None if step.gave => {
                    PrebindProgress::failed(format!("resourceclaim {:?} was deleted", choice.claim))
                }
                // It was made, and has not been seen yet.
                None if matches!(step.state, State::Written(_)) => PrebindProgress::Awaited,
                None => PrebindProgress::Write(PrebindWrite::CreateClaim {
                    claim: choice.claim.clone(),
                    made: made.0.clone(),
                }),
            },
            None => self.unmade_progress(pod, known.filter(|claim| is_own(claim, &pod.uid)), (choice, step)),
        }
    }

    /// A claim that exists: it is given its devices, then the pod's status names it.
    fn made_progress(
        &self,
        pod: &PodKey,
        node: &NodeState,
        (claim, (made, devices)): (&Arc<ResourceClaim>, &(Arc<ExtendedClaim>, Arc<AllocationResult>)),
        step: &Step,
    ) -> PrebindProgress {
        let name = &claim.metadata.name;
        if !is_own(claim, &pod.uid) {
            return PrebindProgress::failed(format!("resourceclaim {name:?} was not created for this pod"));
        }
        if claim.metadata.deletion_timestamp.is_some() {
            return PrebindProgress::failed(format!("resourceclaim {name:?} is being deleted"));
        }
        if !asks_for_same(&claim.spec, &made.spec) {
            return PrebindProgress::failed(format!("resourceclaim {name:?} was made for another node"));
        }
        if is_behind(step, &claim.metadata.resource_version) {
            return PrebindProgress::Awaited;
        }
        if !is_protected(claim) {
            return PrebindProgress::Write(PrebindWrite::ProtectClaim { claim: claim.clone() });
        }
        let Some(allocation) = &claim.status.allocation else {
            let (claim, allocation) = (claim.clone(), Some(devices.clone()));
            return PrebindProgress::Write(PrebindWrite::ReserveClaim { claim, allocation });
        };
        match with_devices(claim, allocation, pod, node) {
            PrebindProgress::Bound => self.stated_progress(pod, Some(made), step, name),
            other => other,
        }
    }

    /// A claim that the node needs none of: it is deleted, and the pod's status names it no longer.
    fn unmade_progress(
        &self,
        pod: &PodKey,
        known: Option<&Arc<ResourceClaim>>,
        (choice, step): (&ExtendedChoice, &Step),
    ) -> PrebindProgress {
        match known.map(|claim| (claim, deletion(claim))) {
            Some((claim, _)) if is_behind(step, &claim.metadata.resource_version) => PrebindProgress::Awaited,
            Some((_, Some(write))) if !has_no_version(&step.state) => PrebindProgress::Write(write),
            Some((_, Some(_))) => PrebindProgress::Awaited,
            Some((_, None)) | None => self.stated_progress(pod, None, step, &choice.claim),
        }
    }

    /// What the pod's status says of the claim: kubelet gives containers the devices that it names.
    fn stated_progress(
        &self,
        pod: &PodKey,
        made: Option<&Arc<ExtendedClaim>>,
        step: &Step,
        claim: &str,
    ) -> PrebindProgress {
        let Some(info) = self.pods.get(&pod.uid).map(|entry| &entry.info) else {
            return PrebindProgress::Awaited;
        };
        let status = made.map(|made| made.status(claim));
        if info.status.served.as_deref() == status.as_ref() {
            return PrebindProgress::Bound;
        }
        match &step.state {
            State::Written(version) if step.stated && is_older(&info.resource_version, version) => {
                PrebindProgress::Awaited
            }
            _ => PrebindProgress::Write(PrebindWrite::StateClaim {
                claim: claim.into(),
                status: status.map(Arc::new),
            }),
        }
    }

    /// The write that deletes a claim that is not used after all; `None`: there is nothing to delete, or the pod is being placed where it uses it.
    pub(super) fn extended_taken_back(&self, undo: &Undo, choice: &ExtendedChoice) -> Option<PrebindWrite> {
        let claim = self.snapshot.resource_claims().claim(&undo.pod.namespace, &choice.claim)?;
        if !is_own(claim, &undo.pod.uid) || has_no_version(&undo.state) || self.uses(&undo.pod.uid, claim) {
            return None;
        }
        deletion(claim)
    }

    /// Whether the pod is placed, or being placed, where it uses the claim, or where the claim is taken from it.
    fn uses(&self, pod: &Uid, claim: &ResourceClaim) -> bool {
        let (Some(entry), Some(_)) = (self.pods.get(pod), self.snapshot.ledger().get(pod)) else {
            return false;
        };
        let named = entry
            .info
            .status
            .served
            .as_ref()
            .is_some_and(|served| served.resource_claim_name == claim.metadata.name);
        let is_step = |step: &Step| step.choice.extended().is_some();
        let chosen = self.prebinding.pods.get(pod).is_some_and(|prebind| prebind.steps.iter().any(is_step));
        named || chosen
    }

    /// Deletes a claim that turns up when its pod has been placed without it: its creation had no answer, and arrived late.
    pub(in crate::scheduling::scheduler) fn delete_if_stray(&mut self, claim: &ResourceClaim) {
        let Some(owner) = claim.metadata.controller.as_ref() else { return };
        let pod = Uid::from(owner.uid());
        let Some(entry) = self.pods.get(&pod) else { return };
        let placed = entry.info.placer == Placer::Berth && self.snapshot.ledger().get(&pod).is_some();
        if placed && is_own(claim, &pod) && !self.uses(&pod, claim) {
            let key = entry.info.key.clone();
            self.delete_claim(key, claim.metadata.name.as_str().into());
        }
    }

    /// Deletes the claim that an earlier attempt has made, since the pod fits nowhere with it: kube-scheduler's PostFilter of
    /// `DynamicResources`.
    pub(in crate::scheduling::scheduler) fn delete_stale_claim(&mut self, uid: &Uid) {
        let Some(entry) = self.pods.get(uid) else { return };
        let Some(extended) = &entry.info.footprint.extended else { return };
        let (key, name) = (entry.info.key.clone(), extended.claim.clone());
        let known = self.snapshot.resource_claims().claim(&key.namespace, &name);
        if known.is_some_and(|claim| is_own(claim, uid) && deletion(claim).is_some()) {
            self.delete_claim(key, name);
        }
    }

    fn delete_claim(&mut self, pod: PodKey, claim: Arc<str>) {
        let pending = |undo: &Undo| undo.choice.claim() == &claim && undo.pod == pod;
        if !self.prebinding.undos.iter().any(pending) {
            let choice = PrebindStep::Extended(ExtendedChoice { claim, made: None });
            let node = NodeName::default();
            self.prebinding.undos.push(Undo { node, choice, pod, tries: 0, state: State::Unsent });
        }
    }
}

/// Whether the claim was made for extended resources of this pod.
fn is_own(claim: &ResourceClaim, pod: &Uid) -> bool {
    let owned = claim.metadata.controller.as_ref().is_some_and(|owner| owner.uid() == &**pod);
    owned && claim.metadata.annotation(ANNOTATION) == Some("true")
}

/// The next write on the way to its deletion; `None`: nothing is left to be written. The finalizer goes last, so that the claim is never there with
/// devices and without it.
fn deletion(claim: &Arc<ResourceClaim>) -> Option<PrebindWrite> {
    if claim.metadata.deletion_timestamp.is_none() {
        return Some(PrebindWrite::DeleteClaim { claim: claim.clone() });
    }
    is_protected(claim).then(|| PrebindWrite::UnprotectClaim { claim: claim.clone() })
}

fn is_protected(claim: &ResourceClaim) -> bool {
    claim.metadata.finalizers.iter().any(|finalizer| finalizer == FINALIZER)
}

/// Whether what is known of the claim is older than what was written to it.
fn is_behind(step: &Step, known: &str) -> bool {
    !step.stated && matches!(&step.state, State::Written(version) if is_older(known, version))
}

/// Whether the last write was a deletion, whose answer has no version.
fn has_no_version(state: &State) -> bool {
    matches!(state, State::Written(version) if version.is_empty())
}
