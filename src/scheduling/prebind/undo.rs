//! Taking back what was written for claims of pods that went elsewhere.

use std::sync::Arc;

use jiff::Timestamp;

use super::{
    Prebinding, devices, extended,
    flow::PrebindFlow,
    node_resources::{self, Doubt},
    request::PrebindRequest,
    step::{ClaimState, end_of_reach},
    view::PrebindView,
    volume,
};
use crate::{
    object::ResourceClaim,
    scheduling::{
        model::{
            claim_use::ClaimConsumer,
            extended_resources::ExtendedChoice,
            name::{NodeName, Uid, full_name},
            node_resources::charged,
            outcome::WriteOutcome,
            pod::{Placer, PodInfo, PodKey, is_older},
            prebind_step::{ClaimChoice, NodeResourcesChoice, PrebindStep, VolumeChoice},
            prebind_write::PrebindWrite,
        },
        world::resource_claims::double_allocation::double_allocations,
    },
};

/// Writes of this kind that are refused so often are left as they are: controllers settle them.
const MOST_UNDOS: u32 = 5;

/// Something that was written for a pod that went elsewhere.
#[derive(Debug)]
struct Undo {
    node: NodeName,
    choice: PrebindStep,
    pod: PodKey,
    tries: u32,
    state: ClaimState,
    /// Whether a write got no answer, or a conflict, and none after it has been written: what is known of the claim may be from before it.
    is_in_doubt: bool,
}

/// What was written for claims of pods that went elsewhere.
#[derive(Debug, Default)]
pub(super) struct Undos(Vec<Undo>);

impl Undos {
    /// Takes this claim of a pod back, unless that is under way. There is no node that it was to be used on.
    fn add(&mut self, pod: &PodKey, choice: PrebindStep) {
        // Of a claim whose user is a PodGroup, one of its pods has it taken back for all.
        let is_same = |undo: &Undo| {
            let is_for_same = undo.pod == *pod || (choice.is_for_group() && undo.is_for_group());
            is_for_same && undo.choice.claim() == choice.claim() && undo.pod.namespace == pod.namespace
        };
        if !self.0.iter().any(is_same) {
            let (node, pod, state) = (NodeName::default(), pod.clone(), ClaimState::Unsent);
            self.0.push(Undo { node, choice, pod, tries: 0, state, is_in_doubt: false });
        }
    }

    /// What a write, which may still arrive or is not seen yet, takes from a pod, or from its PodGroup: what is known of the claims is from before it.
    fn releasing<'a>(&'a self, pod: &'a Uid, view: &PrebindView<'a>) -> impl Iterator<Item = &'a Undo> {
        let footprint = view.pods.pod(pod).map(|pod| &pod.footprint);
        let uses = move |undo: &Undo| {
            let used = footprint.filter(|pod| pod.namespace == undo.pod.namespace);
            let mut claims = used.into_iter().flat_map(|pod| &pod.resource_claims);
            claims.any(|used| used.claim.as_ref() == Some(undo.choice.claim()))
        };
        let takes = move |undo: &&Undo| undo.pod.uid == *pod || (undo.is_for_group() && uses(undo));
        self.0.iter().filter(|undo| undo.is_releasing()).filter(takes)
    }

    /// Whether such a write is of this claim of devices of the pod's namespace, which is not known to be going.
    pub(super) fn are_releasing(&self, pod: &PodKey, claim: &str, view: &PrebindView<'_>) -> bool {
        let mut releasing = self.releasing(&pod.uid, view).filter(|undo| **undo.choice.claim() == *claim);
        releasing
            .any(|undo| undo.claim(view).is_some_and(|claim| claim.metadata.deletion_timestamp.is_none()))
    }

    /// Whether what the pod's status says of its node's resources is being taken back, or may still be what an earlier attempt has written.
    pub(super) fn state_node_resources(&self, pod: &PodKey) -> bool {
        let mut own = self.0.iter().filter(|undo| undo.pod.uid == pod.uid);
        own.any(|undo| undo.choice.node_resources().is_some())
    }

    /// When the next write is to be tried again.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.0.iter().filter_map(|undo| undo.state.due()).min()
    }
}

impl Undo {
    /// Whether the answer of the write is awaited, or the object as it was written, or the time of the next try.
    fn is_pending(&self, view: &PrebindView<'_>) -> bool {
        let (objects, namespace) = (view.snapshot.objects(), &self.pod.namespace);
        let known = match &self.choice {
            PrebindStep::Volume(VolumeChoice::Provision { claim }) => {
                objects.claim(namespace, claim).map(|claim| &claim.metadata)
            }
            PrebindStep::Volume(VolumeChoice::Bind { volume, .. }) => {
                objects.volume(volume).map(|volume| &volume.metadata)
            }
            PrebindStep::Devices(_) | PrebindStep::Extended(_) => {
                let claims = view.snapshot.resource_claims();
                claims.claim(namespace, self.choice.claim()).map(|claim| &claim.metadata)
            }
            PrebindStep::NodeResources(_) => None,
        };
        let version = match &self.choice {
            PrebindStep::NodeResources(_) => view.pods.pod(&self.pod.uid).map(|pod| &*pod.resource_version),
            _ => known.map(|known| known.resource_version.as_str()),
        };
        match &self.state {
            ClaimState::Sent => true,
            ClaimState::Unsent => false,
            ClaimState::Due(at) => *at > view.now(),
            // What has no version was deleted.
            ClaimState::Written(written) if written.is_empty() => version.is_some(),
            ClaimState::Written(written) => version.is_some_and(|version| is_older(version, written)),
        }
    }

    /// Whether a write that takes something back may still arrive, or is not seen yet.
    fn is_releasing(&self) -> bool {
        self.tries > 0 || self.state != ClaimState::Unsent
    }

    /// Whether what is known of the object may be from before a write.
    fn doubt(&self) -> Doubt {
        if self.is_in_doubt { Doubt::Some } else { Doubt::None }
    }

    /// Whether it takes a claim of devices back whose user is the pod's PodGroup: other pods of it may be about to use the claim.
    fn is_for_group(&self) -> bool {
        self.choice.is_for_group()
    }

    /// Whether it takes this claim of devices back, of the pod's namespace.
    fn is_of(&self, claim: &ResourceClaim) -> bool {
        let names = &claim.metadata;
        match &self.choice {
            PrebindStep::Volume(_) | PrebindStep::NodeResources(_) => false,
            PrebindStep::Devices(choice) => (&*choice.claim, &*choice.uid) == (&names.name, &names.uid),
            PrebindStep::Extended(choice) => {
                *choice.claim == *names.name && extended::is_own(claim, &self.pod.uid)
            }
        }
    }

    /// Its claim of devices as it is known.
    fn claim<'a>(&self, view: &PrebindView<'a>) -> Option<&'a Arc<ResourceClaim>> {
        let claims = view.snapshot.resource_claims();
        claims.claim(&self.pod.namespace, self.choice.claim()).filter(|claim| self.is_of(claim))
    }

    /// The write that tells whether one without an answer has arrived, once that can no longer arrive later: it changes nothing, and is a conflict
    /// until the claim is seen as the other has left it. `None`: there is no doubt, or the claim has neither devices nor had any.
    fn verification(&self, view: &PrebindView<'_>) -> Option<PrebindWrite> {
        let claim = self.claim(view).filter(|claim| self.is_in_doubt && devices::is_protected(claim))?;
        Some(PrebindWrite::ProtectClaim { claim: claim.clone() })
    }

    /// What came of its write.
    fn note(&mut self, write: &PrebindWrite, outcome: &WriteOutcome, now: Timestamp) {
        let later = || ClaimState::Due(end_of_reach(now));
        match outcome {
            WriteOutcome::Written { .. } => self.is_in_doubt = false,
            WriteOutcome::Failed(_) => self.is_in_doubt = true,
            // This write was not written; of an earlier one that says nothing.
            WriteOutcome::Refused(_) => {}
        }
        self.state = match outcome {
            // It has not been seen yet.
            WriteOutcome::Written { .. } if matches!(write, PrebindWrite::CreateClaim { .. }) => later(),
            // Everything of the claim itself was seen before that.
            WriteOutcome::Written { .. } if write.states_claim() => ClaimState::Unsent,
            WriteOutcome::Written { resource_version } => ClaimState::Written(resource_version.clone()),
            // It may still arrive.
            WriteOutcome::Failed(_) | WriteOutcome::Refused(_) => later(),
        };
    }
}

impl Prebinding {
    /// Takes back what was written for a pod. Devices that a write may still give to a claim are held until that is settled.
    pub(super) fn take_back(&mut self, flow: PrebindFlow) {
        let PrebindFlow { node, pod, steps, .. } = flow;
        if steps.iter().any(|step| step.choice.is_for_group()) {
            // Another pod of its PodGroup may have to write what this one would have written.
            self.touched.add_all();
        }
        for step in steps.into_iter().filter(|step| step.tries > 0) {
            if let Some((claim, allocation)) = step.choice.given().filter(|_| step.gave) {
                let name = full_name(&pod.namespace, claim);
                self.requests.push(PrebindRequest::Linger(name, Some(allocation.clone())));
            }
            let (node, pod, state) = (node.clone(), pod.clone(), step.when_undone());
            let is_in_doubt = step.in_doubt.is_some();
            self.undos.0.push(Undo { node, choice: step.choice, pod, tries: 0, state, is_in_doubt });
        }
    }

    /// Goes on with everything that is taken back.
    pub(super) fn settle_undos(&mut self, view: &PrebindView<'_>) {
        for mut undo in std::mem::take(&mut self.undos.0) {
            if undo.is_pending(view) {
                self.undos.0.push(undo);
                continue;
            }
            let write = self.taken_back(&undo, view).filter(|_| undo.tries < MOST_UNDOS);
            undo.tries += u32::from(write.is_some());
            if let Some(write) = write.or_else(|| undo.verification(view)) {
                undo.state = ClaimState::Sent;
                self.requests.push(PrebindRequest::Write(undo.pod.clone(), write));
                self.undos.0.push(undo);
            } else if undo.choice.volume().is_none() {
                // The pod may wait to use the claim again, or another of its PodGroup.
                self.touched.add(&undo.pod.uid);
                let name = full_name(&undo.pod.namespace, undo.choice.claim());
                if undo.is_for_group() {
                    let users = view.snapshot.ledger().users_of_claim(&name);
                    users.for_each(|uid| self.touched.add(uid));
                }
                if undo.choice.node_resources().is_none() {
                    self.requests.push(PrebindRequest::Linger(name, None));
                }
            }
        }
    }

    /// The write that takes it back; `None`: there is nothing to take back, or it is in use.
    fn taken_back(&self, undo: &Undo, view: &PrebindView<'_>) -> Option<PrebindWrite> {
        let pod = &undo.pod;
        match &undo.choice {
            PrebindStep::Volume(choice) if self.uses_volume(&pod.namespace, choice) => None,
            PrebindStep::Volume(choice) => volume::taken_back(pod, &undo.node, choice, view),
            PrebindStep::Devices(choice) => devices::taken_back(pod, choice, view),
            PrebindStep::Extended(choice) => {
                extended::taken_back(pod, (choice, &undo.state), self.flows.get(&pod.uid), view)
            }
            PrebindStep::NodeResources(_) => node_resources::taken_back(pod, undo.doubt(), view),
        }
    }

    /// Whether a pod of the namespace makes use of what was written for this volume.
    fn uses_volume(&self, namespace: &Arc<str>, choice: &VolumeChoice) -> bool {
        let flows = self.flows.values().filter(|flow| flow.pod.namespace == *namespace);
        let mut steps = flows.flat_map(|flow| &flow.steps);
        steps.any(|step| step.choice.volume() == Some(choice))
    }

    /// What came of a write that takes something back; whether it was such a write.
    pub(super) fn note_undone(
        &mut self,
        pod: &PodKey,
        write: &PrebindWrite,
        outcome: &WriteOutcome,
        now: Timestamp,
    ) -> bool {
        let awaits = |undo: &&mut Undo| {
            undo.pod == *pod && undo.state == ClaimState::Sent && write.is_of(&undo.choice)
        };
        let undo = self.undos.0.iter_mut().find(awaits);
        undo.map(|undo| undo.note(write, outcome, now)).is_some()
    }

    /// Gives up the claims of a pod that fits nowhere where these can be used: devices are freed that no other pod uses, as kube-scheduler's
    /// PostFilter of `DynamicResources` does, and of a claim that others use the pod is no longer a user. A claim of the pod's PodGroup is given up only
    /// if no other pod of it holds a place. None is given up if the pod has a place again by the time of the write. The claim that an earlier attempt has
    /// made is deleted.
    pub(super) fn give_up_claims(&mut self, uid: &Uid, view: &PrebindView<'_>) {
        let Some(pod) = view.pods.pod(uid) else { return };
        let (key, claims) = (&pod.key, view.snapshot.resource_claims());
        for claim in pod.footprint.resource_claims.iter().filter_map(|used| used.claim.clone()) {
            let Some(known) = claims.claim(&key.namespace, &claim) else { continue };
            let choice = as_it_stands(known, consumer_of(pod, &claim, view));
            let pinned = known.status.allocation.as_ref().is_some_and(|held| held.node_selector.is_some());
            if pinned && devices::release(key, &choice, view).is_some() {
                self.undos.add(key, PrebindStep::Devices(choice));
            }
        }
        let made = pod.footprint.extended.as_ref();
        if let Some(known) = made.and_then(|made| claims.claim(&key.namespace, &made.claim))
            && extended::is_own(known, uid)
        {
            self.give_up(key, known, view);
        }
    }

    /// Frees the devices of a claim that no other pod uses, whoever has given them; of one that others use, the pod is no longer a user. A claim that
    /// serves extended resources of the pod is deleted.
    pub(super) fn give_up(&mut self, pod: &PodKey, claim: &Arc<ResourceClaim>, view: &PrebindView<'_>) {
        let name = Arc::from(claim.metadata.name.as_str());
        if !extended::is_own(claim, &pod.uid) {
            let consumer = view.pods.pod(&pod.uid).map(|pod| consumer_of(pod, &name, view));
            let choice = as_it_stands(claim, consumer.unwrap_or_default());
            self.undos.add(pod, PrebindStep::Devices(choice));
        } else if extended::deletion(claim).is_some() {
            self.delete_claim(pod, name);
        }
    }

    /// Deletes a claim that turns up when its pod has been placed without it: its creation had no answer, and arrived late.
    pub(super) fn delete_if_stray(&mut self, claim: &ResourceClaim, view: &PrebindView<'_>) {
        let Some(owner) = claim.metadata.controller.as_ref() else { return };
        let Some(pod) = view.pods.pod(owner.uid()) else { return };
        let uid = &pod.key.uid;
        let placed = pod.placer == Placer::Berth && view.snapshot.ledger().get(uid).is_some();
        let is_used = || extended::is_used(claim, uid, self.flows.get(uid), view);
        if placed && extended::is_own(claim, uid) && !is_used() {
            self.delete_claim(&pod.key, claim.metadata.name.as_str().into());
        }
    }

    fn delete_claim(&mut self, pod: &PodKey, claim: Arc<str>) {
        self.undos.add(pod, PrebindStep::Extended(ExtendedChoice { claim, made: None }));
    }

    /// The claims that a pod uses, that none of these steps is for, and that it can't use as they are known: what is being taken back of them is to be
    /// settled, or another claim has one of their devices, too.
    pub(in crate::scheduling) fn unsettled_claims(
        &self,
        uid: &Uid,
        steps: &[PrebindStep],
        view: &PrebindView<'_>,
    ) -> Vec<PrebindStep> {
        let Some(pod) = view.pods.pod(uid) else { return Vec::new() };
        let (key, claims) = (&pod.key, view.snapshot.resource_claims());
        let is_unsettled = |claim: &str| {
            self.undos.are_releasing(key, claim, view)
                || !double_allocations(&full_name(&key.namespace, claim), claims).is_empty()
        };
        let names = pod.footprint.claim_names();
        let is_open = |claim: &&Arc<str>| {
            let mut of_claims = steps.iter().filter(|step| step.node_resources().is_none());
            of_claims.all(|step| step.claim() != *claim)
        };
        let names = names.filter(is_open);
        let unsettled = names.filter(|claim| is_unsettled(claim)).filter_map(|name| {
            let claim = claims.claim(&key.namespace, name)?;
            Some(PrebindStep::Devices(ClaimChoice::of(claim, None, consumer_of(pod, name, view))))
        });
        // What the pod states is what it is to state, and is being taken back.
        let is_stated = steps.iter().all(|step| step.node_resources().is_none());
        let restated = as_it_is_stated(pod).filter(|_| is_stated && self.undos.state_node_resources(key));
        unsettled.chain(restated.map(PrebindStep::NodeResources)).collect()
    }
}

/// Whom the status of a claim names as its user, where the pod uses it.
fn consumer_of(pod: &PodInfo, claim: &str, view: &PrebindView<'_>) -> ClaimConsumer {
    let mut used = pod.footprint.resource_claims.iter();
    let used = used.find(|used| used.claim.as_deref() == Some(claim));
    let group = pod.importance.group.as_deref();
    used.map(|used| view.snapshot.objects().claim_consumer(group, used)).unwrap_or_default()
}

/// What the pod states of the resources of its node; `None`: nothing.
fn as_it_is_stated(pod: &PodInfo) -> Option<NodeResourcesChoice> {
    let (statuses, requested) = (pod.status.taken.clone(), charged(pod, &[]).resources.clone());
    let claim = statuses.first()?.resource_claim_name.as_str().into();
    Some(NodeResourcesChoice { claim, statuses, requested })
}

/// The claim with the devices that it has, whoever has given them.
fn as_it_stands(claim: &ResourceClaim, consumer: ClaimConsumer) -> ClaimChoice {
    ClaimChoice::of(claim, claim.status.allocation.clone().map(Into::into), consumer)
}
