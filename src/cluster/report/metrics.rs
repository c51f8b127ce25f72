//! The binder's metrics, named by Prometheus' conventions.

mod advice;
mod bindings;
mod decisions;
mod evictions;
mod findings;
mod gangs;
mod labels;
mod leadership;
mod ledger;
mod locks;
mod state;
mod usage;

use std::time::Duration;

use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use crate::{
    cluster::informer::unread::UnreadObjects,
    scheduling::{BindOutcome, Event, FindingCounts, LockOutcome, Measure, Standing},
};
use advice::AdviceMetrics;
use bindings::BindingMetrics;
use decisions::DecisionMetrics;
use evictions::EvictionMetrics;
use findings::FindingMetrics;
use gangs::GangMetrics;
use labels::WriteLabels;
pub use labels::Written;
use leadership::LeaderMetrics;
pub use leadership::Leads;
use ledger::LedgerMetrics;
use locks::LockMetrics;
use state::StateMetrics;
use usage::UsageMetrics;

/// The binder's metrics; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    decisions: DecisionMetrics,
    bindings: BindingMetrics,
    writes: Family<WriteLabels, Counter>,
    evictions: EvictionMetrics,
    gangs: GangMetrics,
    locks: LockMetrics,
    state: StateMetrics,
    findings: FindingMetrics,
    /// Objects that can't be read completely, by kind.
    pub unread_objects: UnreadObjects,
    ledger: LedgerMetrics,
    leadership: LeaderMetrics,
    advice: AdviceMetrics,
}

impl Metrics {
    /// What moving pods would win.
    pub(super) fn advice(&self) -> &AdviceMetrics {
        &self.advice
    }

    /// What was used.
    pub(super) fn usage(&self) -> &UsageMetrics {
        &self.ledger.usage
    }

    /// Registers every metric below this registry, every counter with 0: Prometheus computes a rate from the value before the first event.
    pub fn register(&self, registry: &mut Registry) {
        self.advice.register(registry);
        self.ledger.usage.register(registry);
        let scheduler = registry.sub_registry_with_prefix("berth_scheduler");
        self.decisions.register(scheduler);
        self.bindings.register(scheduler);
        let help = "Writes to the API server, by what is written; the Lease is not among them";
        scheduler.register("api_writes", help, self.writes.clone());
        for kind in Written::ALL {
            drop(self.writes.get_or_create(&WriteLabels { kind }));
        }
        self.evictions.register(scheduler);
        self.gangs.register(scheduler);
        self.locks.register(scheduler);
        self.state.register(scheduler);
        self.findings.register(scheduler);
        let help = "Objects of a kind of which not every field that Berth reads can be read; kinds without such objects are not listed";
        scheduler.register("unreadable_objects", help, self.unread_objects.family());
        self.ledger.register(scheduler);
        self.leadership.register(scheduler);
    }

    /// Counts the scheduler's measurements of a turn that took this long.
    pub fn work(&self, measures: &[Measure], took: Duration) {
        let attempts = measures.iter().filter(|measure| matches!(measure, Measure::Attempt(_))).count();
        let share = took / u32::try_from(attempts.max(1)).unwrap_or(u32::MAX);
        for measure in measures {
            match measure {
                Measure::Attempt(attempt) => self.decisions.count(*attempt, share),
                Measure::Preemption(victims) => self.decisions.preemption(*victims),
                Measure::Gang(attempt) => self.gangs.count(*attempt),
                Measure::Flushed => self.decisions.flushed(),
                Measure::RoomGivenUp => self.decisions.room_given_up(),
                Measure::LockWait(time) => self.locks.waited(*time),
                Measure::LockHold(time) => self.locks.held(*time),
                Measure::Bound(time) => self.bindings.bound(*time),
                Measure::Steps(steps) => self.decisions.steps(*steps),
            }
        }
    }

    /// Counts a write to the API server.
    pub fn write(&self, kind: Written) {
        self.writes.get_or_create(&WriteLabels { kind }).inc();
    }

    /// Counts the answer to a Binding, with its time.
    pub fn binding(&self, outcome: &BindOutcome, took: Duration) {
        self.bindings.answered(outcome, took);
    }

    /// Counts the answer to a node lock.
    pub fn lock(&self, outcome: &LockOutcome) {
        self.locks.answered(outcome);
    }

    /// Sets the gauges from the state of the scheduler.
    pub fn standing(&self, standing: &Standing) {
        self.state.set(standing);
        self.locks.longest_wait(standing.longest_lock_wait);
    }

    /// Clears the gauges that only the leader sets, when another replica leads.
    pub fn stands_by(&self) {
        self.standing(&Standing::default());
        self.findings.clear();
        self.ledger.usage.clear();
    }

    /// Whether a replica that does not lead has listed what it watches.
    pub fn standby_synced(&self, synced: bool) {
        self.state.synced(synced);
    }

    /// Keeps how much is wrong on the node.
    pub fn findings(&self, node: &str, findings: FindingCounts) {
        self.findings.count(node, findings);
    }

    /// Counts a correction of the ledger.
    pub fn drift(&self) {
        self.ledger.drift.inc();
    }

    /// The work of decisions so far, in counted steps.
    pub fn steps(&self) -> u64 {
        self.decisions.steps_taken()
    }

    /// The number of corrections of the ledger.
    pub fn drifts(&self) -> u64 {
        self.ledger.drift.get()
    }

    /// Records that this process began or ceased to lead.
    pub fn leader(&self, leads: Leads) {
        self.leadership.changed(leads);
    }

    /// Sets the gauges of nodes with a registration or a Device that can't be read.
    pub fn registrations(&self, event: &Event) {
        self.findings.take_in(event);
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
