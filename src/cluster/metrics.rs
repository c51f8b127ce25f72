//! The binder's metrics, named by Prometheus' conventions.

mod evictions;
mod gangs;
mod labels;

use std::{sync::atomic::AtomicU64, time::Duration};

use prometheus_client::{
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

use super::unread::UnreadObjects;
use crate::scheduling::{
    Attempt, BindOutcome, Event, LockOutcome, Measure, Standing,
    model::{kind::Kind, node::NodeInfo},
    world::object::Object,
};
use evictions::Evictions;
use gangs::Gangs;
pub use labels::Written;
use labels::{
    AttemptLabels, AttemptResult, NodeLabels, Outcome, OutcomeLabels, Queue, QueueLabels, WriteLabels,
};

/// Whether this process leads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Leads {
    /// It does.
    Yes,
    /// It does not.
    No,
}

/// The binder's metrics; clones share them.
#[derive(Clone, Debug)]
pub struct Metrics {
    attempts: Family<AttemptLabels, Counter>,
    flushed_pods: Counter,
    steps: Counter,
    preemption_attempts: Counter,
    preemption_victims: Histogram,
    decision_duration: Histogram,
    bindings: Family<OutcomeLabels, Counter>,
    binding_duration: Histogram,
    pod_duration: Histogram,
    locks: Family<OutcomeLabels, Counter>,
    lock_wait: Histogram,
    lock_hold: Histogram,
    longest_lock_wait: Gauge<f64, AtomicU64>,
    writes: Family<WriteLabels, Counter>,
    evictions: Evictions,
    gangs: Gangs,
    pending_pods: Family<QueueLabels, Gauge>,
    silent_agents: Gauge,
    unreadable_registrations: Family<NodeLabels, Gauge>,
    unreadable_devices: Family<NodeLabels, Gauge>,
    unreadable_assignments: Family<NodeLabels, Gauge>,
    /// Objects that can't be read completely, by kind.
    pub unread_objects: UnreadObjects,
    overcommitted_cards: Family<NodeLabels, Gauge>,
    unassigned_pods: Family<NodeLabels, Gauge>,
    synced: Gauge,
    drift: Counter,
    leader: Gauge,
    leader_transitions: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        let seconds = || Histogram::new(exponential_buckets(0.001, 2.0, 20));
        Self {
            attempts: Family::default(),
            flushed_pods: Counter::default(),
            steps: Counter::default(),
            preemption_attempts: Counter::default(),
            preemption_victims: Histogram::new(exponential_buckets(1.0, 2.0, 7)),
            decision_duration: Histogram::new(exponential_buckets(0.000_001, 4.0, 12)),
            bindings: Family::default(),
            binding_duration: Histogram::new(exponential_buckets(0.001, 2.0, 14)),
            pod_duration: seconds(),
            locks: Family::default(),
            lock_wait: seconds(),
            lock_hold: seconds(),
            longest_lock_wait: Gauge::default(),
            writes: Family::default(),
            evictions: Evictions::default(),
            gangs: Gangs::default(),
            pending_pods: Family::default(),
            silent_agents: Gauge::default(),
            unreadable_registrations: Family::default(),
            unreadable_devices: Family::default(),
            unreadable_assignments: Family::default(),
            unread_objects: UnreadObjects::default(),
            overcommitted_cards: Family::default(),
            unassigned_pods: Family::default(),
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
        self.register_work(scheduler);
        self.register_locks(scheduler);
        self.register_state(scheduler);
        self.begin_at_zero();
    }

    /// Initialises every counter with 0, since Prometheus computes a rate from the value before the first event.
    fn begin_at_zero(&self) {
        for result in [AttemptResult::scheduled, AttemptResult::unschedulable, AttemptResult::error] {
            drop(self.attempts.get_or_create(&AttemptLabels { result }));
        }
        for outcome in [Outcome::success, Outcome::throttled, Outcome::doubt, Outcome::refused] {
            drop(self.bindings.get_or_create(&OutcomeLabels { outcome }));
            drop(self.locks.get_or_create(&OutcomeLabels { outcome }));
        }
        for kind in Written::ALL {
            drop(self.writes.get_or_create(&WriteLabels { kind }));
        }
        for queue in [Queue::active, Queue::backoff, Queue::unschedulable, Queue::in_line] {
            drop(self.pending_pods.get_or_create(&QueueLabels { queue }));
        }
    }

    fn register_work(&self, scheduler: &mut Registry) {
        let help =
            "Decisions, by result: a node was found, none was, or the decision could not be carried out";
        scheduler.register("attempts", help, self.attempts.clone());
        let help = "Pods that were tried again because they had waited for five minutes";
        scheduler.register("flushed_pods", help, self.flushed_pods.clone());
        let help = "Work of decisions in counted steps: 66,000 take about a millisecond";
        scheduler.register("steps", help, self.steps.clone());
        let help = "Searches for pods that could be preempted for a pod that fits nowhere";
        scheduler.register("preemption_attempts", help, self.preemption_attempts.clone());
        let help = "Victims of a preemption";
        scheduler.register("preemption_victims", help, self.preemption_victims.clone());
        let help = "Seconds of computing for a decision";
        scheduler.register("decision_duration_seconds", help, self.decision_duration.clone());
        scheduler.register("bindings", "Bindings sent, by result", self.bindings.clone());
        let help = "Seconds from sending a Binding to its answer";
        scheduler.register("binding_duration_seconds", help, self.binding_duration.clone());
        let help = "Seconds from first seeing a pod to its Binding; the count is that of bound pods";
        scheduler.register("pod_scheduling_duration_seconds", help, self.pod_duration.clone());
        let help = "Writes to the API server, by what is written; the Lease is not among them";
        scheduler.register("api_writes", help, self.writes.clone());
        self.evictions.register(scheduler);
        self.gangs.register(scheduler);
    }

    fn register_locks(&self, scheduler: &mut Registry) {
        scheduler.register("node_locks", "Requests for node locks, by result", self.locks.clone());
        let help =
            "Seconds that a decided pod stood in its node's line, until it had the lock or needed none";
        scheduler.register("lock_wait_duration_seconds", help, self.lock_wait.clone());
        let help = "Seconds from taking a node's lock until it is no longer that pod's";
        scheduler.register("lock_hold_duration_seconds", help, self.lock_hold.clone());
        let help = "The longest time that a pod at the head of a node's line has waited, in seconds; its Event names what it waits for";
        scheduler.register("longest_lock_wait_seconds", help, self.longest_lock_wait.clone());
    }

    fn register_state(&self, scheduler: &mut Registry) {
        scheduler.register("pending_pods", "Pods that wait, by where they wait", self.pending_pods.clone());
        let help = "Nodes that get no further pods because their device plugin has not answered in time";
        scheduler.register("silent_agents", help, self.silent_agents.clone());
        let help = "1 for a node whose registered cards can't be read: it gets no GPU pods";
        scheduler.register("unreadable_node_registration", help, self.unreadable_registrations.clone());
        let help = "1 for a node whose Device can't be read: it gets no pods that ask for devices by type";
        scheduler.register("unreadable_device", help, self.unreadable_devices.clone());
        let help = "Objects of a kind of which not every field that Berth reads can be read; kinds without such objects are not listed";
        scheduler.register("unreadable_objects", help, self.unread_objects.family());
        let help = "Pods of a node with an unreadable assignment: the node gets no further pods on these cards; nodes without such pods are not listed";
        scheduler.register("unreadable_pod_assignments", help, self.unreadable_assignments.clone());
        let help = "Cards of a node of which pods hold more than the card has; nodes without such cards are not listed";
        scheduler.register("overcommitted_cards", help, self.overcommitted_cards.clone());
        let help = "Bound pods of a node that request a share and carry no assignment; nodes without any are not listed";
        scheduler.register("unassigned_pods", help, self.unassigned_pods.clone());
        scheduler.register("synced", "1 once pods, nodes and quotas have been listed", self.synced.clone());
        let help = "Corrections by the audit: the ledger, a line or a queue differed from the pods";
        scheduler.register("drift", help, self.drift.clone());
        scheduler.register("leader", "1 while this process may bind", self.leader.clone());
        let help = "How often this process began or ceased to lead";
        scheduler.register("leader_transitions", help, self.leader_transitions.clone());
    }

    /// Counts the scheduler's measurements of a turn that took this long.
    pub fn work(&self, measures: &[Measure], took: Duration) {
        let attempts = measures.iter().filter(|measure| matches!(measure, Measure::Attempt(_))).count();
        let share = took.as_secs_f64() / f64::from(u32::try_from(attempts.max(1)).unwrap_or(u32::MAX));
        for measure in measures {
            match measure {
                Measure::Attempt(attempt) => {
                    let result = match attempt {
                        Attempt::Scheduled => AttemptResult::scheduled,
                        Attempt::Unschedulable => AttemptResult::unschedulable,
                        Attempt::Failed => AttemptResult::error,
                    };
                    self.attempts.get_or_create(&AttemptLabels { result }).inc();
                    self.decision_duration.observe(share);
                }
                Measure::Preemption(victims) => self.note_preemption(*victims),
                Measure::Gang(attempt) => self.gangs.count(*attempt),
                Measure::Flushed => {
                    self.flushed_pods.inc();
                }
                Measure::LockWait(time) => self.lock_wait.observe(time.as_secs_f64()),
                Measure::LockHold(time) => self.lock_hold.observe(time.as_secs_f64()),
                Measure::Bound(time) => self.pod_duration.observe(time.as_secs_f64()),
                Measure::Steps(steps) => {
                    self.steps.inc_by(*steps);
                }
            }
        }
    }

    fn note_preemption(&self, victims: usize) {
        self.preemption_attempts.inc();
        if let Ok(victims) = u32::try_from(victims)
            && victims > 0
        {
            self.preemption_victims.observe(f64::from(victims));
        }
    }

    /// Counts a write to the API server.
    pub fn write(&self, kind: Written) {
        self.writes.get_or_create(&WriteLabels { kind }).inc();
    }

    /// Counts the answer to a Binding, with its time.
    pub fn binding(&self, outcome: &BindOutcome, took: Duration) {
        let outcome = match outcome {
            BindOutcome::Bound => Outcome::success,
            BindOutcome::Throttled(_) => Outcome::throttled,
            BindOutcome::Doubtful(_) => Outcome::doubt,
            BindOutcome::Refused(_) => Outcome::refused,
        };
        self.bindings.get_or_create(&OutcomeLabels { outcome }).inc();
        self.binding_duration.observe(took.as_secs_f64());
    }

    /// Counts the answer to a node lock.
    pub fn lock(&self, outcome: &LockOutcome) {
        let outcome = match outcome {
            LockOutcome::Taken { .. } => Outcome::success,
            LockOutcome::Throttled(_) => Outcome::throttled,
            LockOutcome::Stale | LockOutcome::Failed(_) => Outcome::doubt,
            LockOutcome::Refused(_) => Outcome::refused,
        };
        self.locks.get_or_create(&OutcomeLabels { outcome }).inc();
    }

    /// Sets the gauges from the state of the scheduler.
    pub fn standing(&self, standing: &Standing) {
        let depths = [
            (Queue::active, standing.active),
            (Queue::backoff, standing.backing_off),
            (Queue::unschedulable, standing.unschedulable),
            (Queue::in_line, standing.in_line),
        ];
        for (queue, depth) in depths {
            self.pending_pods.get_or_create(&QueueLabels { queue }).set(count(depth));
        }
        self.silent_agents.set(count(standing.silent_agents));
        self.longest_lock_wait.set(standing.longest_lock_wait.as_secs_f64());
        self.synced.set(i64::from(standing.synced));
    }

    /// Clears the gauges that only the leader sets, when another replica leads.
    pub fn stands_by(&self) {
        self.standing(&Standing::default());
        self.unreadable_registrations.clear();
        self.unreadable_devices.clear();
        self.unreadable_assignments.clear();
        self.overcommitted_cards.clear();
        self.unassigned_pods.clear();
    }

    /// Whether a replica that does not lead has listed what it watches.
    pub fn standby_synced(&self, synced: bool) {
        self.synced.set(i64::from(synced));
    }

    /// So many bound pods of the node request a share and carry no assignment.
    pub fn unassigned_pods(&self, node: &str, pods: usize) {
        list(&self.unassigned_pods, node, pods);
    }

    /// Sets how many cards of the node are overcommitted.
    pub fn overcommitted(&self, node: &str, cards: usize) {
        list(&self.overcommitted_cards, node, cards);
    }

    /// Sets how many pods of the node have an unreadable assignment.
    pub fn unreadable_assignments(&self, node: &str, pods: usize) {
        list(&self.unreadable_assignments, node, pods);
    }

    /// Counts a correction of the ledger.
    pub fn drift(&self) {
        self.drift.inc();
    }

    /// The work of decisions so far, in counted steps.
    pub fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// The number of corrections of the ledger.
    pub fn drifts(&self) -> u64 {
        self.drift.get()
    }

    /// Records that this process began or ceased to lead.
    pub fn leader(&self, leads: Leads) {
        self.leader.set(i64::from(leads == Leads::Yes));
        self.leader_transitions.inc();
    }

    /// Sets the gauge of nodes with an unreadable registration.
    pub fn registrations(&self, event: &Event) {
        let gauges = &self.unreadable_registrations;
        let unreadable = |node: &NodeInfo| node.offers.iter().any(|offer| offer.inventory.is_none());
        let take_in = |node: &NodeInfo| list(gauges, &node.name, usize::from(unreadable(node)));
        match event {
            Event::Nodes(nodes) => {
                gauges.clear();
                nodes.iter().for_each(take_in);
            }
            Event::NodeSeen(node) => take_in(node),
            Event::NodeGone(name) => list(gauges, name, 0),
            _ => self.devices(event),
        }
    }

    /// Keeps which Devices can't be read.
    fn devices(&self, event: &Event) {
        let gauges = &self.unreadable_devices;
        let take_in = |object: &Object| {
            if let Object::Device(node, offer) = object {
                list(gauges, node, usize::from(offer.inventory.is_none()));
            }
        };
        match event {
            Event::Listed(Kind::Device, devices) => {
                gauges.clear();
                devices.iter().for_each(take_in);
            }
            Event::Unserved(Kind::Device) => gauges.clear(),
            Event::Seen(device) => take_in(device),
            Event::Gone(Kind::Device, node) => list(gauges, node, 0),
            _ => {}
        }
    }
}

/// Sets a gauge of a node; with 0 the node is not listed.
fn list(family: &Family<NodeLabels, Gauge>, node: &str, number: usize) {
    let labels = NodeLabels { node: node.to_owned() };
    match count(number) {
        0 => drop(family.remove(&labels)),
        number => drop(family.get_or_create(&labels).set(number)),
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
