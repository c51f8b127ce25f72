//! The webhook's metrics: reviews by path and outcome, broken rules, the time of a review, the end of the certificate.
//!
//! No decision depends on them.

use std::fmt::{self, Write as _};

use jiff::Timestamp;
use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};
use tokio::{
    sync::watch,
    time::{Duration, Instant},
};

use super::review::{ReviewAnswer, ReviewOutcome, onward::Handed};
use crate::admission::AdmissionStage;

/// The webhook's metrics. Clones count into the same numbers.
#[derive(Clone, Debug)]
pub struct WebhookMetrics {
    reviews: Family<ReviewLabels, Counter>,
    violations: Family<ViolationLabels, Counter>,
    duration: Family<DurationLabels, Histogram, fn() -> Histogram>,
    hints: Family<HintLabels, Counter>,
    certificate_expiry: Gauge,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct ReviewLabels {
    path: ReviewPath,
    outcome: CountedOutcome,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct ViolationLabels {
    rule: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct DurationLabels {
    path: ReviewPath,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct HintLabels {
    outcome: Handed,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum ReviewPath {
    Mutate,
    Adopt,
    Validate,
}

/// The outcome of a request to a review path, as a label.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum CountedOutcome {
    /// It was answered with a review.
    Answered(ReviewOutcome),
    /// It was refused before it was parsed as a review.
    Refused,
    /// There was no room for it.
    TurnedAway,
    /// The review panicked.
    Panicked,
}

impl CountedOutcome {
    const ALL: [Self; 6] = [
        Self::Answered(ReviewOutcome::Ignored),
        Self::Answered(ReviewOutcome::Admitted),
        Self::Answered(ReviewOutcome::Denied),
        Self::Answered(ReviewOutcome::Unreadable),
        Self::Refused,
        Self::Panicked,
    ];
}

impl WebhookMetrics {
    /// Creates the metrics and registers them in `registry`.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            reviews: Family::default(),
            violations: Family::default(),
            duration: Family::new_with_constructor(buckets),
            hints: Family::default(),
            certificate_expiry: Gauge::default(),
        };
        registry.register(
            "berth_admission_reviews",
            "Admission requests by path and outcome",
            metrics.reviews.clone(),
        );
        registry.register("berth_admission_violations", "Broken admission rules", metrics.violations.clone());
        let help = "Admitted pods that the webhook passed to the binder in advance, by result";
        registry.register("berth_admission_hints", help, metrics.hints.clone());
        registry.register_with_unit(
            "berth_admission_review_duration",
            "Time from the first byte of a review's body to its answer",
            Unit::Seconds,
            metrics.duration.clone(),
        );
        registry.register_with_unit(
            "berth_webhook_certificate_expiry",
            "End of the serving certificate, in seconds since 1970",
            Unit::Seconds,
            metrics.certificate_expiry.clone(),
        );
        metrics.begin_at_zero();
        metrics
    }

    /// Initialises every counter with 0, since Prometheus computes a rate from the value before the first event.
    fn begin_at_zero(&self) {
        for path in [ReviewPath::Mutate, ReviewPath::Adopt, ReviewPath::Validate] {
            drop(self.duration.get_or_create(&DurationLabels { path }));
            for outcome in CountedOutcome::ALL {
                drop(self.reviews.get_or_create(&ReviewLabels { path, outcome }));
            }
        }
        for (rule, _) in crate::admission::rules::ALL {
            drop(self.violations.get_or_create(&ViolationLabels { rule: rule.0 }));
        }
        for outcome in [Handed::Taken, Handed::Dropped] {
            drop(self.hints.get_or_create(&HintLabels { outcome }));
        }
    }

    /// Keeps the certificate's end up to date, until the certificates are gone.
    pub async fn follow_certificate(&self, mut not_after: watch::Receiver<Timestamp>) {
        loop {
            let end = *not_after.borrow_and_update();
            self.certificate_ends(end);
            if not_after.changed().await.is_err() {
                return;
            }
        }
    }

    /// Sets the end of the certificate that is served.
    pub fn certificate_ends(&self, not_after: Timestamp) {
        self.certificate_expiry.set(not_after.as_second());
    }

    /// Counts one request that began at `started`.
    pub(super) fn count(&self, stage: AdmissionStage, counted: CountedOutcome, started: Instant) {
        let path = ReviewPath::of(stage);
        let elapsed: Duration = started.elapsed();
        self.reviews.get_or_create(&ReviewLabels { path, outcome: counted }).inc();
        self.duration.get_or_create(&DurationLabels { path }).observe(elapsed.as_secs_f64());
    }

    /// Counts the rules that a pod broke.
    pub(super) fn count_violations(&self, answer: &ReviewAnswer) {
        for rule in &answer.rules {
            self.violations.get_or_create(&ViolationLabels { rule: rule.0 }).inc();
        }
    }
}

impl WebhookMetrics {
    /// Counts a pod that was passed to the binder as a hint.
    pub(super) fn count_hint(&self, outcome: Handed) {
        self.hints.get_or_create(&HintLabels { outcome }).inc();
    }
}

/// From 100 µs, where a review should be, to 3 s, where the API server stops waiting.
fn buckets() -> Histogram {
    Histogram::new([0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 3.0])
}

impl ReviewPath {
    fn of(stage: AdmissionStage) -> Self {
        match stage {
            AdmissionStage::Mutate => Self::Mutate,
            AdmissionStage::Adopt => Self::Adopt,
            AdmissionStage::Validate => Self::Validate,
        }
    }
}

impl EncodeLabelValue for ReviewPath {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> fmt::Result {
        encoder.write_str(match self {
            Self::Mutate => "mutate",
            Self::Adopt => "adopt",
            Self::Validate => "validate",
        })
    }
}

impl EncodeLabelValue for Handed {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> fmt::Result {
        encoder.write_str(match self {
            Self::Taken => "taken",
            Self::Dropped => "dropped",
        })
    }
}

impl EncodeLabelValue for CountedOutcome {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> fmt::Result {
        encoder.write_str(match self {
            Self::Answered(ReviewOutcome::Ignored) => "ignored",
            Self::Answered(ReviewOutcome::Admitted) => "admitted",
            Self::Answered(ReviewOutcome::Denied) => "denied",
            Self::Answered(ReviewOutcome::Unreadable) => "unreadable",
            Self::Refused => "refused",
            Self::TurnedAway => "turned_away",
            Self::Panicked => "panicked",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_certificate_gauge_shows_the_last_certificate() {
        let metrics = WebhookMetrics::register(&mut Registry::default());
        let (sender, receiver) = watch::channel(Timestamp::UNIX_EPOCH);
        sender.send_replace("2026-03-01T12:00:00Z".parse().unwrap());
        drop(sender);
        metrics.follow_certificate(receiver).await;
        assert_eq!(metrics.certificate_expiry.get(), 1_772_366_400);
    }
}
