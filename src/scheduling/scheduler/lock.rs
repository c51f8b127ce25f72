//! Node locks: who holds one, whether that one can still be served, and giving back what nobody will.
//!
//! A lock is never taken or given back on the word of a watch that may lag: it goes by compare-and-swap, and a holder that was never
//! seen is read first.

use jiff::{SignedDuration, Timestamp};

use super::{Course, Scheduler, reads::Read};
use crate::{
    device::{Lock, LockOwner},
    scheduling::{
        effect::Effect,
        event::ReleaseOutcome,
        ledger::Commitment,
        line::Step,
        measure::Measure,
        node::{NodeInfo, NodeLock, NodeName, Signature},
        pod::{Ask, Claim, Placer, PodInfo, PodKey, Stage, is_older},
    },
};

/// How long to wait before a lock that could not be given back is given back again.
const RELEASE_PAUSE: SignedDuration = SignedDuration::from_secs(1);

/// What a node's lock means to the pod at the head of its line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Gate {
    /// None is needed.
    Open,
    /// It can be taken.
    Takeable,
    /// Somebody else is being served.
    Shut,
}

/// What is known of a lock's holder that is not among the pods that were seen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stranger {
    /// It is being read.
    Asked,
    /// There is no such pod, or it has ended.
    Absent,
    /// It is there.
    Alive,
}

/// Giving back a node's lock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Releasing {
    /// It is under way.
    UnderWay,
    /// It may have failed; it is looked at again then.
    Pausing(Timestamp),
}

/// A lock that was taken for a pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Held {
    /// For which pod.
    pod: PodKey,
    /// The node's version since then.
    version: String,
    /// Since when.
    since: Timestamp,
    /// Since when by the lock itself, where that is written.
    written: Option<Timestamp>,
}

impl Held {
    /// Whether this is the lock that was taken: it names the pod, or says since when and nothing else.
    fn is(&self, lock: &NodeLock) -> bool {
        is_held_by(&lock.state, &self.pod) || is_since(lock, self.written)
    }
}

/// Whether a lock's holder can still be served.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Holder {
    Alive,
    Dead,
    Unknown,
}

/// Whether this pod holds the lock.
pub(super) fn is_held_by(lock: &Lock, pod: &PodKey) -> bool {
    match lock {
        Lock::Held { owner: Some(owner), .. } => {
            *owner.namespace == *pod.namespace && *owner.name == *pod.name
        }
        _ => false,
    }
}

/// The pod as a lock names it.
fn owner_of(pod: &PodKey) -> LockOwner {
    LockOwner { namespace: pod.namespace.to_string(), name: pod.name.to_string() }
}

/// Whether the lock names nobody and is held since then, where one that is taken here would say no more.
pub(super) fn is_since(lock: &NodeLock, written: Option<Timestamp>) -> bool {
    let then = matches!(lock.state, Lock::Held { owner: None, since } if Some(since) == written);
    then && lock.signature == Signature::Time
}

/// Whom a node's locks name.
fn owners(info: &NodeInfo) -> impl Iterator<Item = (&LockOwner, Timestamp)> {
    info.locks.iter().filter_map(|lock| match &lock.state {
        Lock::Held { owner: Some(owner), since } => Some((owner, *since)),
        _ => None,
    })
}

impl Scheduler {
    pub(super) fn gate(&mut self, info: &NodeInfo, ask: &Ask, pod: &PodKey, now: Timestamp) -> Gate {
        match info.lock(&ask.profile.name) {
            None => Gate::Open,
            // From before a restart, or of a former pod of this name: taken anew, so that it is this one's and fresh.
            Some(lock) if is_held_by(&lock.state, pod) => Gate::Takeable,
            Some(lock) => self.gate_of(&info.name, lock, now),
        }
    }

    /// What a lock means to whoever does not hold it.
    fn gate_of(&mut self, node: &NodeName, lock: &NodeLock, now: Timestamp) -> Gate {
        let Lock::Held { since, .. } = lock.state else { return Gate::Takeable };
        if lock.is_over(now) {
            return Gate::Takeable;
        }
        let owner = self.owner(node, lock);
        match owner.map(|owner| self.holder(node, &owner, since)) {
            Some(Holder::Dead) => Gate::Takeable,
            Some(Holder::Alive | Holder::Unknown) | None => Gate::Shut,
        }
    }

    /// Whether somebody holds a lock of the node.
    pub(super) fn is_locked(&mut self, node: &NodeName, now: Timestamp) -> bool {
        let info = self.snapshot.node(node).map(|state| state.info.clone());
        info.is_some_and(|info| info.locks.iter().any(|lock| self.gate_of(node, lock, now) == Gate::Shut))
    }

    /// Whose lock it is: it names the pod, or was taken here.
    fn owner(&self, node: &NodeName, lock: &NodeLock) -> Option<LockOwner> {
        let Lock::Held { owner, .. } = &lock.state else { return None };
        let ours = || self.held.get(node).filter(|held| held.is(lock)).map(|held| owner_of(&held.pod));
        owner.clone().or_else(ours)
    }

    /// Nobody knows any more of a lock that was taken of this node: it is gone, or the node is.
    pub(super) fn drop_held(&mut self, node: &NodeName) {
        if let Some(held) = self.held.remove(node) {
            self.drop_holder(&owner_of(&held.pod), node);
        }
    }

    fn drop_holder(&mut self, owner: &LockOwner, node: &NodeName) {
        if let Some(nodes) = self.holders.get_mut(owner) {
            nodes.remove(node);
            if nodes.is_empty() {
                self.holders.remove(owner);
            }
        }
    }

    fn holder(&mut self, node: &NodeName, owner: &LockOwner, since: Timestamp) -> Holder {
        let name = (owner.namespace.as_str().into(), owner.name.as_str().into());
        let Some((uid, entry)) = self.by_name.get(&name).and_then(|uid| Some((uid, self.pods.get(uid)?)))
        else {
            return self.stranger(owner, since);
        };
        if entry.info.stage == Stage::Ended {
            return Holder::Dead;
        }
        match self.snapshot.ledger().get(uid).filter(|charge| charge.commitment == Commitment::Bound) {
            Some(charge) if charge.node == *node => Holder::Alive,
            Some(_) => Holder::Dead,
            // One of ours that is not being served, or no longer to be: its lock was taken before a restart or in vain.
            None if entry.info.placer == Placer::Berth => Holder::Dead,
            None => Holder::Alive,
        }
    }

    /// The lock is the pod's, by the answer to its taking or by a read.
    pub(super) fn hold_lock(&mut self, node: &NodeName, pod: &PodKey, version: String, now: Timestamp) {
        let serving = self.lines.get(node).and_then(|line| line.serving.as_ref());
        let written = serving.and_then(|serving| serving.lock_since);
        self.drop_held(node);
        self.holders.entry(owner_of(pod)).or_default().insert(node.clone());
        self.held.insert(node.clone(), Held { pod: pod.clone(), version, since: now, written });
        self.check_held(node, now);
    }

    /// Finds out whether a lock that was taken is still its pod's, on the node as it is now known, unless that is from before.
    pub(super) fn check_held(&mut self, node: &NodeName, now: Timestamp) {
        let (Some(held), Some(state)) = (self.held.get(node), self.snapshot.node(node)) else { return };
        let kept = state.info.locks.iter().any(|lock| held.is(lock));
        if !kept && !is_older(&state.info.resource_version, &held.version) {
            self.measures.push(Measure::LockHold(now.duration_since(held.since)));
            self.drop_held(node);
        }
    }

    /// Whether the pod that is being served here has the lock that it needs. An agent that is asked for another pod between lock and
    /// Binding fails this one and frees the node.
    pub(super) fn has_its_lock(&self, node: &NodeName) -> bool {
        let serving = self.lines.get(node).and_then(|line| line.serving.as_ref());
        let Some(entry) = serving.and_then(|serving| self.pods.get(&serving.uid)) else { return true };
        let Claim::Place(ask) = &entry.info.claim else { return true };
        let needs =
            self.snapshot.node(node).is_some_and(|state| state.info.lock(&ask.profile.name).is_some());
        !needs || self.held.get(node).is_some_and(|held| held.pod == entry.info.key)
    }

    /// Takes the lock once more for the pod that is being served here, when nothing of it can arrive any more.
    pub(super) fn lock_again(&mut self, node: &NodeName, now: Timestamp) {
        match self.fence(node).filter(|at| *at > now) {
            Some(at) => self.set_step(node, Step::Fencing { at }),
            None => self.set_step(node, Step::Relocking { at: now }),
        }
    }

    /// A pod that was never seen may be gone for good, or too new: it is read.
    fn stranger(&mut self, owner: &LockOwner, since: Timestamp) -> Holder {
        match self.strangers.get(&(owner.clone(), since)) {
            Some(Stranger::Absent) => Holder::Dead,
            Some(Stranger::Alive) => Holder::Alive,
            Some(Stranger::Asked) => Holder::Unknown,
            None => {
                self.strangers.insert((owner.clone(), since), Stranger::Asked);
                self.read_holder(owner, since);
                Holder::Unknown
            }
        }
    }

    pub(super) fn holder_read(
        &mut self,
        owner: &LockOwner,
        since: Timestamp,
        found: Option<Box<PodInfo>>,
        now: Timestamp,
    ) {
        let alive = found.as_ref().is_some_and(|pod| pod.stage != Stage::Ended);
        // What it holds counts from now on: its lock may be gone before the watch shows it.
        self.take_in_read(&Read::Holder(owner.clone()), found.into_iter().map(|pod| *pod).collect(), now);
        if let Some(stranger) = self.strangers.get_mut(&(owner.clone(), since)) {
            *stranger = if alive { Stranger::Alive } else { Stranger::Absent };
        }
        self.touch_locked_by(owner);
    }

    /// Keeps in mind whom this node's locks name.
    pub(super) fn note_owners(&mut self, node: &NodeName, info: Option<&NodeInfo>) {
        let known = self.snapshot.node(node).map(|state| state.info.clone());
        for (owner, _) in known.iter().flat_map(|info| owners(info)) {
            self.drop_holder(owner, node);
        }
        for (owner, _) in info.into_iter().flat_map(owners) {
            self.holders.entry(owner.clone()).or_default().insert(node.clone());
        }
        let holders = &self.holders;
        self.strangers.retain(|(owner, _), _| holders.contains_key(owner));
    }

    /// Something is new about a pod that a lock may name.
    pub(super) fn note_holder(&mut self, pod: &PodKey) {
        let owner = owner_of(pod);
        if self.holders.contains_key(&owner) {
            self.strangers.retain(|(stranger, _), _| *stranger != owner);
            self.touch_locked_by(&owner);
        }
    }

    fn touch_locked_by(&mut self, owner: &LockOwner) {
        for node in self.holders.get(owner).into_iter().flatten() {
            self.lines.touch(node);
        }
    }

    /// Gives back the node's locks whose holders will never be served there.
    pub(super) fn tidy(&mut self, node: &NodeName, now: Timestamp) {
        let served = self.lines.get(node).is_some_and(|line| line.serving.is_some());
        let waits = match self.releasing.get(node) {
            Some(Releasing::UnderWay) => true,
            Some(Releasing::Pausing(until)) => *until > now,
            None => false,
        };
        if served || waits || self.course == Course::Draining {
            return;
        }
        self.releasing.remove(node);
        let Some(info) = self.snapshot.node(node).map(|state| state.info.clone()) else { return };
        for lock in &info.locks {
            let Lock::Held { since, .. } = &lock.state else { continue };
            let Some(owner) = self.owner(node, lock) else { continue };
            if self.holder(node, &owner, *since) == Holder::Dead {
                self.releasing.insert(node.clone(), Releasing::UnderWay);
                self.effects.push(Effect::ReleaseLock {
                    node: node.clone(),
                    resource_version: info.resource_version.clone(),
                    profile: lock.profile.clone(),
                });
                return;
            }
        }
    }

    pub(super) fn lock_released(&mut self, node: &NodeName, outcome: ReleaseOutcome, now: Timestamp) {
        match outcome {
            // Until the node is seen without it, or to be gone, it looks as if it were still to be given back.
            ReleaseOutcome::Done => {
                let until = now.checked_add(RELEASE_PAUSE).unwrap_or(now);
                self.releasing.insert(node.clone(), Releasing::Pausing(until));
            }
            ReleaseOutcome::Failed { wait } => {
                let until = now.checked_add(wait.max(RELEASE_PAUSE)).unwrap_or(now);
                self.releasing.insert(node.clone(), Releasing::Pausing(until));
                self.read_node(node);
            }
        }
        self.lines.touch(node);
    }

    /// When this node's lock is to be looked at although nothing has happened.
    pub(super) fn lock_deadlines(&self, node: &NodeName) -> impl Iterator<Item = Timestamp> {
        let waits = self.lines.get(node).is_some_and(|line| !line.waiting.is_empty());
        let info = self.snapshot.node(node).filter(|_| waits).map(|state| state.info.clone());
        let locks = info.map(|info| info.locks.clone()).unwrap_or_default();
        let held = locks.into_iter().filter_map(|lock| lock.expires());
        let pausing = match self.releasing.get(node) {
            Some(Releasing::Pausing(until)) => Some(*until),
            _ => None,
        };
        held.chain(pausing)
    }
}
