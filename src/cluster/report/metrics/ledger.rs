//! What the ledger adds up to over time, and how often it had to be corrected.

use prometheus_client::{metrics::counter::Counter, registry::Registry};

use super::usage::UsageMetrics;

/// Of the ledger; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct LedgerMetrics {
    pub(super) drift: Counter,
    pub(super) usage: UsageMetrics,
}

impl LedgerMetrics {
    pub(super) fn register(&self, scheduler: &mut Registry) {
        let help = "Corrections by the audit: the ledger, a line or a queue differed from the pods";
        scheduler.register("drift", help, self.drift.clone());
    }
}
