//! What moving pods would win, where that is looked for.

use prometheus_client::{metrics::gauge::Gauge, registry::Registry};

/// What moving pods would win; clones share it.
#[derive(Clone, Debug, Default)]
pub(in crate::cluster) struct AdviceMetrics {
    gpus: Gauge,
    pods: Gauge,
}

impl AdviceMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        let moves = registry.sub_registry_with_prefix("berth_moves");
        let help = "GPUs that would become free if pods were moved, as the leader has found with --moves=advise; else 0";
        moves.register("gpus", help, self.gpus.clone());
        let help = "Pods that would have to be moved to free the GPUs of berth_moves_gpus";
        moves.register("pods", help, self.pods.clone());
    }

    /// So many GPUs would become free by so many moves.
    pub(in crate::cluster) fn found(&self, gpus: usize, pods: usize) {
        self.gpus.set(i64::try_from(gpus).unwrap_or(i64::MAX));
        self.pods.set(i64::try_from(pods).unwrap_or(i64::MAX));
    }
}
