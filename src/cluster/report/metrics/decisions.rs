//! The counts of decisions: what came of them, what they took, and preemptions.

use std::time::Duration;

use prometheus_client::{
    metrics::{
        counter::Counter,
        family::Family,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

use super::labels::{AttemptLabels, AttemptResult};
use crate::scheduling::Attempt;

/// Decisions about pods; clones share the counts.
#[derive(Clone, Debug)]
pub(super) struct DecisionMetrics {
    attempts: Family<AttemptLabels, Counter>,
    flushed_pods: Counter,
    rooms_given_up: Counter,
    steps: Counter,
    preemption_attempts: Counter,
    preemption_victims: Histogram,
    duration: Histogram,
}

impl Default for DecisionMetrics {
    fn default() -> Self {
        Self {
            attempts: Family::default(),
            flushed_pods: Counter::default(),
            rooms_given_up: Counter::default(),
            steps: Counter::default(),
            preemption_attempts: Counter::default(),
            preemption_victims: Histogram::new(exponential_buckets(1.0, 2.0, 7)),
            duration: Histogram::new(exponential_buckets(0.000_001, 4.0, 12)),
        }
    }
}

impl DecisionMetrics {
    pub(super) fn register(&self, scheduler: &mut Registry) {
        let help =
            "Decisions, by result: a node was found, none was, or the decision could not be carried out";
        scheduler.register("attempts", help, self.attempts.clone());
        let help = "Pods that were tried again because they had waited for five minutes";
        scheduler.register("flushed_pods", help, self.flushed_pods.clone());
        let help = "Rooms that were kept for pods that wait long, and given up since the pod did not find its place in time";
        scheduler.register("rooms_given_up", help, self.rooms_given_up.clone());
        let help = "Work of decisions in counted steps: 66,000 take about a millisecond";
        scheduler.register("steps", help, self.steps.clone());
        let help = "Searches for pods that could be preempted for a pod that fits nowhere";
        scheduler.register("preemption_attempts", help, self.preemption_attempts.clone());
        let help = "Victims of a preemption";
        scheduler.register("preemption_victims", help, self.preemption_victims.clone());
        let help = "Seconds of computing for a decision";
        scheduler.register("decision_duration_seconds", help, self.duration.clone());
        for result in [AttemptResult::scheduled, AttemptResult::unschedulable, AttemptResult::error] {
            drop(self.attempts.get_or_create(&AttemptLabels { result }));
        }
    }

    /// Counts one decision that took this long.
    pub(super) fn count(&self, attempt: Attempt, took: Duration) {
        let result = match attempt {
            Attempt::Scheduled => AttemptResult::scheduled,
            Attempt::Unschedulable => AttemptResult::unschedulable,
            Attempt::Failed => AttemptResult::error,
        };
        self.attempts.get_or_create(&AttemptLabels { result }).inc();
        self.duration.observe(took.as_secs_f64());
    }

    /// Counts a pod that was tried again because it had waited for long.
    pub(super) fn flushed(&self) {
        self.flushed_pods.inc();
    }

    /// Counts room that was given up.
    pub(super) fn room_given_up(&self) {
        self.rooms_given_up.inc();
    }

    /// How many steps of work were counted.
    pub(super) fn steps_taken(&self) -> u64 {
        self.steps.get()
    }

    /// Counts so many steps of work.
    pub(super) fn steps(&self, steps: u64) {
        self.steps.inc_by(steps);
    }

    /// Counts a search for pods to preempt, with so many victims.
    pub(super) fn preemption(&self, victims: usize) {
        self.preemption_attempts.inc();
        if let Ok(victims) = u32::try_from(victims)
            && victims > 0
        {
            self.preemption_victims.observe(f64::from(victims));
        }
    }
}
