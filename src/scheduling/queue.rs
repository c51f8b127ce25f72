//! Which pod is decided next, and when a pod that waits is decided again: kube-scheduler's active, backoff and unschedulable pods.
//!
//! The active pod of the highest priority comes first, then the older one, then the one that was seen first. It must not know what a
//! pod waits for.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
};

use jiff::{SignedDuration, Timestamp};

use super::pod::{PodInfo, Uid};

/// A pod's place among others: priority, creation, first sighting.
type Place = (Reverse<i32>, Timestamp, u64, Uid);

/// When a pod's turn comes, and its place among those whose turn comes then.
type Turn = (Timestamp, Place);

/// Pods that are to be decided, now or later.
#[derive(Debug, Default)]
pub struct Queue {
    /// Pods that are decided now; their time is the earliest that there is.
    active: BTreeSet<Turn>,
    /// Pods that were rejected not long ago and that something has happened for, by the end of their backoff.
    backoff: BTreeSet<Turn>,
    /// Pods whose decision could not be carried out, by the end of their backoff.
    failed: BTreeSet<Turn>,
    /// Pods that no node would have, by the time at which they are decided again whatever has happened.
    unschedulable: BTreeSet<Turn>,
    turns: HashMap<Uid, (Part, Turn)>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Part {
    Active,
    Backoff,
    Failed,
    Unschedulable,
}

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
        self.put(Part::Active, pod, seen, Timestamp::MIN);
    }

    /// The pod is decided now, before all others, whatever its priority.
    pub fn push_ahead(&mut self, pod: &PodInfo, seen: u64) {
        self.put_as(Part::Active, pod, seen, (Timestamp::MIN, i32::MAX));
    }

    /// Something has happened for the pod, which was rejected before: it is decided then, or earlier where there is nothing else to do.
    pub fn back_off(&mut self, pod: &PodInfo, seen: u64, until: Timestamp) {
        self.put(Part::Backoff, pod, seen, until);
    }

    /// The pod's decision could not be carried out: it is decided again then.
    pub fn wait_out(&mut self, pod: &PodInfo, seen: u64, until: Timestamp) {
        self.put(Part::Failed, pod, seen, until);
    }

    /// No node would have the pod: it is decided again then, whatever has happened.
    pub fn set_aside(&mut self, pod: &PodInfo, seen: u64, until: Timestamp) {
        self.put(Part::Unschedulable, pod, seen, until);
    }

    fn put(&mut self, part: Part, pod: &PodInfo, seen: u64, at: Timestamp) {
        self.put_as(part, pod, seen, (at, pod.importance.priority));
    }

    fn put_as(&mut self, part: Part, pod: &PodInfo, seen: u64, (at, priority): (Timestamp, i32)) {
        let uid = pod.key.uid.clone();
        self.remove(&uid);
        let turn = (at, (Reverse(priority), pod.created, seen, uid.clone()));
        self.part_mut(part).insert(turn.clone());
        self.turns.insert(uid, (part, turn));
    }

    fn part_mut(&mut self, part: Part) -> &mut BTreeSet<Turn> {
        match part {
            Part::Active => &mut self.active,
            Part::Backoff => &mut self.backoff,
            Part::Failed => &mut self.failed,
            Part::Unschedulable => &mut self.unschedulable,
        }
    }

    /// The pods whose backoff has ended are decided now.
    pub fn end_backoffs(&mut self, now: Timestamp) {
        for part in [Part::Backoff, Part::Failed] {
            while self.part_mut(part).first().is_some_and(|(until, _)| *until <= now) {
                let Some((_, place)) = self.part_mut(part).pop_first() else { break };
                let turn = (Timestamp::MIN, place);
                self.turns.insert(turn.1.3.clone(), (Part::Active, turn.clone()));
                self.active.insert(turn);
            }
        }
    }

    /// The next pod that is decided now.
    pub fn pop(&mut self) -> Option<Uid> {
        self.take_first(Part::Active)
    }

    /// The pod whose backoff ends next, before it ends; never one whose decision could not be carried out.
    pub fn pop_early(&mut self) -> Option<Uid> {
        self.take_first(Part::Backoff)
    }

    fn take_first(&mut self, part: Part) -> Option<Uid> {
        let (_, (.., uid)) = self.part_mut(part).pop_first()?;
        self.turns.remove(&uid);
        Some(uid)
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

    /// Takes a pod out, wherever it waits.
    pub fn remove(&mut self, uid: &Uid) {
        if let Some((part, turn)) = self.turns.remove(uid) {
            self.part_mut(part).remove(&turn);
        }
    }

    /// Takes a pod out that no node would have.
    pub fn take_back(&mut self, uid: &Uid) {
        if self.has_set_aside(uid) {
            self.remove(uid);
        }
    }

    /// Whether the pod is decided now or when a backoff ends.
    pub fn contains(&self, uid: &Uid) -> bool {
        self.turns.get(uid).is_some_and(|(part, _)| *part != Part::Unschedulable)
    }

    /// Whether the pod is one that no node would have.
    pub fn has_set_aside(&self, uid: &Uid) -> bool {
        self.turns.get(uid).is_some_and(|(part, _)| *part == Part::Unschedulable)
    }

    /// How many pods are decided now.
    pub fn len(&self) -> usize {
        self.active.len()
    }

    /// How many pods wait for the end of a backoff.
    pub fn backing_off(&self) -> usize {
        self.backoff.len() + self.failed.len()
    }

    /// Whether nothing is to be decided now.
    pub fn is_empty(&self) -> bool {
        self.active.is_empty()
    }
}

#[cfg(test)]
mod tests;
