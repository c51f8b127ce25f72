//! The line of a node: the pods that wait for it, and the one that is locked and bound.

use std::collections::{HashMap, VecDeque};

use jiff::{SignedDuration, Timestamp};

use crate::scheduling::{
    model::{
        name::Uid,
        outcome::{REACH, Setback},
    },
    world::pod_lister::PodLister,
};

/// A wait of this length is not reported: a device plugin takes its time. After it, other nodes come first.
pub(super) const USUAL: SignedDuration = SignedDuration::from_secs(10);

/// How far the pod that is served has got.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum NodeFlowStep {
    /// The lock is being taken; once it is the pod's, the pod is decided once more.
    Locking,
    /// Whether the lock was taken is not known; the node is being read.
    DoubtingLock,
    /// The lock was not taken; it is tried again then, on the node as it then is.
    Relocking {
        /// When.
        at: Timestamp,
    },
    /// The Binding is under way.
    Binding,
    /// What came of the Binding is not known; the pod is being read.
    DoubtingBinding {
        /// Since when: what is read may be as old as this.
        since: Timestamp,
    },
    /// The pod is given up here as soon as no Binding of it can arrive any more: it is read once more then.
    Fencing {
        /// When.
        at: Timestamp,
    },
    /// The pod is not bound after all; the same Binding is sent again then.
    Rebinding {
        /// When.
        at: Timestamp,
    },
}

/// The pod that is locked and bound.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct ServedPod {
    /// Which pod.
    pub(super) uid: Uid,
    /// How far it has got.
    pub(super) step: NodeFlowStep,
    /// How many Bindings were sent for it.
    pub(super) bindings: u32,
    /// When the outcome of its Binding was last unknown.
    pub(super) doubted: Option<Timestamp>,
    /// The API server asks for no write before then.
    not_before: Option<Timestamp>,
    /// Since when its lock says that it is held, in whole seconds, as locks are written; `None`: it takes none.
    pub(super) lock_since: Option<Timestamp>,
    /// When it joined the line; `None`: how long it waited was measured already.
    joined: Option<Timestamp>,
}

/// A pod that waits.
#[derive(Clone, Debug, Eq, PartialEq)]
struct WaitingPod {
    uid: Uid,
    /// When it joined the line; `None`: how long it waited was measured already.
    joined: Option<Timestamp>,
}

/// Since when the pod at the head of the line could have been served.
#[derive(Clone, Debug, Eq, PartialEq)]
struct HeadWait {
    uid: Uid,
    since: Timestamp,
    /// How often it was reported.
    reported: u32,
}

impl HeadWait {
    /// When it is reported the next time: each time after twice as long.
    fn due(&self) -> Option<Timestamp> {
        self.since.checked_add(USUAL.checked_mul(1_i32.checked_shl(self.reported)?)?).ok()
    }
}

/// One node's line.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Who waits, the next first.
    waiting: VecDeque<WaitingPod>,
    /// Who is locked and bound.
    pub(super) served: Option<ServedPod>,
    /// How often in a row the lock could not be taken.
    pub(super) refusals: u32,
    head_wait: Option<HeadWait>,
}

impl Line {
    /// How many pods wait or are served.
    pub(super) fn length(&self) -> usize {
        self.waiting.len() + usize::from(self.served.is_some())
    }

    /// Whether pods wait.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The pods that wait, the next first.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Uid> {
        self.waiting.iter().map(|pod| &pod.uid)
    }

    /// The pod that is served, and those that wait, the next first.
    pub(super) fn pods(&self) -> impl Iterator<Item = &Uid> {
        self.served.iter().map(|served| &served.uid).chain(self.waiting())
    }

    /// The pod that is served next.
    pub(super) fn head(&self) -> Option<&Uid> {
        self.waiting.front().map(|pod| &pod.uid)
    }

    /// Whether this pod is locked and bound.
    pub(super) fn serves(&self, uid: &Uid) -> bool {
        self.served.as_ref().is_some_and(|served| served.uid == *uid)
    }

    /// Puts a pod into the line. Namespaces take turns, so no number of pods of one makes those of another wait for all of them.
    pub(super) fn join(&mut self, uid: Uid, joined: Option<Timestamp>, pods: &dyn PodLister) {
        let namespace = |uid: &Uid| pods.pod(uid).map(|pod| &pod.key.namespace);
        let own = namespace(&uid);
        let round = self.waiting().filter(|other| namespace(other) == own).count();
        let mut rounds: HashMap<_, usize> = HashMap::new();
        let comes_later = |other: &Uid| {
            let number = rounds.entry(namespace(other)).or_default();
            *number += 1;
            *number > round + 1
        };
        let place = self.waiting().position(comes_later).unwrap_or(self.waiting.len());
        self.waiting.insert(place, WaitingPod { uid, joined });
    }

    /// Takes a pod out, also when it is served.
    pub(super) fn leave(&mut self, uid: &Uid) {
        self.waiting.retain(|pod| pod.uid != *uid);
        self.served.take_if(|served| served.uid == *uid);
        if self.length() == 0 {
            *self = Self::default();
        }
    }

    /// When a pod that waits joined the line; `None`: how long it waited was measured already.
    pub(super) fn joined(&self, uid: &Uid) -> Option<Timestamp> {
        self.waiting.iter().find(|pod| pod.uid == *uid)?.joined
    }

    /// Takes out all pods that wait, and returns them.
    pub(super) fn dismiss(&mut self) -> Vec<Uid> {
        let waiting = std::mem::take(&mut self.waiting).into_iter().map(|pod| pod.uid).collect();
        if self.length() == 0 {
            *self = Self::default();
        }
        waiting
    }

    /// The pod at the head is served from now on.
    pub(super) fn begin(&mut self, step: NodeFlowStep, lock_since: Option<Timestamp>) {
        self.head_wait = None;
        self.served = self.waiting.pop_front().map(|WaitingPod { uid, joined }| ServedPod {
            uid,
            step,
            bindings: 0,
            doubted: None,
            not_before: None,
            lock_since,
            joined,
        });
    }

    /// Puts the pod that is served back to the head of the line.
    pub(super) fn put_back(&mut self) {
        if let Some(ServedPod { uid, joined, .. }) = self.served.take() {
            self.waiting.push_front(WaitingPod { uid, joined });
        }
    }

    /// The pod that is served has got so far.
    pub(super) fn set_step(&mut self, step: NodeFlowStep) {
        if let Some(served) = self.served.as_mut() {
            served.step = step;
        }
    }

    /// The API server asks for no write for so long.
    pub(super) fn wait_out(&mut self, setback: &Setback, now: Timestamp) {
        if let Some(served) = self.served.as_mut() {
            served.not_before = now.checked_add(setback.wait).ok();
        }
    }

    /// When the next try may be, after a pause and as the API server asks.
    pub(super) fn again_at(&self, pause: SignedDuration, now: Timestamp) -> Timestamp {
        let not_before = self.served.as_ref().and_then(|served| served.not_before);
        now.checked_add(pause).unwrap_or(now).max(not_before.unwrap_or(now))
    }

    /// Until when a Binding of the pod that is served can still arrive although it was in doubt.
    pub(super) fn fence(&self) -> Option<Timestamp> {
        self.served.as_ref()?.doubted?.checked_add(REACH).ok()
    }

    /// How long the pod that is served has waited, the first time that this is asked.
    pub(super) fn take_wait(&mut self, now: Timestamp) -> Option<SignedDuration> {
        Some(now.duration_since(self.served.as_mut()?.joined.take()?))
    }

    /// The head of the line is not served; returns whether that is to be reported now.
    pub(super) fn note_wait(&mut self, uid: &Uid, now: Timestamp) -> bool {
        let known = self.head_wait.take().filter(|wait| wait.uid == *uid);
        let mut wait = known.unwrap_or_else(|| HeadWait { uid: uid.clone(), since: now, reported: 0 });
        let due = wait.due().is_some_and(|at| at <= now);
        wait.reported += u32::from(due);
        self.head_wait = Some(wait);
        due
    }

    /// Nothing keeps the line from being served.
    pub(super) fn end_wait(&mut self) {
        self.head_wait = None;
    }

    /// Since when the head of the line could have been served.
    pub(super) fn waits_since(&self) -> Option<Timestamp> {
        self.head_wait.as_ref().map(|wait| wait.since)
    }

    /// When it is reported again that the head of the line waits.
    pub(super) fn wait_deadline(&self) -> Option<Timestamp> {
        self.head_wait.as_ref()?.due()
    }
}
