//! What is written for a pod's claims before the pod stands in the line of its node: kube-scheduler's PreBind of volumes.
//!
//! A volume is bound to a claim, or a claim is given the node that a volume is to be made for; then the volume controller and the
//! provisioner do their part. No lock is held meanwhile. Where the pod goes elsewhere, what was written is taken back, as long as the
//! claim is not bound. Nothing is remembered across a restart: a claim that was given a node, or a volume that was given a claim, leads
//! the pod to the same choice.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};

use super::{Scheduler, Work};
use crate::{
    object::storage::{PersistentVolume, PersistentVolumeClaim},
    scheduling::{
        blame::Blame,
        effect::{Effect, REACH, VolumeWrite},
        event::WriteOutcome,
        node::NodeName,
        plugin::volume_binding::{self, VolumeChoice},
        pod::{PodKey, Uid, is_older},
        queue::backoff,
        snapshot::NodeState,
    },
};

/// Claims that are not bound after this time are given up (v1.36 `VolumeBindingArgs.bindTimeoutSeconds`).
const PATIENCE: SignedDuration = SignedDuration::from_mins(10);

/// A pod whose claims are being bound on its node.
#[derive(Debug)]
pub(super) struct Prebind {
    node: NodeName,
    since: Timestamp,
    steps: Vec<Step>,
    /// Whether every claim is bound: the pod waits for others of its gang.
    pub(super) bound: bool,
}

/// One claim of such a pod.
#[derive(Debug)]
struct Step {
    choice: VolumeChoice,
    tries: u32,
    state: State,
}

/// How far a claim is.
#[derive(Clone, Debug, Eq, PartialEq)]
enum State {
    /// To be written.
    Unsent,
    /// To be written from then on.
    Due(Timestamp),
    /// The write is under way.
    Sent,
    /// Written, at this version of the object.
    Written(String),
}

impl State {
    /// Ends a pause that is over: a claim that has been bound meanwhile is not written again, and a time that has passed would
    /// stay the scheduler's next deadline, by which its loop wakes.
    fn come_due(&mut self, now: Timestamp) {
        if matches!(self, Self::Due(at) if *at <= now) {
            *self = Self::Unsent;
        }
    }

    /// How far the undoing of a write is that is so far: what is under way is undone once it is answered, what is written once it is
    /// seen, and what failed once it can no longer arrive.
    fn when_undone(self) -> Self {
        match self {
            Self::Due(at) => Self::Due(at.checked_add(REACH).unwrap_or(at)),
            Self::Unsent | Self::Sent | Self::Written(_) => self,
        }
    }
}

/// What a claim's step comes to.
enum Progress {
    /// The claim is bound to a volume that can be mounted on the node.
    Bound,
    /// The volume controller or the provisioner has its turn.
    Awaited,
    /// It is written already, at this version of the object.
    Adopted(String),
    /// This has to be written.
    Write(VolumeWrite),
    /// The pod can't be placed there.
    Failed(String),
}

/// Something that was written for a pod that went elsewhere.
#[derive(Debug)]
pub(super) struct Undo {
    node: NodeName,
    choice: VolumeChoice,
    pod: PodKey,
    tries: u32,
    state: State,
}

/// Writes of this kind that are refused so often are left as they are: the volume controller settles them.
const MOST_UNDOS: u32 = 5;

/// What is written for claims before their pods stand in line.
#[derive(Debug, Default)]
pub(super) struct Prebinding {
    /// Pods whose claims are being bound.
    pub(super) pods: BTreeMap<Uid, Prebind>,
    /// What was written for claims of pods that went elsewhere.
    undos: Vec<Undo>,
}

impl Scheduler {
    /// Binds the claims of a pod that is decided; once they are bound, and those of its gang are, it joins the line of its node.
    pub(super) fn prebind(&mut self, uid: &Uid, node: NodeName, volumes: Vec<VolumeChoice>, now: Timestamp) {
        self.begin_prebind(uid, node, volumes, now);
        self.advance_prebind(uid, now);
        self.permit(now);
    }

    /// As [`Self::prebind`]; nothing is written before the pod's turn comes.
    pub(super) fn begin_prebind(
        &mut self,
        uid: &Uid,
        node: NodeName,
        volumes: Vec<VolumeChoice>,
        now: Timestamp,
    ) {
        let step = |choice| Step { choice, tries: 0, state: State::Unsent };
        let steps = volumes.into_iter().map(step).collect();
        self.set_work(uid, Work::Prebinding(node.clone()));
        self.prebinding.pods.insert(uid.clone(), Prebind { node, since: now, steps, bound: false });
    }

    /// Takes every pod's claims as far as they go.
    pub(super) fn advance_prebinds(&mut self, now: Timestamp) {
        let uids: Vec<Uid> = self.prebinding.pods.keys().cloned().collect();
        for uid in uids {
            self.advance_prebind(&uid, now);
        }
        self.permit(now);
        self.advance_undos(now);
    }

    fn advance_prebind(&mut self, uid: &Uid, now: Timestamp) {
        let Some(mut prebind) = self.prebinding.pods.remove(uid) else { return };
        let Some(key) = self.pods.get(uid).map(|entry| entry.info.key.clone()) else { return };
        let overdue = prebind.since.checked_add(PATIENCE).is_ok_and(|until| until <= now);
        let mut bound = true;
        for step in &mut prebind.steps {
            step.state.come_due(now);
            match self.progress(&key, &prebind.node, step) {
                Progress::Bound => continue,
                Progress::Awaited if overdue => {
                    let message = format!("binding volumes: timed out on node {}", prebind.node);
                    return self.fail_prebind(&key, prebind, message, now);
                }
                Progress::Awaited => {}
                Progress::Adopted(version) => step.state = State::Written(version),
                Progress::Write(write) => {
                    (step.state, step.tries) = (State::Sent, step.tries + 1);
                    self.outbox.effects.push(Effect::WriteVolume { pod: key.clone(), write });
                }
                Progress::Failed(message) => return self.fail_prebind(&key, prebind, message, now),
            }
            bound = false;
        }
        prebind.bound = bound;
        self.prebinding.pods.insert(uid.clone(), prebind);
    }

    /// The pods whose claims are bound, and those of their gangs, join the lines of their nodes, in the order in which they were seen.
    fn permit(&mut self, now: Timestamp) {
        let bound = self.prebinding.pods.iter().filter(|(_, prebind)| prebind.bound);
        let bound = bound.filter(|(uid, _)| self.is_permitted(uid));
        let seen = |uid: &Uid| self.pods.get(uid).map(|entry| entry.seen);
        let mut permitted: Vec<(Option<u64>, Uid, NodeName)> =
            bound.map(|(uid, prebind)| (seen(uid), uid.clone(), prebind.node.clone())).collect();
        permitted.sort();
        for (_, uid, node) in permitted {
            self.prebinding.pods.remove(&uid);
            self.join_line(&uid, &node, now);
        }
    }

    /// What is to be done for one claim, as claim and volume are known now.
    fn progress(&self, pod: &PodKey, node: &NodeName, step: &Step) -> Progress {
        let name = step.choice.claim();
        if self.snapshot.node(node).is_none() {
            return Progress::Failed(format!("binding volumes: node {node} is gone"));
        }
        let Some(claim) = self.snapshot.objects().claim(&pod.namespace, name) else {
            return Progress::Failed(format!("persistentvolumeclaim {name:?} not found"));
        };
        if claim.is_bound() {
            return self.mountable(node, claim);
        }
        if matches!(step.state, State::Sent | State::Due(_)) {
            return Progress::Awaited;
        }
        match &step.choice {
            VolumeChoice::Provision { .. } => provision(node, claim, &step.state),
            VolumeChoice::Bind { volume, .. } => match self.snapshot.objects().volume(volume) {
                Some(volume) => bind(volume, claim, &step.state),
                None => Progress::Failed(format!("persistentvolume {volume:?} not found")),
            },
        }
    }

    /// A claim that is bound must be bound to a volume that can be mounted on the node.
    fn mountable(&self, node: &NodeName, claim: &PersistentVolumeClaim) -> Progress {
        let name = &claim.spec.volume_name;
        let Some(volume) = self.snapshot.objects().volume(name) else { return Progress::Awaited };
        let mountable = |state: &Arc<NodeState>| volume_binding::is_mountable(volume, &state.info);
        if self.snapshot.node(node).is_some_and(mountable) {
            return Progress::Bound;
        }
        Progress::Failed(format!("pv {name:?} node affinity doesn't match node {node:?}"))
    }

    fn fail_prebind(&mut self, pod: &PodKey, prebind: Prebind, message: String, now: Timestamp) {
        self.undo(pod, prebind);
        self.back_off(&pod.uid, now);
        self.tell_unschedulable(&pod.uid, Blame::Claims, message);
    }

    /// The pod is no longer to be placed on the node whose claims are being bound.
    pub(super) fn stop_prebind(&mut self, uid: &Uid) {
        let Some(prebind) = self.prebinding.pods.remove(uid) else { return };
        if let Some(key) = self.pods.get(uid).map(|entry| entry.info.key.clone()) {
            self.undo(&key, prebind);
        }
    }

    fn undo(&mut self, pod: &PodKey, prebind: Prebind) {
        let Prebind { node, steps, .. } = prebind;
        let written = steps.into_iter().filter(|step| step.tries > 0);
        self.prebinding.undos.extend(written.map(|step| Undo {
            node: node.clone(),
            choice: step.choice,
            pod: pod.clone(),
            tries: 0,
            state: step.state.when_undone(),
        }));
    }

    fn advance_undos(&mut self, now: Timestamp) {
        let undos = std::mem::take(&mut self.prebinding.undos);
        for mut undo in undos {
            if self.is_undo_pending(&undo, now) {
                self.prebinding.undos.push(undo);
            } else if let Some(write) = self.taken_back(&undo).filter(|_| undo.tries < MOST_UNDOS) {
                (undo.state, undo.tries) = (State::Sent, undo.tries + 1);
                self.outbox.effects.push(Effect::WriteVolume { pod: undo.pod.clone(), write });
                self.prebinding.undos.push(undo);
            }
        }
    }

    /// Whether the answer of the write is awaited, or the object as it was written, or the time of the next try.
    fn is_undo_pending(&self, undo: &Undo, now: Timestamp) -> bool {
        let objects = self.snapshot.objects();
        let claim = || objects.claim(&undo.pod.namespace, undo.choice.claim()).map(|claim| &claim.metadata);
        let known = match &undo.choice {
            VolumeChoice::Provision { .. } => claim(),
            VolumeChoice::Bind { volume, .. } => objects.volume(volume).map(|volume| &volume.metadata),
        };
        match &undo.state {
            State::Sent => true,
            State::Unsent => false,
            State::Due(at) => *at > now,
            State::Written(version) => known.is_some_and(|known| is_older(&known.resource_version, version)),
        }
    }

    /// The write that takes it back; `None`: the claim is bound or gone, or another pod makes use of what was written.
    fn taken_back(&self, undo: &Undo) -> Option<VolumeWrite> {
        let name = undo.choice.claim();
        let claim = self.snapshot.objects().claim(&undo.pod.namespace, name)?;
        let in_use = self.prebinding.pods.iter().any(|(uid, prebind)| {
            let namespace = self.pods.get(uid).map(|entry| &entry.info.key.namespace);
            namespace == Some(&undo.pod.namespace)
                && prebind.steps.iter().any(|step| step.choice == undo.choice)
        });
        if claim.is_bound() || in_use {
            return None;
        }
        match &undo.choice {
            VolumeChoice::Provision { .. } => {
                let selected = volume_binding::selected_node(claim)?;
                let write = VolumeWrite::SelectNode { claim: claim.clone(), node: None };
                (selected == &*undo.node).then_some(write)
            }
            VolumeChoice::Bind { volume, .. } => {
                let volume = self.snapshot.objects().volume(volume)?;
                let ours = volume_binding::is_bound_to(volume, claim);
                ours.then(|| VolumeWrite::BindVolume { volume: volume.clone(), claim: None })
            }
        }
    }

    /// What came of a write for a claim.
    pub(super) fn volume_written(
        &mut self,
        pod: &PodKey,
        write: &VolumeWrite,
        outcome: WriteOutcome,
        now: Timestamp,
    ) {
        let of = |choice: &VolumeChoice| write.is_of(choice);
        if let Some(undo) = self.prebinding.undos.iter_mut().find(|undo| undo.pod == *pod && of(&undo.choice))
        {
            undo.state = match outcome {
                WriteOutcome::Written { resource_version } => State::Written(resource_version),
                // It may still arrive.
                WriteOutcome::Failed(_) | WriteOutcome::Refused(_) => {
                    State::Due(now.checked_add(REACH).unwrap_or(now))
                }
            };
            return;
        }
        let Some(prebind) = self.prebinding.pods.get_mut(&pod.uid) else { return };
        let Some(step) = prebind.steps.iter_mut().find(|step| of(&step.choice)) else { return };
        match outcome {
            WriteOutcome::Written { resource_version } => step.state = State::Written(resource_version),
            WriteOutcome::Failed(setback) => {
                let pause = backoff(step.tries).max(setback.wait);
                step.state = State::Due(now.checked_add(pause).unwrap_or(now));
            }
            WriteOutcome::Refused(message) => {
                let message = format!("binding volumes was refused: {message}");
                step.state = State::Unsent;
                if let Some(prebind) = self.prebinding.pods.remove(&pod.uid) {
                    self.fail_prebind(pod, prebind, message, now);
                }
            }
        }
    }

    /// When claims are to be looked at again although nothing has happened.
    pub(super) fn prebind_deadline(&self) -> Option<Timestamp> {
        let due = |state: &State| match state {
            State::Due(at) => Some(*at),
            State::Unsent | State::Sent | State::Written(_) => None,
        };
        let undos = self.prebinding.undos.iter().filter_map(|undo| due(&undo.state));
        let steps = self.prebinding.pods.values().flat_map(|prebind| {
            let overdue = prebind.since.checked_add(PATIENCE).ok();
            prebind.steps.iter().filter_map(move |step| due(&step.state)).chain(overdue)
        });
        undos.chain(steps).min()
    }
}

/// A claim for which a volume is to be made on the node.
fn provision(node: &str, claim: &Arc<PersistentVolumeClaim>, state: &State) -> Progress {
    let known = &claim.metadata.resource_version;
    let selected = volume_binding::selected_node(claim);
    match state {
        // What is known may be older than what was written.
        State::Written(version) if is_older(known, version) => Progress::Awaited,
        State::Written(_) if selected == Some(node) => Progress::Awaited,
        _ if selected == Some(node) => Progress::Adopted(known.clone()),
        State::Written(_) => {
            // The provisioner takes the node away where it can't make the volume.
            let name = &claim.metadata.name;
            Progress::Failed(format!("provisioning failed for PVC {name:?} on node {node:?}"))
        }
        _ => Progress::Write(VolumeWrite::SelectNode { claim: claim.clone(), node: Some(node.into()) }),
    }
}

/// A volume that is to be bound to the claim.
fn bind(volume: &Arc<PersistentVolume>, claim: &Arc<PersistentVolumeClaim>, state: &State) -> Progress {
    let known = &volume.metadata.resource_version;
    let bound = volume_binding::is_bound_to(volume, claim);
    match state {
        State::Written(version) if is_older(known, version) => Progress::Awaited,
        State::Written(_) if bound => Progress::Awaited,
        _ if bound => Progress::Adopted(known.clone()),
        State::Written(_) => {
            Progress::Failed(format!("ClaimRef got reset for pv {:?}", volume.metadata.name))
        }
        _ if volume.spec.claim_ref.is_some() && !volume_binding::is_meant_for(volume, claim) => {
            Progress::Failed(format!("pv {:?} is bound to another claim", volume.metadata.name))
        }
        _ => Progress::Write(VolumeWrite::BindVolume { volume: volume.clone(), claim: Some(claim.clone()) }),
    }
}
