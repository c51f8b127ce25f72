//! The counts of node locks, and the times for which pods wait for one and hold it.

use std::sync::atomic::AtomicU64;

use jiff::SignedDuration;
use prometheus_client::{
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

use super::labels::{AnswerOutcome, OutcomeLabels};
use crate::scheduling::LockOutcome;

/// Requests for node locks; clones share the counts.
#[derive(Clone, Debug)]
pub(super) struct LockMetrics {
    requests: Family<OutcomeLabels, Counter>,
    wait: Histogram,
    hold: Histogram,
    longest_wait: Gauge<f64, AtomicU64>,
}

impl Default for LockMetrics {
    fn default() -> Self {
        let seconds = || Histogram::new(exponential_buckets(0.001, 2.0, 20));
        Self { requests: Family::default(), wait: seconds(), hold: seconds(), longest_wait: Gauge::default() }
    }
}

impl LockMetrics {
    pub(super) fn register(&self, scheduler: &mut Registry) {
        scheduler.register("node_locks", "Requests for node locks, by result", self.requests.clone());
        let help =
            "Seconds that a decided pod stood in its node's line, until it had the lock or needed none";
        scheduler.register("lock_wait_duration_seconds", help, self.wait.clone());
        let help = "Seconds from taking a node's lock until it is no longer that pod's";
        scheduler.register("lock_hold_duration_seconds", help, self.hold.clone());
        let help = "The longest time that a pod at the head of a node's line has waited, in seconds; its Event names what it waits for";
        scheduler.register("longest_lock_wait_seconds", help, self.longest_wait.clone());
        for outcome in AnswerOutcome::ALL {
            drop(self.requests.get_or_create(&OutcomeLabels { outcome }));
        }
    }

    /// Counts the answer to a request.
    pub(super) fn answered(&self, outcome: &LockOutcome) {
        let outcome = match outcome {
            LockOutcome::Taken { .. } => AnswerOutcome::success,
            LockOutcome::Throttled(_) => AnswerOutcome::throttled,
            LockOutcome::Stale | LockOutcome::Failed(_) => AnswerOutcome::doubt,
            LockOutcome::Refused(_) => AnswerOutcome::refused,
        };
        self.requests.get_or_create(&OutcomeLabels { outcome }).inc();
    }

    /// Counts a pod that has waited so long for its node's lock.
    pub(super) fn waited(&self, time: SignedDuration) {
        self.wait.observe(time.as_secs_f64());
    }

    /// Counts a lock that a pod has held for so long.
    pub(super) fn held(&self, time: SignedDuration) {
        self.hold.observe(time.as_secs_f64());
    }

    /// Sets how long the pod has waited that waits longest.
    pub(super) fn longest_wait(&self, time: SignedDuration) {
        self.longest_wait.set(time.as_secs_f64());
    }
}
