//! Taking back what was written for claims of pods that went elsewhere.

use jiff::Timestamp;

use super::{Prebind, Scheduler, State};
use crate::scheduling::{
    effect::{Effect, PrebindWrite, REACH},
    event::WriteOutcome,
    model::{
        name::{NodeName, Uid, full_name},
        pod::{PodKey, is_older},
        prebind_step::{ClaimChoice, PrebindStep, VolumeChoice},
    },
};

/// Something that was written for a pod that went elsewhere.
#[derive(Debug)]
pub(super) struct Undo {
    pub(super) node: NodeName,
    pub(super) choice: PrebindStep,
    pub(super) pod: PodKey,
    pub(super) tries: u32,
    pub(super) state: State,
}

/// Writes of this kind that are refused so often are left as they are: controllers settle them.
const MOST_UNDOS: u32 = 5;

impl Scheduler {
    /// Takes back what was written for a pod. Devices that a write may still give to a claim are held until that is settled.
    pub(super) fn undo(&mut self, pod: &PodKey, prebind: Prebind) {
        let Prebind { node, steps, .. } = prebind;
        for step in steps.into_iter().filter(|step| step.tries > 0) {
            let undo = Undo {
                node: node.clone(),
                choice: step.choice,
                pod: pod.clone(),
                tries: 0,
                state: step.state.when_undone(),
            };
            if let Some((claim, allocation)) = undo.choice.given().filter(|_| step.gave) {
                self.snapshot.linger(&full_name(&pod.namespace, claim), Some(allocation.clone()));
            }
            self.prebinding.undos.push(undo);
        }
    }

    /// Gives up the claims of a pod that fits nowhere where these can be used: devices are freed that no other pod uses, as kube-scheduler's
    /// PostFilter of `DynamicResources` does, and of a claim that others use the pod is no longer a user.
    pub(in crate::scheduling::scheduler) fn give_up_claims(&mut self, uid: &Uid) {
        let Some(entry) = self.pods.get(uid) else { return };
        let pod = &entry.info.key;
        for claim in entry.info.footprint.resource_claims.iter().filter_map(|used| used.claim.clone()) {
            let claims = self.snapshot.resource_claims();
            let Some(known) = claims.claim(&pod.namespace, &claim) else { continue };
            let pinned = known.status.allocation.as_ref().is_some_and(|held| held.node_selector.is_some());
            let unused = claims.users(&pod.namespace, &claim).iter().all(|user| *user == &*pod.uid);
            let reserved = known.status.reserved_for.iter().any(|user| *user.uid == *pod.uid);
            let pending = |undo: &Undo| undo.choice.claim() == &claim && undo.pod == *pod;
            if pinned && (unused || reserved) && !self.prebinding.undos.iter().any(pending) {
                let choice = ClaimChoice {
                    claim,
                    uid: known.metadata.uid.as_str().into(),
                    allocation: known.status.allocation.clone().map(Into::into),
                };
                let (node, choice) = (NodeName::default(), PrebindStep::Devices(choice));
                let undo = Undo { node, choice, pod: pod.clone(), tries: 0, state: State::Unsent };
                self.prebinding.undos.push(undo);
            }
        }
    }

    /// The claims of devices that a write, which may still arrive or is not seen yet, takes from a pod: what is known of them is from before it.
    fn claims_being_released(&self, pod: &PodKey) -> impl Iterator<Item = &ClaimChoice> {
        let undos = self.prebinding.undos.iter().filter(move |undo| undo.pod == *pod);
        let written = undos.filter(|undo| undo.tries > 0 || undo.state != State::Unsent);
        written.filter_map(|undo| undo.choice.devices())
    }

    /// Whether such a write is of this claim.
    pub(super) fn is_being_released(&self, pod: &PodKey, choice: &ClaimChoice) -> bool {
        self.claims_being_released(pod).any(|one| (&one.claim, &one.uid) == (&choice.claim, &choice.uid))
    }

    /// Such claims that a pod uses, which none of these steps is for: the pod is added to their users if it is no longer one.
    pub(in crate::scheduling::scheduler) fn released_claims(
        &self,
        uid: &Uid,
        steps: &[PrebindStep],
    ) -> Vec<PrebindStep> {
        let Some(pod) = self.pods.get(uid).map(|entry| &entry.info.key) else { return Vec::new() };
        let left = |choice: &&ClaimChoice| steps.iter().all(|step| *step.claim() != choice.claim);
        let released = self.claims_being_released(pod).filter(left);
        released
            .map(|choice| PrebindStep::Devices(ClaimChoice { allocation: None, ..choice.clone() }))
            .collect()
    }

    pub(super) fn advance_undos(&mut self, now: Timestamp) {
        for mut undo in std::mem::take(&mut self.prebinding.undos) {
            if self.is_undo_pending(&undo, now) {
                self.prebinding.undos.push(undo);
            } else if let Some(write) = self.taken_back(&undo).filter(|_| undo.tries < MOST_UNDOS) {
                (undo.state, undo.tries) = (State::Sent, undo.tries + 1);
                self.outbox.effects.push(Effect::Prebind { pod: undo.pod.clone(), write });
                self.prebinding.undos.push(undo);
            } else if undo.choice.volume().is_none() {
                // The pod may wait to use the claim again.
                self.prebinding.touched.add(&undo.pod.uid);
                self.snapshot.linger(&full_name(&undo.pod.namespace, undo.choice.claim()), None);
            }
        }
    }

    /// Whether the answer of the write is awaited, or the object as it was written, or the time of the next try.
    fn is_undo_pending(&self, undo: &Undo, now: Timestamp) -> bool {
        let (objects, namespace) = (self.snapshot.objects(), &undo.pod.namespace);
        let known = match &undo.choice {
            PrebindStep::Volume(VolumeChoice::Provision { claim }) => {
                objects.claim(namespace, claim).map(|claim| &claim.metadata)
            }
            PrebindStep::Volume(VolumeChoice::Bind { volume, .. }) => {
                objects.volume(volume).map(|volume| &volume.metadata)
            }
            PrebindStep::Devices(_) | PrebindStep::Extended(_) => {
                let claims = self.snapshot.resource_claims();
                claims.claim(namespace, undo.choice.claim()).map(|claim| &claim.metadata)
            }
        };
        match &undo.state {
            State::Sent => true,
            State::Unsent => false,
            State::Due(at) => *at > now,
            State::Written(version) => known.is_some_and(|known| is_older(&known.resource_version, version)),
        }
    }

    /// The write that takes it back; `None`: there is nothing to take back, or it is in use.
    fn taken_back(&self, undo: &Undo) -> Option<PrebindWrite> {
        match &undo.choice {
            PrebindStep::Volume(choice) => self.volume_taken_back(&undo.pod, &undo.node, choice),
            PrebindStep::Devices(choice) => self.claim_taken_back(&undo.pod, choice),
            PrebindStep::Extended(choice) => self.extended_taken_back(undo, choice),
        }
    }

    /// What came of a write that takes something back; whether it was such a write.
    pub(super) fn note_undone(
        &mut self,
        pod: &PodKey,
        write: &PrebindWrite,
        outcome: &WriteOutcome,
        now: Timestamp,
    ) -> bool {
        let awaits =
            |undo: &&mut Undo| undo.pod == *pod && undo.state == State::Sent && write.is_of(&undo.choice);
        let Some(undo) = self.prebinding.undos.iter_mut().find(awaits) else { return false };
        undo.state = match outcome {
            // It has not been seen yet.
            WriteOutcome::Written { .. } if matches!(write, PrebindWrite::CreateClaim { .. }) => {
                State::Due(now.checked_add(REACH).unwrap_or(now))
            }
            WriteOutcome::Written { resource_version } => State::Written(resource_version.clone()),
            // It may still arrive.
            WriteOutcome::Failed(_) | WriteOutcome::Refused(_) => {
                State::Due(now.checked_add(REACH).unwrap_or(now))
            }
        };
        true
    }
}
