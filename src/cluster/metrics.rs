//! What the binder counts, by Prometheus' conventions.

use std::time::Duration;

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

use crate::scheduling::{BindOutcome, LockOutcome};

/// Whether a node's registration can be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Readable {
    /// It can.
    Yes,
    /// It can't: the node is out for GPU pods.
    No,
}

/// Whether this process leads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Leads {
    /// It does.
    Yes,
    /// It does not.
    No,
}

#[derive(Clone, Copy, Debug, EncodeLabelValue, Eq, Hash, PartialEq)]
enum Outcome {
    #[expect(non_camel_case_types, reason = "label values are lower case")]
    success,
    #[expect(non_camel_case_types, reason = "label values are lower case")]
    doubt,
    #[expect(non_camel_case_types, reason = "label values are lower case")]
    refused,
}

#[derive(Clone, Copy, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct OutcomeLabels {
    outcome: Outcome,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct NodeLabels {
    node: String,
}

#[derive(Clone, Copy, Debug, EncodeLabelValue, Eq, Hash, PartialEq)]
enum Queue {
    #[expect(non_camel_case_types, reason = "label values are lower case")]
    active,
    #[expect(non_camel_case_types, reason = "label values are lower case")]
    unschedulable,
    #[expect(non_camel_case_types, reason = "label values are lower case")]
    in_line,
}

#[derive(Clone, Copy, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct QueueLabels {
    queue: Queue,
}

/// The binder's metrics; clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    bindings: Family<OutcomeLabels, Counter>,
    binding_duration: Histogram,
    locks: Family<OutcomeLabels, Counter>,
    pending_pods: Family<QueueLabels, Gauge>,
    unreadable_registrations: Family<NodeLabels, Gauge>,
    overcommitted_cards: Family<NodeLabels, Gauge>,
    synced: Gauge,
    drift: Counter,
    leader: Gauge,
    leader_transitions: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            bindings: Family::default(),
            binding_duration: Histogram::new(exponential_buckets(0.001, 2.0, 14)),
            locks: Family::default(),
            pending_pods: Family::default(),
            unreadable_registrations: Family::default(),
            overcommitted_cards: Family::default(),
            synced: Gauge::default(),
            drift: Counter::default(),
            leader: Gauge::default(),
            leader_transitions: Counter::default(),
        }
    }
}

impl Metrics {
    /// Registers every metric below this registry.
    pub fn register(&self, registry: &mut Registry) {
        let scheduler = registry.sub_registry_with_prefix("berth_scheduler");
        scheduler.register("bindings", "Bindings sent, by what came of them", self.bindings.clone());
        let help = "Seconds from sending a Binding to its answer";
        scheduler.register("binding_duration_seconds", help, self.binding_duration.clone());
        scheduler.register("node_locks", "Node locks asked for, by what came of them", self.locks.clone());
        scheduler.register("pending_pods", "Pods that wait, by where they wait", self.pending_pods.clone());
        let help = "1 for a node whose registered cards can't be read: it is out for GPU pods";
        scheduler.register("unreadable_node_registration", help, self.unreadable_registrations.clone());
        let help = "Cards of a node of which pods hold more than there is; nodes without any are not listed";
        scheduler.register("overcommitted_cards", help, self.overcommitted_cards.clone());
        scheduler.register("synced", "1 once pods and nodes have been listed", self.synced.clone());
        let help = "Findings of the audit: the ledger, a line or a queue was not what the pods say, and was put right";
        scheduler.register("drift", help, self.drift.clone());
        scheduler.register("leader", "1 while this process may bind", self.leader.clone());
        let help = "How often this process began or ceased to lead";
        scheduler.register("leader_transitions", help, self.leader_transitions.clone());
    }

    /// A Binding was answered after so long.
    pub fn binding(&self, outcome: &BindOutcome, took: Duration) {
        let outcome = match outcome {
            BindOutcome::Bound => Outcome::success,
            BindOutcome::Doubtful(_) => Outcome::doubt,
            BindOutcome::Refused(_) => Outcome::refused,
        };
        self.bindings.get_or_create(&OutcomeLabels { outcome }).inc();
        self.binding_duration.observe(took.as_secs_f64());
    }

    /// A lock was answered.
    pub fn lock(&self, outcome: &LockOutcome) {
        let outcome = match outcome {
            LockOutcome::Taken { .. } => Outcome::success,
            LockOutcome::Stale | LockOutcome::Failed(_) => Outcome::doubt,
            LockOutcome::Refused(_) => Outcome::refused,
        };
        self.locks.get_or_create(&OutcomeLabels { outcome }).inc();
    }

    /// Where pods wait: to be decided, for a node to change, in lines.
    pub fn queue(&self, (active, unschedulable, in_line): (usize, usize, usize), synced: bool) {
        let depths =
            [(Queue::active, active), (Queue::unschedulable, unschedulable), (Queue::in_line, in_line)];
        for (queue, depth) in depths {
            let depth = i64::try_from(depth).unwrap_or(i64::MAX);
            self.pending_pods.get_or_create(&QueueLabels { queue }).set(depth);
        }
        self.synced.set(i64::from(synced));
    }

    /// Another leads: what only the leader can say is not said here any more.
    pub fn stands_by(&self) {
        self.queue((0, 0, 0), false);
        self.unreadable_registrations.clear();
        self.overcommitted_cards.clear();
    }

    /// Of so many cards of the node more is held than there is.
    pub fn overcommitted(&self, node: &str, cards: usize) {
        let labels = NodeLabels { node: node.to_owned() };
        match i64::try_from(cards).unwrap_or(i64::MAX) {
            0 => drop(self.overcommitted_cards.remove(&labels)),
            cards => drop(self.overcommitted_cards.get_or_create(&labels).set(cards)),
        }
    }

    /// What was remembered was not what it should have been.
    pub fn drift(&self) {
        self.drift.inc();
    }

    /// How often what was remembered was not what it should have been.
    pub fn drifts(&self) -> u64 {
        self.drift.get()
    }

    /// This process began or ceased to lead.
    pub fn leader(&self, leads: Leads) {
        self.leader.set(i64::from(leads == Leads::Yes));
        self.leader_transitions.inc();
    }

    /// Whether a node's registration can be read; readable ones are not listed.
    pub fn node_registration(&self, node: &str, readable: Readable) {
        let labels = NodeLabels { node: node.to_owned() };
        match readable {
            Readable::Yes => drop(self.unreadable_registrations.remove(&labels)),
            Readable::No => drop(self.unreadable_registrations.get_or_create(&labels).set(1)),
        }
    }
}
