//! Node locks: who holds one, whether that one can still be served, and giving back what nobody will.
//!
//! A lock is never taken or given back on the word of a watch that may lag: it goes by compare-and-swap, and a holder that was never
//! seen is read first.

use jiff::{SignedDuration, Timestamp};

use super::{
    Course, Scheduler,
    locks::{Held, Releasing, Stranger, is_held_by, is_since, owner_of},
    reads::Read,
};
use crate::{
    device::{Lock, LockOwner},
    scheduling::{
        effect::Effect,
        event::ReleaseOutcome,
        model::{
            measure::Measure,
            name::NodeName,
            node::{NodeInfo, NodeLock},
            pod::{Ask, Claim, Placer, PodInfo, PodKey, Stage, is_older},
        },
        node_flow::line::Step,
        world::ledger::Commitment,
    },
};

/// How long to wait before a lock that could not be given back is given back again.
const RELEASE_PAUSE: SignedDuration = SignedDuration::from_secs(1);

/// What a node's locks mean to the pod at the head of its line.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Gate {
    /// None is needed.
    Open,
    /// Those that are needed can be taken.
    Takeable,
    /// Somebody else is being served.
    Shut,
}

/// Whether a lock's holder can still be served.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Holder {
    Alive,
    Dead,
    Unknown,
}

impl Scheduler {
    pub(super) fn gate(&mut self, info: &NodeInfo, ask: &Ask, pod: &PodKey, now: Timestamp) -> Gate {
        let gates = info.locks_for(ask).map(|lock| {
            // From before a restart, or of a former pod of this name: taken anew, so that it is this one's and fresh.
            let own = is_held_by(&lock.state, pod);
            if own { Gate::Takeable } else { self.gate_of(&info.name, lock, now) }
        });
        gates.max().unwrap_or(Gate::Open)
    }

    /// What a lock means to whoever does not hold it.
    fn gate_of(&mut self, node: &NodeName, lock: &NodeLock, now: Timestamp) -> Gate {
        let Lock::Held { since, .. } = lock.state else { return Gate::Takeable };
        if lock.is_over(now) {
            return Gate::Takeable;
        }
        let owner = self.locks.owner(node, lock);
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

    fn holder(&mut self, node: &NodeName, owner: &LockOwner, since: Timestamp) -> Holder {
        let Some((uid, entry)) = self.pods.named(&owner.namespace, &owner.name) else {
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

    /// The locks are the pod's, by the answer to its taking or by a read.
    pub(super) fn hold_lock(&mut self, node: &NodeName, pod: &PodKey, version: String, now: Timestamp) {
        let serving = self.lines.get(node).and_then(|line| line.serving.as_ref());
        let written = serving.and_then(|serving| serving.lock_since);
        let profiles =
            self.snapshot.ledger().get(&pod.uid).map(|charge| charge.profiles().cloned().collect());
        let profiles = profiles.unwrap_or_default();
        self.locks.hold(node, Held { pod: pod.clone(), profiles, version, since: now, written });
        self.check_held(node, now);
    }

    /// Finds out whether the locks that were taken are still their pod's, on the node as it is now known, unless that is from before.
    pub(super) fn check_held(&mut self, node: &NodeName, now: Timestamp) {
        let (Some(held), Some(state)) = (self.locks.held(node), self.snapshot.node(node)) else { return };
        let kept = held.is_kept(&state.info);
        if !kept && !is_older(&state.info.resource_version, &held.version) {
            self.outbox.measures.push(Measure::LockHold(now.duration_since(held.since)));
            self.locks.drop_held(node);
        }
    }

    /// Whether the pod that is being served here has the locks that it needs. An agent that is asked for another pod between lock and
    /// Binding fails this one and frees the node.
    pub(super) fn has_its_lock(&self, node: &NodeName) -> bool {
        let serving = self.lines.get(node).and_then(|line| line.serving.as_ref());
        let Some(entry) = serving.and_then(|serving| self.pods.get(&serving.uid)) else { return true };
        let Claim::Place(ask) = &entry.info.claim else { return true };
        let needs = |info: &NodeInfo| info.locks_for(ask).next().is_some();
        let needs = self.snapshot.node(node).is_some_and(|state| needs(&state.info));
        !needs || self.locks.held(node).is_some_and(|held| held.pod == entry.info.key)
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
        match self.locks.stranger(owner, since) {
            Some(Stranger::Absent) => Holder::Dead,
            Some(Stranger::Alive) => Holder::Alive,
            Some(Stranger::Asked) => Holder::Unknown,
            None => {
                self.locks.set_stranger(owner, since, Stranger::Asked);
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
        if self.locks.stranger(owner, since).is_some() {
            let stranger = if alive { Stranger::Alive } else { Stranger::Absent };
            self.locks.set_stranger(owner, since, stranger);
        }
        self.touch_locked_by(owner);
    }

    /// Keeps in mind whom this node's locks name.
    pub(super) fn note_owners(&mut self, node: &NodeName, info: Option<&NodeInfo>) {
        let before = self.snapshot.node(node).map(|state| state.info.clone());
        self.locks.note_owners(node, before.as_deref(), info);
    }

    /// Keeps in mind that another scheduler has a lock of this node. That the lock is free again can be seen before the pod that was bound
    /// under it, since nodes and pods are watched apart.
    pub(super) fn note_foreign_lock(&mut self, info: &NodeInfo) {
        let before = self.snapshot.node(&info.name).map(|state| state.info.clone());
        // A lock is judged when it is new: later its pod may be gone.
        let is_known = |lock: &NodeLock| before.as_ref().is_some_and(|before| before.locks.contains(lock));
        if info.locks.iter().any(|lock| !is_known(lock) && self.is_foreign(&info.name, lock)) {
            self.locks.note_foreign(&info.name);
        }
    }

    fn is_foreign(&self, node: &NodeName, lock: &NodeLock) -> bool {
        let serving = self.lines.get(node).and_then(|line| line.serving.as_ref());
        let is_ours = is_since(lock, serving.and_then(|serving| serving.lock_since));
        if is_ours || !matches!(lock.state, Lock::Held { .. }) {
            return false;
        }
        let owner = self.locks.owner(node, lock);
        let holder = owner.and_then(|owner| self.pods.named(&owner.namespace, &owner.name));
        holder.is_none_or(|(_, entry)| entry.info.placer == Placer::Another)
    }

    /// Something is new about a pod that a lock may name.
    pub(super) fn note_holder(&mut self, pod: &PodKey) {
        let owner = owner_of(pod);
        if self.locks.note_news(&owner) {
            self.touch_locked_by(&owner);
        }
    }

    fn touch_locked_by(&mut self, owner: &LockOwner) {
        for node in self.locks.of(owner) {
            self.lines.touch(node);
        }
    }

    /// Gives back the node's locks whose holders will never be served there.
    pub(super) fn tidy(&mut self, node: &NodeName, now: Timestamp) {
        let served = self.lines.get(node).is_some_and(|line| line.serving.is_some());
        let waits = match self.locks.releasing(node) {
            Some(Releasing::UnderWay) => true,
            Some(Releasing::Pausing(until)) => until > now,
            None => false,
        };
        if served || waits || self.course == Course::Draining {
            return;
        }
        self.locks.set_releasing(node, None);
        let Some(info) = self.snapshot.node(node).map(|state| state.info.clone()) else { return };
        let dead = info.locks.iter().filter(|lock| self.is_held_by_the_dead(node, lock));
        let locks: Vec<_> = dead.map(|lock| lock.name.clone()).collect();
        if !locks.is_empty() {
            self.locks.set_releasing(node, Some(Releasing::UnderWay));
            let (node, resource_version) = (node.clone(), info.resource_version.clone());
            self.outbox.effects.push(Effect::ReleaseLock { node, resource_version, locks });
        }
    }

    fn is_held_by_the_dead(&mut self, node: &NodeName, lock: &NodeLock) -> bool {
        let Lock::Held { since, .. } = lock.state else { return false };
        let owner = self.locks.owner(node, lock);
        owner.is_some_and(|owner| self.holder(node, &owner, since) == Holder::Dead)
    }

    pub(super) fn lock_released(&mut self, node: &NodeName, outcome: ReleaseOutcome, now: Timestamp) {
        match outcome {
            // Until the node is seen without it, or to be gone, it looks as if it were still to be given back.
            ReleaseOutcome::Done => {
                let until = now.checked_add(RELEASE_PAUSE).unwrap_or(now);
                self.locks.set_releasing(node, Some(Releasing::Pausing(until)));
            }
            ReleaseOutcome::Failed { wait } => {
                let until = now.checked_add(wait.max(RELEASE_PAUSE)).unwrap_or(now);
                self.locks.set_releasing(node, Some(Releasing::Pausing(until)));
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
        let pausing = match self.locks.releasing(node) {
            Some(Releasing::Pausing(until)) => Some(until),
            _ => None,
        };
        held.chain(pausing)
    }
}
