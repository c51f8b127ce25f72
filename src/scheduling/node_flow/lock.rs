//! The locks of a node: who holds one, whether that one can still be served, and giving back what nobody will.
//!
//! A lock is never taken or given back on the word of a watch that may lag: it goes by compare-and-swap, and a holder that was never
//! seen is read first. Several requests to give locks back can be under way. Each is remembered until its answer comes, however late it
//! is sent, and after an answer other than a yes for as long as it may still arrive. Until then no pod relies on a lock that is read at its
//! version.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::{contest::LockContest, request::NodeFlowRequest, view::NodeView};
use crate::{
    device::{Lock, LockName, LockNeed, LockOwner, ProfileName},
    scheduling::{
        model::{
            measure::Measure,
            name::Uid,
            node::{NodeInfo, NodeLock, Signature},
            outcome::{REACH, ReleaseOutcome},
            pod::{Ask, Placer, PodInfo, PodKey, Stage, is_older},
        },
        world::ledger::{Charge, Commitment},
    },
};

/// How long to wait before locks that could not be given back are given back again.
const RELEASE_PAUSE: SignedDuration = SignedDuration::from_secs(1);

/// A lock that was taken for a pod after its Binding is given back so long after, if the pod no longer needs it and its node's device plugin
/// has not freed it: the plugin may have answered before the lock was there.
const CLEARANCE: SignedDuration = SignedDuration::from_secs(15);

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

/// How far a request to give locks back has got.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum LockRelease {
    /// It has no answer, and may not even be sent yet.
    UnderWay,
    /// It was answered without a yes, and may take effect until then.
    Doubtful(Timestamp),
}

impl LockRelease {
    /// Whether it may take effect.
    fn may_arrive(self, now: Timestamp) -> bool {
        match self {
            Self::UnderWay => true,
            Self::Doubtful(until) => until > now,
        }
    }
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

/// How far locking a node has got for a pod that was bound without a lock.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) enum Covering {
    /// It is not under way.
    #[default]
    Idle,
    /// The node is being read.
    Reading,
    /// The locks are being taken.
    Taking(PodKey),
    /// They could not be taken; that is tried again then.
    Pausing(Timestamp),
}

impl Covering {
    /// When it is tried again.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        match self {
            Self::Pausing(until) => Some(*until),
            Self::Idle | Self::Reading | Self::Taking(_) => None,
        }
    }
}

/// What is known of a node's locks.
#[derive(Debug, Default)]
pub(super) struct NodeLocks {
    /// Those that were taken and are not known to have been lost.
    taken: Option<TakenLock>,
    /// The requests to give locks back that may yet take effect, by the version that the node must have and by the locks.
    releases: BTreeMap<(String, Vec<LockName>), LockRelease>,
    /// Before then, no holder's end leads to another such request.
    release_pause: Option<Timestamp>,
    foreign: ForeignLock,
    /// Holders that are not among the pods that were seen, by name and by since when they hold their lock.
    unseen: BTreeMap<(LockOwner, Timestamp), UnseenHolder>,
    /// The pods that the locks name.
    named: BTreeSet<LockOwner>,
    /// Locking the node for a pod that was bound without a lock.
    pub(super) covering: Covering,
    /// The last pod whose Binding was sent under its locks.
    locked: Option<Uid>,
    /// Until then locks that were taken in doubt may yet appear.
    doubtful: Option<Timestamp>,
    /// Whether a lock of another scheduler was seen since this was last asked.
    sighted: bool,
}

impl NodeLocks {
    /// Whether nothing is remembered. For which pod the locks were taken counts only while that pod is in flight, when the flow is not idle.
    pub(super) fn is_empty(&self) -> bool {
        let Self {
            taken,
            releases,
            release_pause,
            foreign,
            unseen,
            named,
            covering,
            locked: _,
            doubtful,
            sighted,
        } = self;
        let foreign = *foreign == ForeignLock::Seen;
        taken.is_none()
            && releases.is_empty()
            && release_pause.is_none()
            && !foreign
            && unseen.is_empty()
            && named.is_empty()
            && *covering == Covering::Idle
            && doubtful.is_none()
            && !sighted
    }

    /// Whether a lock of another scheduler was seen since this was last asked.
    pub(super) fn take_sighting(&mut self) -> bool {
        std::mem::take(&mut self.sighted)
    }

    /// The Binding of this pod is sent.
    pub(super) fn note_binding(&mut self, pod: &PodKey) {
        self.locked = self.are_taken_for(pod).then(|| pod.uid.clone());
    }

    /// Whether the Binding of this pod was sent under its locks.
    pub(super) fn were_taken_before_binding(&self, uid: &Uid) -> bool {
        self.locked.as_ref() == Some(uid)
    }

    /// Whether locks were taken is not known: they may yet appear.
    pub(super) fn note_doubtful_lock(&mut self, now: Timestamp) {
        self.doubtful = self.doubtful.max(now.checked_add(REACH).ok());
    }

    /// Whether a pod that asks for this is to have locks of the node before it is bound.
    pub(super) fn are_needed(&self, (pod, ask): (&PodKey, &Ask), view: &NodeView<'_>) -> bool {
        let mut locks = view.info.into_iter().flat_map(|info| info.locks_for(ask));
        locks.any(|lock| self.is_needed(lock, pod, view))
    }

    /// Whether a pod is to have this lock. One that can be left out is still needed while there is or may be any on the node: the device plugin
    /// serves the pod that a lock names, whichever pod it is asked for.
    fn is_needed(&self, lock: &NodeLock, pod: &PodKey, view: &NodeView<'_>) -> bool {
        lock.need == LockNeed::Always
            || view.contest == LockContest::Possible
            || lock.state != Lock::Free
            || self.taken.is_some()
            || self.doubtful.is_some_and(|until| until > view.now)
            || self.covering != Covering::Idle
            || may_be_mistaken(pod, view)
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
        if !self.are_needed((pod, ask), view) {
            return LockState::NotNeeded;
        }
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
        if !matches!(lock.state, Lock::Held { .. }) || lock.is_over(view.now) {
            return LockState::Available;
        }
        match self.holder(lock, view, requests) {
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

    /// How the holder of a lock is; `None`: none is known.
    fn holder(
        &mut self,
        lock: &NodeLock,
        view: &NodeView<'_>,
        requests: &mut Vec<NodeFlowRequest>,
    ) -> Option<HolderState> {
        let Lock::Held { since, .. } = lock.state else { return None };
        let owner = self.owner(lock)?;
        let Some(pod) = view.holder(&owner) else {
            return Some(self.unseen_holder(&owner, since, requests));
        };
        if pod.stage == Stage::Ended {
            return Some(HolderState::Dead);
        }
        let charge = view.ledger.get(&pod.key.uid).filter(|charge| charge.commitment == Commitment::Bound);
        let state = match charge {
            Some(charge) if charge.node == *view.name && !self.is_vain(lock, (pod, charge), view) => {
                HolderState::Alive
            }
            Some(_) => HolderState::Dead,
            // One of ours that is not being served, or no longer to be: its lock was taken before a restart or in vain.
            None if pod.placer == Placer::Berth => HolderState::Dead,
            None => HolderState::Alive,
        };
        Some(state)
    }

    /// Whether a lock was taken in vain for a pod that had been bound without: the plugin had answered by then, and frees no lock any more.
    fn is_vain(&self, lock: &NodeLock, (pod, charge): (&PodInfo, &Charge), view: &NodeView<'_>) -> bool {
        let left_out = lock.need == LockNeed::WhereContested
            && pod.placer == Placer::Berth
            && !self.were_taken_before_binding(&pod.key.uid);
        left_out
            && !self.is_in_flight(&pod.key.uid, charge, view)
            && cleared(lock).is_some_and(|at| at <= view.now)
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

    /// Whether those that the node bears since this version are a pod's, whomever they were taken for.
    pub(super) fn are_taken_since(&self, version: &str) -> bool {
        self.taken.as_ref().is_some_and(|taken| taken.version == version)
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
            self.sighted = true;
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

    /// Has locks given back that the node bears at this version, unless that is under way.
    pub(super) fn release(&mut self, version: &str, locks: Vec<LockName>) -> Option<NodeFlowRequest> {
        let of = (version.to_owned(), locks.clone());
        let known = self.releases.insert(of, LockRelease::UnderWay);
        let request = NodeFlowRequest::ReleaseLock { resource_version: version.to_owned(), locks };
        (known != Some(LockRelease::UnderWay)).then_some(request)
    }

    /// Whether locks that the node bears at this version may be gone the next moment, by a request to give them back.
    pub(super) fn may_be_released(&self, version: &str, now: Timestamp) -> bool {
        let mut releases = self.releases.iter();
        releases.any(|((of, _), release)| of == version && release.may_arrive(now))
    }

    /// Giving these locks back was answered, and the node is looked at again after a pause. Until it is seen without them, or to be gone,
    /// it looks as if they were still to be given back. Returns whether the node is to be read.
    pub(super) fn end_release(
        &mut self,
        (version, locks): (String, Vec<LockName>),
        outcome: ReleaseOutcome,
        now: Timestamp,
    ) -> bool {
        let of = (version, locks);
        // Each request is answered once: what comes otherwise is of the node that had this name before.
        if self.releases.get(&of) != Some(&LockRelease::UnderWay) {
            return false;
        }
        let wait = match outcome {
            ReleaseOutcome::Done => {
                self.releases.remove(&of);
                SignedDuration::ZERO
            }
            ReleaseOutcome::Failed { wait } => {
                let until = now.checked_add(REACH).unwrap_or(Timestamp::MAX);
                self.releases.insert(of, LockRelease::Doubtful(until));
                wait
            }
        };
        let pause = now.checked_add(wait.max(RELEASE_PAUSE)).unwrap_or(now);
        self.release_pause = self.release_pause.max(Some(pause));
        outcome != ReleaseOutcome::Done
    }

    /// Forgets requests to give locks back that can't arrive any more, and a pause that is over.
    fn forget_releases(&mut self, now: Timestamp) {
        self.releases.retain(|_, release| release.may_arrive(now));
        self.release_pause.take_if(|until| *until <= now);
        self.doubtful.take_if(|until| *until <= now);
    }

    /// Has the locks given back whose holders will never be served here, one request at a time.
    pub(super) fn release_dead(
        &mut self,
        view: &NodeView<'_>,
        requests: &mut Vec<NodeFlowRequest>,
    ) -> Option<NodeFlowRequest> {
        self.forget_releases(view.now);
        let is_under_way = self.releases.values().any(|release| *release == LockRelease::UnderWay);
        if is_under_way || self.release_pause.is_some() {
            return None;
        }
        let info = view.info?;
        let dead = info.locks.needed.iter().filter(|lock| self.is_held_by_the_dead(lock, view, requests));
        let dead: Vec<_> = dead.map(|lock| lock.name.clone()).collect();
        if dead.is_empty() { None } else { self.release(&info.resource_version, dead) }
    }

    fn is_held_by_the_dead(
        &mut self,
        lock: &NodeLock,
        view: &NodeView<'_>,
        requests: &mut Vec<NodeFlowRequest>,
    ) -> bool {
        self.holder(lock, view, requests) == Some(HolderState::Dead)
    }

    /// When the locks are to be looked at although nothing has happened: when a holder's time is over, if pods wait, and when giving back is
    /// tried again.
    pub(super) fn deadlines(&self, pods_wait: bool, view: &NodeView<'_>) -> impl Iterator<Item = Timestamp> {
        let locks = view.info.filter(|_| pods_wait).into_iter().flat_map(|info| &info.locks.needed);
        let left_out = view.info.into_iter().flat_map(|info| &info.locks.needed);
        let left_out = left_out.filter(|lock| lock.need == LockNeed::WhereContested).filter_map(cleared);
        let doubtful = self.releases.values().filter_map(|release| match release {
            LockRelease::UnderWay => None,
            LockRelease::Doubtful(until) => Some(*until),
        });
        let own = self.release_pause.into_iter().chain(self.doubtful).chain(self.covering.deadline());
        locks.filter_map(NodeLock::expires).chain(left_out).chain(own).chain(doubtful)
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

/// When a lock is given back that was taken in vain.
fn cleared(lock: &NodeLock) -> Option<Timestamp> {
    let Lock::Held { since, .. } = lock.state else { return None };
    since.checked_add(CLEARANCE).ok()
}

/// Whether the device plugin could serve another pod of the node in place of this one, if no lock names it: HAMi's takes the first pod that has
/// not started and has an assignment, be it one that it has served already (v2.9 and later; `pkg/util/util.go`, `GetPendingPod`).
fn may_be_mistaken(pod: &PodKey, view: &NodeView<'_>) -> bool {
    view.charges().any(|(uid, charge)| {
        *uid != pod.uid
            && charge.commitment != Commitment::Assumed
            && charge.stage == Stage::Pending
            && !charge.allocations.is_empty()
    })
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
