//! Which pod is decided next: higher priority first, then the older, then the one seen first.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use jiff::{SignedDuration, Timestamp};

use super::pod::{PodInfo, Uid};

/// A pod's place in the queue.
type Place = (Reverse<i32>, Timestamp, u64, Uid);

/// Pods that wait to be decided, and pods that wait out a failure first.
#[derive(Debug, Default)]
pub struct Queue {
    active: BTreeSet<Place>,
    places: BTreeMap<Uid, Place>,
    backoff: BTreeSet<(Timestamp, Uid)>,
}

const FIRST_BACKOFF: SignedDuration = SignedDuration::from_secs(1);
const LONGEST_BACKOFF: SignedDuration = SignedDuration::from_secs(10);

/// How long a pod waits after so many failures: 1 s, doubled up to 10 s, as kube-scheduler does.
pub fn backoff(failures: u32) -> SignedDuration {
    let factor = 1_i32 << failures.saturating_sub(1).min(10);
    FIRST_BACKOFF.checked_mul(factor).map_or(LONGEST_BACKOFF, |backoff| backoff.min(LONGEST_BACKOFF))
}

impl Queue {
    /// Puts a pod in line; `seen` is its place among all pods ever seen.
    pub fn push(&mut self, pod: &PodInfo, seen: u64) {
        self.remove(&pod.key.uid);
        let place = (Reverse(pod.priority), pod.created, seen, pod.key.uid.clone());
        self.places.insert(pod.key.uid.clone(), place.clone());
        self.active.insert(place);
    }

    /// The next pod.
    pub fn pop(&mut self) -> Option<Uid> {
        let (.., uid) = self.active.pop_first()?;
        self.places.remove(&uid);
        Some(uid)
    }

    /// Lets a pod wait until then.
    pub fn back_off(&mut self, uid: Uid, until: Timestamp) {
        self.remove(&uid);
        self.backoff.insert((until, uid));
    }

    /// The pods that have waited long enough.
    pub fn expired(&mut self, now: Timestamp) -> Vec<Uid> {
        let mut expired = Vec::new();
        while self.backoff.first().is_some_and(|(until, _)| *until <= now) {
            expired.extend(self.backoff.pop_first().map(|(_, uid)| uid));
        }
        expired
    }

    /// When the next pod will have waited long enough.
    pub fn next_expiry(&self) -> Option<Timestamp> {
        self.backoff.first().map(|(until, _)| *until)
    }

    /// Takes a pod out, wherever it waits.
    pub fn remove(&mut self, uid: &Uid) {
        if let Some(place) = self.places.remove(uid) {
            self.active.remove(&place);
        }
        self.backoff.retain(|(_, waiting)| waiting != uid);
    }

    /// Whether a pod waits here, to be decided or for a failure's end.
    pub fn contains(&self, uid: &Uid) -> bool {
        self.places.contains_key(uid) || self.backoff.iter().any(|(_, waiting)| waiting == uid)
    }

    /// How many pods wait to be decided.
    pub fn len(&self) -> usize {
        self.active.len()
    }

    /// How many pods wait out a failure.
    pub fn backing_off(&self) -> usize {
        self.backoff.len()
    }

    /// Whether nothing waits to be decided.
    pub fn is_empty(&self) -> bool {
        self.active.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_doubles_up_to_ten_seconds() {
        let waits: Vec<_> = (1..=6).map(|failures| backoff(failures).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 10, 10]);
    }
}
