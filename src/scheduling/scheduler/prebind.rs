//! What is written for a pod's claims before the pod stands in the line of its node: kube-scheduler's PreBind.
//!
//! A claim is a sequence of writes, each a compare-and-swap, and of what others do between them. No lock is held meanwhile. Where the
//! pod goes elsewhere, what was written is taken back. Nothing is remembered across a restart: what is written leads the pod to the same
//! choice.

mod devices;
mod extended;
pub(super) mod held;
mod touched;
mod undo;
mod volume;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{PodProgress, Scheduler};
use crate::scheduling::{
    decide::blame::Blame,
    effect::{Effect, PrebindWrite, REACH},
    event::WriteOutcome,
    model::{
        message::Message,
        name::{NodeName, Uid},
        pod::PodKey,
        prebind_step::PrebindStep,
    },
    queue::backoff,
};
use touched::Touched;
use undo::Undo;

/// Claims that are not bound after this time are given up (v1.36 `VolumeBindingArgs.bindTimeoutSeconds`).
const PATIENCE: SignedDuration = SignedDuration::from_mins(10);

/// A claim of devices for which so much was written, and that still is not as it should be, is given up.
const MOST_WRITES: u32 = 20;

/// A pod whose claims are being bound on its node.
#[derive(Debug)]
pub(super) struct Prebind {
    node: NodeName,
    since: Timestamp,
    steps: Vec<Step>,
    /// Whether every claim is bound: the pod waits for others of its gang.
    pub(super) bound: bool,
    /// The first step that is not done.
    awaited: Option<usize>,
    /// Whether it was said what the pod waits for.
    is_said: bool,
    /// Whether its place is given to others that need it.
    yields: bool,
}

impl Prebind {
    fn is_overdue(&self, now: Timestamp) -> bool {
        self.since.checked_add(PATIENCE).is_ok_and(|until| until <= now)
    }
}

/// One claim of such a pod.
#[derive(Debug)]
struct Step {
    choice: PrebindStep,
    tries: u32,
    /// Whether a write was sent that gives a claim devices.
    gave: bool,
    /// Whether the pod's status was written.
    stated: bool,
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
enum PrebindProgress {
    /// The claim is bound, and what it is bound to can be used on the node.
    Bound,
    /// A controller or a driver has its turn, or another pod's write.
    Awaited,
    /// It is written already, at this version of the object.
    Adopted(String),
    /// This has to be written.
    Write(PrebindWrite),
    /// The pod can't be placed there.
    Failed(Message),
}

impl PrebindProgress {
    /// The pod can't be placed there, for this reason.
    fn failed(why: impl Into<Message>) -> Self {
        Self::Failed(why.into())
    }
}

/// What is written for claims before their pods stand in line.
#[derive(Debug, Default)]
pub(super) struct Prebinding {
    /// Pods whose claims are being bound.
    pub(super) pods: BTreeMap<Uid, Prebind>,
    /// What was written for claims of pods that went elsewhere.
    undos: Vec<Undo>,
    /// What was written for volumes of pods that have lost their places: it stays until they are placed elsewhere or gone.
    parked: BTreeMap<Uid, Prebind>,
    /// Those of the pods whose claims may go further.
    touched: Touched,
    /// How many percent of the cluster's cards the pods of a namespace may hold without a container.
    held_percent: u32,
}

impl Prebinding {
    /// No claim is being bound; so many percent of the cluster's cards may be held without a container by the pods of one namespace.
    pub(super) fn new(held_percent: u32) -> Self {
        Self { held_percent, ..Self::default() }
    }

    /// The pod is bound, with its volumes.
    pub(super) fn end_parked(&mut self, pod: &Uid) {
        self.parked.remove(pod);
    }
}

impl Scheduler {
    /// Binds the claims of a pod that is decided; once they are bound, and those of its gang are, it joins the line of its node.
    pub(super) fn prebind(&mut self, uid: &Uid, node: NodeName, steps: Vec<PrebindStep>, now: Timestamp) {
        self.begin_prebind(uid, node, steps, now);
        self.advance_prebind(uid, now);
        self.permit(now);
    }

    /// As [`Self::prebind`]; nothing is written before the pod's turn comes.
    pub(super) fn begin_prebind(
        &mut self,
        uid: &Uid,
        node: NodeName,
        steps: Vec<PrebindStep>,
        now: Timestamp,
    ) {
        let tries = self.take_up_parked(uid, &node, &steps);
        let step = |choice| {
            let tries = u32::from(tries.contains(&choice));
            Step { choice, tries, gave: false, stated: false, state: State::Unsent }
        };
        let steps = steps.into_iter().map(step).collect();
        self.queue.set_progress(uid, PodProgress::Prebinding(node.clone()));
        let prebind =
            Prebind { node, since: now, steps, bound: false, awaited: None, is_said: false, yields: false };
        self.prebinding.pods.insert(uid.clone(), prebind);
        self.prebinding.touched.add(uid);
    }

    /// Takes the claims of pods as far as they go, of those for which something has changed or a time has come.
    pub(super) fn advance_prebinds(&mut self, now: Timestamp) {
        // What is taken back of a claim comes to an end before the claim is used again.
        self.advance_undos(now);
        for uid in self.prebinding.take_touched(now) {
            self.advance_prebind(&uid, now);
        }
        self.permit(now);
        self.advance_undos(now);
    }

    fn advance_prebind(&mut self, uid: &Uid, now: Timestamp) {
        let Some(mut prebind) = self.prebinding.pods.remove(uid) else { return };
        let Some(key) = self.pods.get(uid).map(|entry| entry.info.key.clone()) else { return };
        let overdue = prebind.is_overdue(now);
        prebind.awaited = None;
        for (at, step) in prebind.steps.iter_mut().enumerate() {
            step.state.come_due(now);
            match self.progress(&key, &prebind.node, step) {
                PrebindProgress::Bound => continue,
                PrebindProgress::Awaited if overdue => {
                    let message = timed_out(&step.choice, &prebind.node);
                    return self.fail_prebind(&key, prebind, message, now);
                }
                PrebindProgress::Awaited => {}
                PrebindProgress::Adopted(version) => step.state = State::Written(version),
                PrebindProgress::Write(write) => {
                    (step.state, step.tries) = (State::Sent, step.tries + 1);
                    step.gave |= write.gives_devices();
                    step.stated |= write.is_of_pod();
                    self.outbox.effects.push(Effect::Prebind { pod: key.clone(), write });
                }
                PrebindProgress::Failed(message) => return self.fail_prebind(&key, prebind, message, now),
            }
            prebind.awaited = prebind.awaited.or(Some(at));
        }
        prebind.bound = prebind.awaited.is_none();
        self.prebinding.pods.insert(uid.clone(), prebind);
    }

    /// The pods whose claims are bound, and those of their gangs, join the lines of their nodes, in the order in which they were seen.
    fn permit(&mut self, now: Timestamp) {
        let bound = self.prebinding.pods.iter().filter(|(_, prebind)| prebind.bound);
        let gangs = self.gang_view();
        let bound = bound.filter(|(uid, _)| gangs.is_permitted(uid));
        let seen = |uid: &Uid| self.pods.get(uid).map(|entry| entry.seen);
        let mut permitted: Vec<(Option<u64>, Uid, NodeName)> =
            bound.map(|(uid, prebind)| (seen(uid), uid.clone(), prebind.node.clone())).collect();
        permitted.sort();
        for (_, uid, node) in permitted {
            self.prebinding.pods.remove(&uid);
            self.note_decided(&uid);
            self.join_line(&uid, &node, now);
        }
    }

    /// What is to be done for one claim, as everything is known now.
    fn progress(&self, pod: &PodKey, node: &NodeName, step: &Step) -> PrebindProgress {
        let Some(state) = self.snapshot.node(node) else {
            return PrebindProgress::failed(Message::with_own(
                format!("node {node} is gone"),
                "the node is gone",
            ));
        };
        match &step.choice {
            PrebindStep::Volume(choice) => self.volume_progress(pod, state, (choice, &step.state)),
            PrebindStep::Devices(_) | PrebindStep::Extended(_) if step.tries > MOST_WRITES => {
                PrebindProgress::failed(format!("resourceclaim {:?} changes too often", step.choice.claim()))
            }
            PrebindStep::Devices(choice) => self.claim_progress(pod, state, (choice, &step.state)),
            PrebindStep::Extended(choice) => self.extended_progress(pod, state, (choice, step)),
        }
    }

    fn fail_prebind(&mut self, pod: &PodKey, prebind: Prebind, message: Message, now: Timestamp) {
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

    /// What came of a write for a claim.
    pub(super) fn prebound(
        &mut self,
        pod: &PodKey,
        write: &PrebindWrite,
        outcome: WriteOutcome,
        now: Timestamp,
    ) {
        if self.note_undone(pod, write, &outcome, now) {
            return;
        }
        let Some(prebind) = self.prebinding.pods.get_mut(&pod.uid) else { return };
        self.prebinding.touched.add(&pod.uid);
        let Some(step) = prebind.steps.iter_mut().find(|step| write.is_of(&step.choice)) else { return };
        match outcome {
            WriteOutcome::Written { resource_version } => step.state = State::Written(resource_version),
            WriteOutcome::Failed(setback) => {
                let pause = backoff(step.tries).max(setback.wait);
                step.state = State::Due(now.checked_add(pause).unwrap_or(now));
            }
            WriteOutcome::Refused(message) => {
                let message = refused(&step.choice, &message);
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
            let held = prebind.held_deadline();
            prebind.steps.iter().filter_map(move |step| due(&step.state)).chain(overdue).chain(held)
        });
        undos.chain(steps).min()
    }
}

/// The pod's message when a claim was not bound in time.
fn timed_out(step: &PrebindStep, node: &str) -> Message {
    match step {
        PrebindStep::Volume(_) => Message::with_own(
            format!("binding volumes: timed out on node {node}"),
            "binding volumes: timed out",
        ),
        PrebindStep::Devices(_) | PrebindStep::Extended(_) => Message::with_own(
            format!("resourceclaim {:?}: timed out on node {node}", step.claim()),
            format!("resourceclaim {:?}: timed out", step.claim()),
        ),
    }
}

/// The pod's message when the API server refuses a write. Its answer may name a volume or a node.
fn refused(step: &PrebindStep, message: &str) -> Message {
    match step {
        PrebindStep::Volume(_) => Message::with_own(
            format!("binding volumes was refused: {message}"),
            "binding volumes was refused",
        ),
        PrebindStep::Devices(_) | PrebindStep::Extended(_) => Message::with_own(
            format!("resourceclaim {:?}: the write was refused: {message}", step.claim()),
            format!("resourceclaim {:?}: the write was refused", step.claim()),
        ),
    }
}
