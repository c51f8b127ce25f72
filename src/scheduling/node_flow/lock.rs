//! The locks of a node: who holds one, whether that one can still be served, and giving back what nobody will.
//!
//! A lock is never taken or given back on the word of a watch that may lag: it goes by compare-and-swap, and a holder that was never
//! seen is read first.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::{request::NodeFlowRequest, view::NodeView};
use crate::{
    device::{Lock, LockName, LockOwner, ProfileName},
    scheduling::{
        model::{
            measure::Measure,
            name::Uid,
            node::{NodeInfo, NodeLock, Signature},
            outcome::{REACH, ReleaseOutcome},
            pod::{Ask, Placer, PodKey, Stage, is_older},
        },
        world::ledger::{Charge, Commitment},
    },
};

/// How long to wait before locks that could not be given back are given back again.
const RELEASE_PAUSE: SignedDuration = SignedDuration::from_secs(1);

/// What a node's locks mean to the pod at the head of its line.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum LockState {
    /// The pod needs none.
    NotNeeded,
    /// Those that it needs can be taken.
    Available,
    /// Another pod is being served.
    Held,
}

/// Whether a lock's holder can still be served.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum HolderState {
    Alive,
    Dead,
    Unknown,
}

/// What is known of a lock's holder that is not among the pods that were seen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum UnseenHolder {
    /// It is being read.
    BeingRead,
    /// There is no such pod, or it has ended.
    Absent,
    /// It is there.
    Alive,
}

/// How far giving locks back has got.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum LockRelease {
    /// It is under way.
    UnderWay,
    /// It may have failed; the node is looked at again then.
    Pausing(Timestamp),
}

/// Whether another scheduler has had a lock of the node since its pods were last read.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum ForeignLock {
    #[default]
    Unseen,
    Seen,
}

/// The locks that were taken for a pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct TakenLock {
    /// For which pod.
    pub(super) pod: PodKey,
    /// In which dialects the pod was decided; not each needs a lock.
    pub(super) profiles: Vec<ProfileName>,
    /// The node's version since then.
    pub(super) version: String,
    /// Since when.
    pub(super) since: Timestamp,
    /// Since when by the locks themselves, where that is written.
    pub(super) written: Option<Timestamp>,
}

impl TakenLock {
    /// Whether the node still bears each lock that was taken.
    fn is_kept(&self, info: &NodeInfo) -> bool {
        let mut locks = info.locks_of(&self.profiles).peekable();
        locks.peek().is_some() && locks.all(|lock| self.is(lock))
    }

    /// Whether this is a lock that was taken: it names the pod, or says since when and nothing else.
    fn is(&self, lock: &NodeLock) -> bool {
        is_held_by(&lock.state, &self.pod) || is_since(lock, self.written)
    }
}

/// What is known of a node's locks.
#[derive(Debug, Default)]
pub(super) struct NodeLocks {
    /// Those that were taken and are not known to have been lost.
    taken: Option<TakenLock>,
    release: Option<LockRelease>,
    /// The node's version that a release was sent against, and until when that may take effect, unless it is known to have.
    releasable: Option<(String, Timestamp)>,
    foreign: ForeignLock,
    /// Holders that are not among the pods that were seen, by name and by since when they hold their lock.
    unseen: BTreeMap<(LockOwner, Timestamp), UnseenHolder>,
    /// The pods that the locks name.
    named: BTreeSet<LockOwner>,
}

impl NodeLocks {
    /// Whether nothing is remembered.
    pub(super) fn is_empty(&self) -> bool {
        let Self { taken, release, releasable, foreign, unseen, named } = self;
        let foreign = *foreign == ForeignLock::Seen;
        taken.is_none()
            && release.is_none()
            && releasable.is_none()
            && !foreign
            && unseen.is_empty()
            && named.is_empty()
    }

    /// The pods that the locks name.
    pub(super) fn named(&self) -> &BTreeSet<LockOwner> {
        &self.named
    }

    /// What the locks mean to a pod that asks for this. Holders of which nothing is known are read.
    pub(super) fn state_for(
        &mut self,
        (pod, ask): (&PodKey, &Ask),
        view: &NodeView<'_>,
        requests: &mut Vec<NodeFlowRequest>,
    ) -> LockState {
        let locks = view.info.into_iter().flat_map(|info| info.locks_for(ask));
        let states = locks.map(|lock| {
            // From before a restart, or of a former pod of this name: taken anew, so that it is this one's and fresh.
            let own = is_held_by(&lock.state, pod);
            if own { LockState::Available } else { self.state_of(lock, view, requests) }
        });
        states.max().unwrap_or(LockState::NotNeeded)
    }

    /// What a lock means to any pod that does not hold it.
    fn state_of(
        &mut self,
        lock: &NodeLock,
        view: &NodeView<'_>,
        requests: &mut Vec<NodeFlowRequest>,
    ) -> LockState {
        let Lock::Held { since, .. } = lock.state else { return LockState::Available };
        if lock.is_over(view.now) {
            return LockState::Available;
        }
        let owner = self.owner(lock);
        match owner.map(|owner| self.holder(&owner, since, view, requests)) {
            Some(HolderState::Dead) => LockState::Available,
            Some(HolderState::Alive | HolderState::Unknown) | None => LockState::Held,
        }
    }

    /// Whether any lock of the node is held.
    pub(super) fn are_held(&mut self, view: &NodeView<'_>, requests: &mut Vec<NodeFlowRequest>) -> bool {
        let mut locks = view.info.into_iter().flat_map(|info| &info.locks.needed);
        locks.any(|lock| self.state_of(lock, view, requests) == LockState::Held)
    }

    /// Whose lock it is: it names the pod, or was taken here.
    fn owner(&self, lock: &NodeLock) -> Option<LockOwner> {
        let Lock::Held { owner, .. } = &lock.state else { return None };
        let ours = || self.taken.as_ref().filter(|taken| taken.is(lock)).map(|taken| owner_of(&taken.pod));
        owner.clone().or_else(ours)
    }

    fn holder(
        &mut self,
        owner: &LockOwner,
        since: Timestamp,
        view: &NodeView<'_>,
        requests: &mut Vec<NodeFlowRequest>,
    ) -> HolderState {
        let Some(pod) = view.holder(owner) else { return self.unseen_holder(owner, since, requests) };
        if pod.stage == Stage::Ended {
            return HolderState::Dead;
        }
        match view.ledger.get(&pod.key.uid).filter(|charge| charge.commitment == Commitment::Bound) {
            Some(charge) if charge.node == *view.name => HolderState::Alive,
            Some(_) => HolderState::Dead,
            // One of ours that is not being served, or no longer to be: its lock was taken before a restart or in vain.
            None if pod.placer == Placer::Berth => HolderState::Dead,
            None => HolderState::Alive,
        }
    }

    /// A pod that was never seen may be gone for good, or too new: it is read.
    fn unseen_holder(
        &mut self,
        owner: &LockOwner,
        since: Timestamp,
        requests: &mut Vec<NodeFlowRequest>,
    ) -> HolderState {
        match self.unseen.get(&(owner.clone(), since)) {
            Some(UnseenHolder::Absent) => HolderState::Dead,
            Some(UnseenHolder::Alive) => HolderState::Alive,
            Some(UnseenHolder::BeingRead) => HolderState::Unknown,
            None => {
                self.unseen.insert((owner.clone(), since), UnseenHolder::BeingRead);
                requests.push(NodeFlowRequest::ReadHolder { owner: owner.clone(), since });
                HolderState::Unknown
            }
        }
    }

    /// A holder that was never seen was read.
    pub(super) fn note_read(&mut self, owner: &LockOwner, since: Timestamp, alive: bool) {
        if let Some(known) = self.unseen.get_mut(&(owner.clone(), since)) {
            *known = if alive { UnseenHolder::Alive } else { UnseenHolder::Absent };
        }
    }

    /// Something is new about this pod: what was read of it no longer counts.
    pub(super) fn forget_unseen(&mut self, owner: &LockOwner) {
        self.unseen.retain(|(unseen, _), _| unseen != owner);
    }

    /// The locks are the pod's, by the answer to its taking or by a read. Returns how long they were, if they are lost again already.
    pub(super) fn take(&mut self, taken: TakenLock, view: &NodeView<'_>) -> Option<Measure> {
        self.taken = Some(taken);
        let lost = self.check_taken(view);
        self.note_named(view);
        lost
    }

    /// Finds out whether the locks that were taken are still their pod's, on the node as it is now known, unless that is from before.
    fn check_taken(&mut self, view: &NodeView<'_>) -> Option<Measure> {
        let (taken, info) = (self.taken.as_ref()?, view.info?);
        if taken.is_kept(info) || is_older(&info.resource_version, &taken.version) {
            return None;
        }
        let taken = self.taken.take()?;
        Some(Measure::LockHold(view.now.duration_since(taken.since)))
    }

    /// Whether the locks were taken for this pod and are not known to have been lost.
    pub(super) fn are_taken_for(&self, pod: &PodKey) -> bool {
        self.taken.as_ref().is_some_and(|taken| taken.pod == *pod)
    }

    /// The node was seen. Returns how long locks were a pod's that are so no longer. `served_since`: since when a lock that is being taken
    /// says that it is held.
    pub(super) fn see_node(
        &mut self,
        before: Option<&NodeInfo>,
        served_since: Option<Timestamp>,
        view: &NodeView<'_>,
    ) -> Option<Measure> {
        // A lock is judged when it is new: later its pod may be gone.
        let is_known = |lock: &NodeLock| before.is_some_and(|before| before.locks.needed.contains(lock));
        let mut locks = view.info.into_iter().flat_map(|info| &info.locks.needed);
        if locks.any(|lock| !is_known(lock) && self.is_foreign(lock, served_since, view)) {
            // That the lock is free again can be seen before the pod that was bound under it, since nodes and pods are watched separately.
            self.foreign = ForeignLock::Seen;
        }
        let lost = self.check_taken(view);
        self.note_named(view);
        lost
    }

    fn is_foreign(&self, lock: &NodeLock, served_since: Option<Timestamp>, view: &NodeView<'_>) -> bool {
        if is_since(lock, served_since) || !matches!(lock.state, Lock::Held { .. }) {
            return false;
        }
        let holder = self.owner(lock).and_then(|owner| view.holder(&owner));
        holder.is_none_or(|pod| pod.placer == Placer::Another)
    }

    fn note_named(&mut self, view: &NodeView<'_>) {
        let locks = view.info.into_iter().flat_map(|info| &info.locks.needed);
        let owners = locks.filter_map(|lock| match &lock.state {
            Lock::Held { owner, .. } => owner.clone(),
            Lock::Free | Lock::Malformed { .. } => None,
        });
        self.named = owners.chain(self.taken.as_ref().map(|taken| owner_of(&taken.pod))).collect();
        let named = &self.named;
        self.unseen.retain(|(owner, _), _| named.contains(owner));
    }

    /// The pods of the node are to be read: whether another scheduler has had a lock there since the last time.
    pub(super) fn take_foreign(&mut self) -> bool {
        std::mem::take(&mut self.foreign) == ForeignLock::Seen
    }

    /// A lock that was taken in vain is being given back.
    pub(super) fn begin_release(&mut self, version: &str, now: Timestamp) {
        self.release = Some(LockRelease::UnderWay);
        self.releasable = now.checked_add(REACH).ok().map(|until| (version.to_owned(), until));
    }

    /// Whether locks that the node bears at this version may be gone the next moment, by a release that was sent against it.
    pub(super) fn may_be_released(&self, version: &str, now: Timestamp) -> bool {
        self.releasable.as_ref().is_some_and(|(of, until)| of == version && *until > now)
    }

    /// Giving back was answered, and the node is looked at again after a pause. Until it is seen without the lock, or to be gone, it looks as
    /// if the lock were still to be given back.
    pub(super) fn end_release(&mut self, outcome: &ReleaseOutcome, now: Timestamp) {
        let wait = match outcome {
            ReleaseOutcome::Done => {
                self.releasable = None;
                SignedDuration::ZERO
            }
            ReleaseOutcome::Failed { wait } => *wait,
        };
        let until = now.checked_add(wait.max(RELEASE_PAUSE)).unwrap_or(now);
        self.release = Some(LockRelease::Pausing(until));
    }

    /// The locks whose holders will never be served here, and that are being given back from now on.
    pub(super) fn release_dead(
        &mut self,
        view: &NodeView<'_>,
        requests: &mut Vec<NodeFlowRequest>,
    ) -> Vec<LockName> {
        self.releasable.take_if(|(_, until)| *until <= view.now);
        let waits = match self.release {
            Some(LockRelease::UnderWay) => true,
            Some(LockRelease::Pausing(until)) => until > view.now,
            None => false,
        };
        if waits {
            return Vec::new();
        }
        let locks = view.info.into_iter().flat_map(|info| &info.locks.needed);
        let dead = locks.filter(|lock| self.is_held_by_the_dead(lock, view, requests));
        let dead: Vec<_> = dead.map(|lock| lock.name.clone()).collect();
        self.release = None;
        if let Some(info) = view.info.filter(|_| !dead.is_empty()) {
            self.begin_release(&info.resource_version, view.now);
        }
        dead
    }

    fn is_held_by_the_dead(
        &mut self,
        lock: &NodeLock,
        view: &NodeView<'_>,
        requests: &mut Vec<NodeFlowRequest>,
    ) -> bool {
        let Lock::Held { since, .. } = lock.state else { return false };
        let owner = self.owner(lock);
        owner.is_some_and(|owner| self.holder(&owner, since, view, requests) == HolderState::Dead)
    }

    /// When the locks are to be looked at although nothing has happened: when a holder's time is over, if pods wait, and when giving back is
    /// tried again.
    pub(super) fn deadlines(&self, pods_wait: bool, view: &NodeView<'_>) -> impl Iterator<Item = Timestamp> {
        let locks = view.info.filter(|_| pods_wait).into_iter().flat_map(|info| &info.locks.needed);
        let pausing = match self.release {
            Some(LockRelease::Pausing(until)) => Some(until),
            Some(LockRelease::UnderWay) | None => None,
        };
        let releasable = self.releasable.as_ref().map(|(_, until)| *until);
        locks.filter_map(NodeLock::expires).chain(pausing).chain(releasable)
    }

    /// Whether a device plugin of the node is at work for this pod, by what the pod says or by what the node's lock does.
    pub(super) fn is_in_flight(&self, uid: &Uid, charge: &Charge, view: &NodeView<'_>) -> bool {
        charge.is_in_flight() || (charge.awaits_unlock() && self.is_locked_for(uid, charge, view.info, view))
    }

    /// Whether the node bears this pod's lock, also where that is not seen yet.
    fn is_locked_for(
        &self,
        uid: &Uid,
        charge: &Charge,
        info: Option<&NodeInfo>,
        view: &NodeView<'_>,
    ) -> bool {
        let taken = self.taken.as_ref().is_some_and(|taken| taken.pod.uid == *uid);
        let (Some(pod), Some(info)) = (view.pods.pod(uid), info) else { return taken };
        taken || info.locks_of(charge.profiles()).any(|lock| is_held_by(&lock.state, &pod.key))
    }

    /// The pods whose device plugins are to answer by freeing the node's lock, and that had it on the node as it was known before.
    pub(super) fn awaiting_unlock(&self, before: Option<&NodeInfo>, view: &NodeView<'_>) -> Vec<Uid> {
        let awaiting = view
            .charges()
            .filter(|(uid, charge)| charge.awaits_unlock() && self.is_locked_for(uid, charge, before, view));
        awaiting.map(|(uid, _)| uid.clone()).collect()
    }
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

/// Whether the lock names no pod and is held since then, where one that is taken here would say no more.
pub(super) fn is_since(lock: &NodeLock, written: Option<Timestamp>) -> bool {
    let then = matches!(lock.state, Lock::Held { owner: None, since } if Some(since) == written);
    then && lock.signature == Signature::Time
}

/// The pod as a lock names it.
pub(in crate::scheduling) fn owner_of(pod: &PodKey) -> LockOwner {
    LockOwner { namespace: pod.namespace.to_string(), name: pod.name.to_string() }
}
