//! What a shadow counts, by Prometheus' conventions.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use crate::scheduling::shadow::comparison::Outcome;

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct DecisionLabels {
    outcome: &'static str,
    reason: String,
}

/// The shadow's metrics; clones count together.
#[derive(Clone, Debug)]
pub struct ShadowMetrics {
    decisions: Family<DecisionLabels, Counter>,
    left_pending: Counter,
    rank: Histogram,
    waiting: Gauge,
    synced: Gauge,
}

impl Default for ShadowMetrics {
    fn default() -> Self {
        let ranks = [1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0];
        Self {
            decisions: Family::default(),
            left_pending: Counter::default(),
            rank: Histogram::new(ranks),
            waiting: Gauge::default(),
            synced: Gauge::default(),
        }
    }
}

impl ShadowMetrics {
    /// Registers every metric below this registry.
    pub fn register(&self, registry: &mut Registry) {
        let shadow = registry.sub_registry_with_prefix("berth_shadow");
        let help =
            "Decisions of other schedulers on pods that request shares, by how they compare with Berth's own";
        shadow.register("decisions", help, self.decisions.clone());
        let help = "Pods that another scheduler has left pending although Berth would have placed them";
        shadow.register("left_pending_pods", help, self.left_pending.clone());
        let help = "Rank of the chosen node among the feasible ones, by Berth's score";
        shadow.register("chosen_node_rank", help, self.rank.clone());
        let help = "Pods that request shares and wait for another scheduler";
        shadow.register("waiting_pods", help, self.waiting.clone());
        shadow.register("synced", "1 once pods, nodes and quotas have been listed", self.synced.clone());
        drop(
            self.decisions
                .get_or_create(&DecisionLabels { outcome: Outcome::Same.name(), reason: String::new() }),
        );
    }

    /// One more decision.
    pub(super) fn decided(&self, outcome: Outcome, reason: &str, rank: Option<usize>) {
        let labels = DecisionLabels { outcome: outcome.name(), reason: reason.to_owned() };
        self.decisions.get_or_create(&labels).inc();
        let rank = rank.map(|rank| f64::from(u32::try_from(rank).unwrap_or(u32::MAX)));
        if let Some(rank) = rank {
            self.rank.observe(rank);
        }
    }

    /// One more pod that is left pending.
    pub(super) fn left_pending(&self) {
        self.left_pending.inc();
    }

    /// How things stand.
    pub(super) fn stand(&self, synced: bool, waiting: usize) {
        self.synced.set(i64::from(synced));
        self.waiting.set(i64::try_from(waiting).unwrap_or(i64::MAX));
    }
}
