//! A pod whose claims are being bound on its node: what is known of it.

use jiff::{SignedDuration, Timestamp};

use super::{
    reason::{Awaited, PrebindReason},
    step::ClaimStep,
};
use crate::scheduling::model::{name::NodeName, pod::PodKey, prebind_step::PrebindStep};

/// Claims that are not bound after this time are given up (v1.36 `VolumeBindingArgs.bindTimeoutSeconds`).
const PATIENCE: SignedDuration = SignedDuration::from_mins(10);

/// After so long a place is given to others that need it. A volume is mostly made in less.
const HELD: SignedDuration = SignedDuration::from_secs(30);

/// After so long the pod says what it waits for.
const SAID: SignedDuration = SignedDuration::from_secs(10);

/// A pod whose claims are being bound on its node.
#[derive(Debug)]
pub(super) struct PrebindFlow {
    pub(super) pod: PodKey,
    /// Its place among all pods ever seen.
    pub(super) seen: u64,
    pub(super) node: NodeName,
    pub(super) since: Timestamp,
    pub(super) steps: Vec<ClaimStep>,
    /// Whether every claim is bound: the pod waits for others of its gang.
    pub(super) bound: bool,
    /// The first step that is not done.
    pub(super) awaited: Option<usize>,
    /// Whether it was said what the pod waits for.
    pub(super) is_said: bool,
    /// Whether its place is given to others that need it.
    pub(super) yields: bool,
}

impl PrebindFlow {
    /// Since when it holds its place for so long.
    fn after(&self, time: SignedDuration) -> Timestamp {
        self.since.checked_add(time).unwrap_or(Timestamp::MAX)
    }

    /// Whether its claims are given up if they are not bound by now.
    pub(super) fn is_overdue(&self, now: Timestamp) -> bool {
        self.since.checked_add(PATIENCE).is_ok_and(|until| until <= now)
    }

    /// Whether it is to go on although nothing has happened.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.is_overdue(now) || self.steps.iter().any(|step| step.state.due().is_some_and(|at| at <= now))
    }

    /// When it is to go on although nothing has happened.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        let due = self.steps.iter().filter_map(|step| step.state.due());
        due.chain(self.since.checked_add(PATIENCE)).chain(self.held_deadline()).min()
    }

    /// When the pod says what it waits for, or gives its place to others.
    fn held_deadline(&self) -> Option<Timestamp> {
        let said = (!self.is_said).then(|| self.after(SAID));
        said.into_iter().chain((!self.yields).then(|| self.after(HELD))).min()
    }

    /// Whether what it waits for is to be said, or its place to be given to others.
    pub(super) fn is_held_for_long(&self, now: Timestamp) -> bool {
        self.held_deadline().is_some_and(|at| at <= now)
    }

    /// Whether it has held its place for so long that others get it who need it.
    pub(super) fn is_to_yield(&self, now: Timestamp) -> bool {
        self.after(HELD) <= now
    }

    /// Whether a claim of this kind is among its own.
    pub(super) fn has<T: ?Sized>(&self, kind: impl Fn(&PrebindStep) -> Option<&T>) -> bool {
        self.steps.iter().any(|step| kind(&step.choice).is_some())
    }

    /// Whether the pod waits for others than Berth: a volume that is to be bound or made, or anything that takes that long.
    pub(super) fn waits_for_others(&self) -> bool {
        self.is_said || self.has(PrebindStep::volume)
    }

    /// What the pod says while it holds its place.
    pub(super) fn held(&self) -> PrebindReason {
        let (node, since, until) = (self.node.clone(), self.since, self.after(HELD));
        PrebindReason::Held { node, since, until, awaited: self.awaits() }
    }

    /// What the pod says once its place is another's.
    pub(super) fn lost(&self) -> PrebindReason {
        PrebindReason::Lost { node: self.node.clone(), since: self.since, awaited: self.awaits() }
    }

    fn awaits(&self) -> Awaited {
        let step = self.awaited.and_then(|at| self.steps.get(at)).map(|step| &step.choice);
        match step {
            Some(PrebindStep::Volume(choice)) => Awaited::Volume(choice.claim().clone()),
            Some(step) => Awaited::Devices(step.claim().clone()),
            None => Awaited::Gang,
        }
    }
}
