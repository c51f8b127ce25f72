//! The count of evictions from nodes of closed zones.

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue},
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use super::Metrics;
use crate::scheduling::EvictionOutcome;

#[derive(Clone, Copy, Debug, EncodeLabelValue, Eq, Hash, PartialEq)]
#[expect(non_camel_case_types, reason = "label values are lower case")]
enum EvictionResult {
    evicted,
    postponed,
    doubt,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct EvictionLabels {
    zone: String,
    result: EvictionResult,
}

/// Evictions, by zone and result; clones share the count.
#[derive(Clone, Debug, Default)]
pub(super) struct EvictionMetrics(Family<EvictionLabels, Counter>);

impl EvictionMetrics {
    pub(super) fn register(&self, scheduler: &mut Registry) {
        let help = "Evictions from nodes of revocable zones that are closed, by zone and result";
        scheduler.register("evictions", help, self.0.clone());
    }
}

impl Metrics {
    /// Counts the answer to an eviction from a node of this zone; a pod that was gone already was not evicted.
    pub fn eviction(&self, zone: &str, outcome: &EvictionOutcome) {
        let result = match outcome {
            EvictionOutcome::Granted => EvictionResult::evicted,
            EvictionOutcome::Refused(_) => EvictionResult::postponed,
            EvictionOutcome::Doubtful => EvictionResult::doubt,
            EvictionOutcome::Gone => return,
        };
        self.evictions.0.get_or_create(&EvictionLabels { zone: zone.to_owned(), result }).inc();
    }
}
