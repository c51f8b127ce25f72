//! How much of the loop's time each namespace has used lately: one that has used more than its share is passed over while others wait.
//!
//! A leaky bucket for each namespace, filled by the counted steps of its decisions and emptied as time passes. It decides when a pod is
//! decided, never how.

use std::{collections::HashMap, sync::Arc};

use jiff::Timestamp;

use crate::scheduling::model::steps::PER_MILLISECOND;

/// A namespace is passed over while its bucket holds more than this: about 5 ms.
pub const SHARE: u64 = 5 * PER_MILLISECOND;

/// Each millisecond takes so much out of a bucket: a namespace that is passed over gets a quarter of the loop's time.
const PER_MILLISECOND_PASSED: u64 = PER_MILLISECOND / 4;

/// The use of the loop by namespace.
#[derive(Debug, Default)]
pub struct LoopShares(HashMap<Arc<str>, Bucket>);

#[derive(Clone, Copy, Debug)]
struct Bucket {
    steps: u64,
    since: Timestamp,
}

impl Bucket {
    /// What it holds now.
    fn level(self, now: Timestamp) -> u64 {
        let passed = now.duration_since(self.since).as_millis();
        let passed = u64::try_from(passed.max(0)).unwrap_or(u64::MAX);
        self.steps.saturating_sub(passed.saturating_mul(PER_MILLISECOND_PASSED))
    }
}

impl LoopShares {
    /// A decision for a pod of the namespace took so many steps.
    pub fn charge(&mut self, namespace: &Arc<str>, steps: u64, now: Timestamp) {
        let bucket = self.0.entry(namespace.clone()).or_insert(Bucket { steps: 0, since: now });
        *bucket = Bucket { steps: bucket.level(now).saturating_add(steps), since: now };
    }

    /// Whether the namespace has used its share.
    pub fn is_used_up(&self, namespace: &str, now: Timestamp) -> bool {
        self.0.get(namespace).is_some_and(|bucket| bucket.level(now) > SHARE)
    }

    /// When the first of these namespaces is no longer passed over.
    pub fn next<'a>(&self, namespaces: impl Iterator<Item = &'a Arc<str>>) -> Option<Timestamp> {
        let end = |namespace: &Arc<str>| {
            let Some(bucket) = self.0.get(namespace) else { return Timestamp::MIN };
            let wait = bucket.steps.saturating_sub(SHARE).div_ceil(PER_MILLISECOND_PASSED);
            let wait = jiff::SignedDuration::from_millis(i64::try_from(wait).unwrap_or(i64::MAX));
            bucket.since.checked_add(wait).unwrap_or(Timestamp::MAX)
        };
        namespaces.map(end).min()
    }

    /// Forgets namespaces whose buckets are empty.
    pub fn forget_empty(&mut self, now: Timestamp) {
        self.0.retain(|_, bucket| bucket.level(now) > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millisecond: i64) -> Timestamp {
        Timestamp::from_millisecond(millisecond).unwrap()
    }

    #[test]
    fn a_namespace_that_has_used_its_share_gets_a_quarter_of_the_time() {
        let (mut shares, greedy) = (LoopShares::default(), Arc::from("greedy"));
        let mut decided = 0;
        for millisecond in 0..1_000 {
            while !shares.is_used_up(&greedy, at(millisecond)) {
                shares.charge(&greedy, PER_MILLISECOND, at(millisecond));
                decided += 1;
            }
        }
        assert!((250..=260).contains(&decided), "{decided} decisions of a millisecond each in a second");
        assert!(!shares.is_used_up("other", at(999)));
    }

    #[test]
    fn it_is_known_when_a_namespace_is_no_longer_passed_over() {
        let (mut shares, greedy, other) = (LoopShares::default(), Arc::from("greedy"), Arc::from("other"));
        shares.charge(&greedy, SHARE + 30 * PER_MILLISECOND, at(0));
        shares.charge(&other, SHARE + 10 * PER_MILLISECOND, at(0));
        let next = shares.next([&greedy, &other].into_iter()).unwrap();
        assert_eq!(next, at(40));
        assert!(shares.is_used_up(&other, at(39)) && !shares.is_used_up(&other, next));
        assert_eq!(shares.next([&Arc::from("new")].into_iter()), Some(Timestamp::MIN));
    }

    #[test]
    fn a_clock_that_goes_back_empties_no_bucket_and_empty_ones_are_forgotten() {
        let (mut shares, greedy) = (LoopShares::default(), Arc::from("greedy"));
        shares.charge(&greedy, 2 * SHARE, at(1_000));
        assert!(shares.is_used_up(&greedy, at(0)));
        shares.forget_empty(at(1_001));
        assert_eq!(shares.0.len(), 1);
        shares.forget_empty(at(2_000));
        assert_eq!(shares.0.len(), 0);
    }
}
