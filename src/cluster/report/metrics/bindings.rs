//! The counts of Bindings, and the time until pods are bound.

use std::time::Duration;

use jiff::SignedDuration;
use prometheus_client::{
    metrics::{
        counter::Counter,
        family::Family,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

use super::labels::{AnswerOutcome, OutcomeLabels};
use crate::scheduling::BindOutcome;

/// Bindings and bound pods; clones share the counts.
#[derive(Clone, Debug)]
pub(super) struct BindingMetrics {
    sent: Family<OutcomeLabels, Counter>,
    duration: Histogram,
    pod_duration: Histogram,
}

impl Default for BindingMetrics {
    fn default() -> Self {
        Self {
            sent: Family::default(),
            duration: Histogram::new(exponential_buckets(0.001, 2.0, 14)),
            pod_duration: Histogram::new(exponential_buckets(0.001, 2.0, 20)),
        }
    }
}

impl BindingMetrics {
    pub(super) fn register(&self, scheduler: &mut Registry) {
        scheduler.register("bindings", "Bindings sent, by result", self.sent.clone());
        let help = "Seconds from sending a Binding to its answer";
        scheduler.register("binding_duration_seconds", help, self.duration.clone());
        let help = "Seconds from first seeing a pod to its Binding; the count is that of bound pods";
        scheduler.register("pod_scheduling_duration_seconds", help, self.pod_duration.clone());
        for outcome in AnswerOutcome::ALL {
            drop(self.sent.get_or_create(&OutcomeLabels { outcome }));
        }
    }

    /// Counts the answer to a Binding, with its time.
    pub(super) fn answered(&self, outcome: &BindOutcome, took: Duration) {
        let outcome = match outcome {
            BindOutcome::Bound => AnswerOutcome::success,
            BindOutcome::Throttled(_) => AnswerOutcome::throttled,
            BindOutcome::Doubtful(_) => AnswerOutcome::doubt,
            BindOutcome::Refused(_) => AnswerOutcome::refused,
        };
        self.sent.get_or_create(&OutcomeLabels { outcome }).inc();
        self.duration.observe(took.as_secs_f64());
    }

    /// Counts a pod that was bound so long after it was first seen.
    pub(super) fn bound(&self, after: SignedDuration) {
        self.pod_duration.observe(after.as_secs_f64());
    }
}
