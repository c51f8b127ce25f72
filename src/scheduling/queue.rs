//! Which pod is decided next, and when a pod that waits is decided again: kube-scheduler's active, backoff and unschedulable pods.
//!
//! The active pod of the highest priority comes first, then the older one, then the one that was seen first. The caller may pass over
//! namespaces, whose active pods then stay where they are. It must not know what a pod waits for.

mod histories;
mod history;
mod shares;

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};

use super::model::{name::Uid, pod::PodInfo};
pub use histories::{AttemptHistories, MOST_EARLIER_OUTCOMES};
pub use history::{AttemptHistory, AttemptOutcome, MOST_OUTCOMES};
pub use shares::{LoopShares, SHARE};

/// A pod's place among others: priority, creation, first sighting.
pub type Place = (Reverse<i32>, Timestamp, u64, Uid);

/// When a pod's turn comes, and its place among those whose turn comes then.
type Turn = (Timestamp, Place);

/// Pods that are to be decided, now or later.
#[derive(Debug, Default)]
pub struct Queue {
    /// Pods that are decided now; their time is the earliest that there is.
    active: Active,
    /// Pods that were rejected not long ago and that something has happened for, by the end of their backoff.
    backoff: BTreeSet<Turn>,
    /// Pods whose decision could not be carried out, by the end of their backoff.
    failed: BTreeSet<Turn>,
    /// Pods that no node would have, by the time at which they are decided again whatever has happened.
    unschedulable: BTreeSet<Turn>,
    waiting: HashMap<Uid, WaitingPlace>,
    /// Pods that have held a place for too long: each comes after those that were created before it lost that.
    behind: HashMap<Uid, Timestamp>,
}

/// Where a pod waits.
#[derive(Clone, Debug)]
struct WaitingPlace {
    part: QueuePart,
    turn: Turn,
    namespace: Arc<str>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum QueuePart {
    Active,
    Backoff,
    Failed,
    Unschedulable,
}

/// Pods that are decided now, by namespace, so that passing over one with many pods costs no more than passing over one with few.
#[derive(Debug, Default)]
struct Active {
    by_namespace: HashMap<Arc<str>, BTreeSet<Turn>>,
    /// The first pod of each namespace.
    first: BTreeSet<(Turn, Arc<str>)>,
    len: usize,
}

impl Active {
    fn insert(&mut self, namespace: &Arc<str>, turn: Turn) {
        self.change(namespace, |turns| turns.insert(turn));
    }

    fn remove(&mut self, namespace: &Arc<str>, turn: &Turn) {
        self.change(namespace, |turns| turns.remove(turn));
    }

    fn change(&mut self, namespace: &Arc<str>, change: impl FnOnce(&mut BTreeSet<Turn>) -> bool) {
        let turns = self.by_namespace.entry(namespace.clone()).or_default();
        let (before, len) = (turns.first().cloned(), turns.len());
        change(turns);
        self.len = self.len - len + turns.len();
        let after = turns.first().cloned();
        if turns.is_empty() {
            self.by_namespace.remove(namespace);
        }
        if before != after {
            before.map(|turn| self.first.remove(&(turn, namespace.clone())));
            after.map(|turn| self.first.insert((turn, namespace.clone())));
        }
    }
}

/// How many pods are looked at for one that is taken before its backoff ends.
pub const MOST_PASSED_OVER: usize = 64;

const FIRST_BACKOFF: SignedDuration = SignedDuration::from_secs(1);
const LONGEST_BACKOFF: SignedDuration = SignedDuration::from_secs(10);
/// Backoffs end at whole seconds (v1.36 `pkg/scheduler/backend/queue/backoff_queue.go` `backoffQOrderingWindowDuration`).
const BACKOFF_WINDOW: i64 = 1;
/// v1.36 `pkg/scheduler/backend/queue/scheduling_queue.go` `DefaultPodMaxInUnschedulablePodsDuration`.
const LONGEST_WAIT: SignedDuration = SignedDuration::from_mins(5);
/// kube-scheduler looks for pods that have waited for so long every 30 s; here such waits end at whole half minutes.
const FLUSH_WINDOW: i64 = 30;

/// How long a pod waits after so many failures: 1 s, doubled up to 10 s, as kube-scheduler does.
pub fn backoff(failures: u32) -> SignedDuration {
    let factor = 1_i32 << failures.saturating_sub(1).min(10);
    FIRST_BACKOFF.checked_mul(factor).map_or(LONGEST_BACKOFF, |backoff| backoff.min(LONGEST_BACKOFF))
}

/// When the backoff after so many failures ends: at a whole second, so that pods whose backoffs end within the same second go by priority.
pub fn backoff_end(now: Timestamp, failures: u32) -> Timestamp {
    end_of_window(now, backoff(failures), BACKOFF_WINDOW)
}

/// When a pod that is rejected now is decided again whatever has happened.
pub fn flush_time(now: Timestamp) -> Timestamp {
    end_of_window(now, LONGEST_WAIT, FLUSH_WINDOW)
}

/// So long after now, rounded up to a multiple of the window's seconds.
fn end_of_window(now: Timestamp, wait: SignedDuration, window: i64) -> Timestamp {
    let end = now.checked_add(wait).unwrap_or(Timestamp::MAX);
    let seconds = end.as_second() + i64::from(end.subsec_nanosecond() > 0);
    Timestamp::from_second(seconds + (-seconds).rem_euclid(window)).unwrap_or(Timestamp::MAX)
}

impl Queue {
    /// The pod is decided now; `seen` is its place among all pods ever seen.
    pub fn push(&mut self, pod: &PodInfo, seen: u64) {
        self.put(QueuePart::Active, pod, seen, Timestamp::MIN);
    }

    /// The pod is decided now, before all others, whatever its priority.
    pub fn push_ahead(&mut self, pod: &PodInfo, seen: u64) {
        self.put_as(QueuePart::Active, pod, seen, (Timestamp::MIN, i32::MAX));
    }

    /// Something has happened for the pod, which was rejected before: it is decided then, or earlier where there is nothing else to do.
    pub fn back_off(&mut self, pod: &PodInfo, seen: u64, until: Timestamp) {
        self.put(QueuePart::Backoff, pod, seen, until);
    }

    /// The pod's decision could not be carried out: it is decided again then.
    pub fn wait_out(&mut self, pod: &PodInfo, seen: u64, until: Timestamp) {
        self.put(QueuePart::Failed, pod, seen, until);
    }

    /// No node would have the pod: it is decided again then, whatever has happened.
    pub fn set_aside(&mut self, pod: &PodInfo, seen: u64, until: Timestamp) {
        self.put(QueuePart::Unschedulable, pod, seen, until);
    }

    fn put(&mut self, part: QueuePart, pod: &PodInfo, seen: u64, at: Timestamp) {
        self.put_as(part, pod, seen, (at, pod.importance.priority));
    }

    fn put_as(&mut self, part: QueuePart, pod: &PodInfo, seen: u64, (at, priority): (Timestamp, i32)) {
        self.remove(&pod.key.uid);
        let (_, created, seen, uid) = self.place(pod, seen);
        let turn = (at, (Reverse(priority), created, seen, uid.clone()));
        let waiting = WaitingPlace { part, turn, namespace: pod.key.namespace.clone() };
        self.insert(uid, waiting);
    }

    /// Where the pod comes among others that are decided at the same time, wherever it waits.
    pub fn place(&self, pod: &PodInfo, seen: u64) -> Place {
        let (uid, created) = (pod.key.uid.clone(), pod.lifetime.created);
        let created = self.behind.get(&uid).map_or(created, |since| created.max(*since));
        (Reverse(pod.importance.priority), created, seen, uid)
    }

    fn insert(&mut self, uid: Uid, waiting: WaitingPlace) {
        let WaitingPlace { part, turn, namespace } = waiting.clone();
        match part {
            QueuePart::Active => self.active.insert(&namespace, turn),
            QueuePart::Backoff => drop(self.backoff.insert(turn)),
            QueuePart::Failed => drop(self.failed.insert(turn)),
            QueuePart::Unschedulable => drop(self.unschedulable.insert(turn)),
        }
        self.waiting.insert(uid, waiting);
    }

    /// The pods whose backoff has ended are decided now.
    pub fn end_backoffs(&mut self, now: Timestamp) {
        let first = |turns: &BTreeSet<Turn>| {
            turns.first().filter(|(until, _)| *until <= now).map(|(_, (.., uid))| uid.clone())
        };
        while let Some(uid) = first(&self.backoff).or_else(|| first(&self.failed)) {
            let Some(WaitingPlace { turn: (_, place), namespace, .. }) = self.take(&uid) else { return };
            let turn = (Timestamp::MIN, place);
            self.insert(uid, WaitingPlace { part: QueuePart::Active, turn, namespace });
        }
    }

    /// The first of the pods that are decided now.
    pub fn first(&self) -> Option<&Uid> {
        self.active.first.first().map(|((_, (.., uid)), _)| uid)
    }

    /// The next pod that is decided now, of those in namespaces that are not passed over.
    pub fn pop(&mut self, mut passed_over: impl FnMut(&Arc<str>) -> bool) -> Option<Uid> {
        let mut first = self.active.first.iter();
        let ((_, (.., uid)), _) = first.find(|(_, namespace)| !passed_over(namespace))?;
        let uid = uid.clone();
        self.remove(&uid);
        Some(uid)
    }

    /// The pod whose backoff ends next, before it ends, of those in namespaces that are not passed over; never one whose decision could not
    /// be carried out. Only the next [`MOST_PASSED_OVER`] are looked at.
    pub fn pop_early(&mut self, mut passed_over: impl FnMut(&Arc<str>) -> bool) -> Option<Uid> {
        let mut next = self.backoff.iter().take(MOST_PASSED_OVER).map(|(_, (.., uid))| uid);
        let is_taken = |uid: &&Uid| self.waiting.get(*uid).is_some_and(|pod| !passed_over(&pod.namespace));
        let uid = next.find(is_taken)?.clone();
        self.remove(&uid);
        Some(uid)
    }

    /// The namespaces of the pods that are looked at for one that is taken early.
    pub fn early_namespaces(&self) -> impl Iterator<Item = &Arc<str>> {
        let next = self.backoff.iter().take(MOST_PASSED_OVER);
        next.filter_map(|(_, (.., uid))| self.waiting.get(uid)).map(|pod| &pod.namespace)
    }

    fn take(&mut self, uid: &Uid) -> Option<WaitingPlace> {
        let waiting = self.waiting.remove(uid)?;
        let WaitingPlace { part, turn, namespace } = &waiting;
        match part {
            QueuePart::Active => self.active.remove(namespace, turn),
            QueuePart::Backoff => drop(self.backoff.remove(turn)),
            QueuePart::Failed => drop(self.failed.remove(turn)),
            QueuePart::Unschedulable => drop(self.unschedulable.remove(turn)),
        }
        Some(waiting)
    }

    /// The pods that no node would have for so long that they are decided again: at most so many, the longest waiting first.
    pub fn overdue(&self, now: Timestamp, most: usize) -> Vec<Uid> {
        let overdue = self.unschedulable.iter().take_while(|(until, _)| *until <= now);
        overdue.take(most).map(|(_, (.., uid))| uid.clone()).collect()
    }

    /// When the next pod's turn comes although nothing has happened.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let parts = [&self.backoff, &self.failed, &self.unschedulable];
        parts.into_iter().filter_map(|part| part.first()).map(|(until, _)| *until).min()
    }

    /// Whether a pod could be taken before its backoff ends.
    pub fn has_early(&self) -> bool {
        !self.backoff.is_empty()
    }

    /// From now on the pod comes after those of its priority that are there already.
    pub fn put_behind(&mut self, uid: &Uid, now: Timestamp) {
        self.behind.insert(uid.clone(), now);
    }

    /// Whether the pod comes after others that are younger.
    pub fn is_behind(&self, uid: &Uid) -> bool {
        self.behind.contains_key(uid)
    }

    /// The pod is bound or gone.
    pub fn end_behind(&mut self, uid: &Uid) {
        self.behind.remove(uid);
    }

    /// Takes a pod out, wherever it waits.
    pub fn remove(&mut self, uid: &Uid) {
        self.take(uid);
    }

    /// The pods that no node would have, in no order that matters.
    pub fn set_aside_pods(&self) -> impl Iterator<Item = &Place> {
        self.unschedulable.iter().map(|(_, place)| place)
    }

    /// Takes a pod out that no node would have.
    pub fn take_back(&mut self, uid: &Uid) {
        if self.has_set_aside(uid) {
            self.remove(uid);
        }
    }

    /// Whether the pod is decided now or when a backoff ends.
    pub fn contains(&self, uid: &Uid) -> bool {
        self.waiting.get(uid).is_some_and(|pod| pod.part != QueuePart::Unschedulable)
    }

    /// Whether the pod is one that no node would have.
    pub fn has_set_aside(&self, uid: &Uid) -> bool {
        self.waiting.get(uid).is_some_and(|pod| pod.part == QueuePart::Unschedulable)
    }

    /// How many pods are decided now.
    pub fn len(&self) -> usize {
        self.active.len
    }

    /// The namespaces with pods that are decided now.
    pub fn namespaces(&self) -> impl Iterator<Item = &Arc<str>> {
        self.active.by_namespace.keys()
    }

    /// How many pods wait for the end of a backoff.
    pub fn backing_off(&self) -> usize {
        self.backoff.len() + self.failed.len()
    }

    /// Whether nothing is to be decided now.
    pub fn is_empty(&self) -> bool {
        self.active.len == 0
    }
}

#[cfg(test)]
mod tests;
