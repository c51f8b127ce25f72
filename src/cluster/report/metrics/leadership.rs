//! Whether this process leads, and how often that has changed.

use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};

/// Whether this process leads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Leads {
    /// It does.
    Yes,
    /// It does not.
    No,
}

/// The state and its changes; clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct LeaderMetrics {
    leader: Gauge,
    transitions: Counter,
}

impl LeaderMetrics {
    pub(super) fn register(&self, scheduler: &mut Registry) {
        scheduler.register("leader", "1 while this process may bind", self.leader.clone());
        let help = "How often this process began or ceased to lead";
        scheduler.register("leader_transitions", help, self.transitions.clone());
    }

    /// Records that this process began or ceased to lead.
    pub(super) fn changed(&self, leads: Leads) {
        self.leader.set(i64::from(leads == Leads::Yes));
        self.transitions.inc();
    }
}
