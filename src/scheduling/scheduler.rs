//! The scheduler: owns the snapshot, the queue and the nodes' flows, takes [`Event`]s, and says what is to be done.
//!
//! A state machine without a client or a clock. [`Scheduler::observe`] takes in what happened; [`Scheduler::settle`] then
//! decides all that can be decided. The order of events within one `observe` run does not change what is right, only when.

mod alike;
mod audit;
mod compare;
mod decide;
mod direct;
mod evict;
mod gang;
mod gangs;
mod node_flows;
mod objects;
mod observe;
mod pods;
mod prebind;
mod preempt;
mod quota;
mod reports;
mod scheduling_queue;
mod serve;
mod show;
mod sync;
mod tell;
#[cfg(test)]
mod tests;
mod unlisted;
mod wake;
mod zones;

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::{
    decide::class::Classes,
    effect::Effect,
    event::Event,
    model::{
        claim_use::DeviceClaims, kind::Kind, measure::Measure, message::Details, name::Uid,
        plugin_arguments::PluginArguments, tdm::RevocableZones,
    },
    node_flow::{Course, NodeFlowInput, NodeFlows},
    plan::preemption::Rules,
    plugin::score::weights::ScoreWeights,
    prebind::{PrebindInput, Prebinding},
    preempt::{PreemptInput, Preempting},
    snapshot::Snapshot,
};
use compare::CLAIM_ALLOWANCE;
use evict::Evictions;
use gang::Gangs;
use pods::Pods;
use reports::{Outbox, Reports};
use scheduling_queue::{PodProgress, Precedence, SchedulingQueue};
use sync::Duty;

pub use direct::Directed;

/// What the scheduler is told once.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The dialects' own resources, which a node need not advertise.
    pub device_resources: BTreeSet<String>,
    /// How long a node's agent may owe an answer, and how long a foreign lock without a living holder is respected.
    pub lock_expiry: SignedDuration,
    /// By how much each plugin's score of a node is multiplied.
    pub weights: ScoreWeights,
    /// What is said to single plugins.
    pub arguments: PluginArguments,
    /// By which rules pods are preempted; `None`: none are.
    pub preemption: Option<Rules>,
    /// The revocable zones and their windows.
    pub zones: RevocableZones,
    /// For how long the bound pods of a gang wait for the others; `None`: every pod is placed alone.
    pub gangs: Option<SignedDuration>,
    /// How much of a message stands where the users of a namespace read it.
    pub details: Details,
    /// How many percent of the cluster's cards the pods of one namespace may hold while they wait for volumes; one pod or one gang may hold more.
    pub held_percent: u32,
    /// Whether claims of devices are served.
    pub claims: DeviceClaims,
}

/// The scheduler.
#[derive(Debug)]
pub struct Scheduler {
    /// Nodes, charges, and other objects that decide.
    snapshot: Snapshot,
    /// Every pod that was seen.
    pods: Pods,
    /// What pods with equal asks are known to fit.
    classes: Classes,
    /// How far each pod is, and where those wait that are to be decided.
    queue: SchedulingQueue,
    /// Pods that are placed together.
    gangs: Gangs,
    /// Preemptions under way.
    preempting: Preempting,
    /// Pods whose claims are being bound.
    prebinding: Prebinding,
    /// What goes on at each node.
    flows: NodeFlows,
    /// Pods that leave nodes of closed zones.
    evictions: Evictions,
    /// What it may decide.
    duty: Duty,
    /// What people are told.
    reports: Reports,
    outbox: Outbox,
}

impl Scheduler {
    /// A scheduler that has seen nothing yet.
    pub fn new(settings: Settings) -> Self {
        let Settings {
            device_resources,
            lock_expiry,
            weights,
            arguments,
            preemption,
            zones,
            gangs,
            details,
            held_percent,
            claims,
        } = settings;
        Self {
            snapshot: Snapshot::new(device_resources, arguments).divided(zones).awaiting(claims),
            classes: Classes::new(weights).bounded(CLAIM_ALLOWANCE),
            pods: Pods::default(),
            queue: SchedulingQueue::default(),
            gangs: Gangs::new(gangs),
            preempting: Preempting::new(preemption),
            prebinding: Prebinding::new(held_percent),
            flows: NodeFlows::new(lock_expiry),
            evictions: Evictions::default(),
            duty: Duty::default(),
            reports: Reports { details, ..Reports::default() },
            outbox: Outbox::default(),
        }
    }

    /// A scheduler that has seen nothing yet and only looks on: it decides nothing and wants nothing done, ever.
    pub fn standing_by(settings: Settings) -> Self {
        let mut scheduler = Self::new(settings);
        scheduler.duty.course = Course::Standby;
        scheduler.queue = scheduler.queue.standing_by();
        scheduler.gangs = scheduler.gangs.standing_by();
        scheduler
    }

    /// Takes in what happened.
    pub fn observe(&mut self, event: Event, now: Timestamp) {
        self.watch_zones(now);
        let Some(event) = self.duty.synced.admit(event) else { return };
        self.take_event(event, now);
        for event in self.duty.synced.take_early() {
            self.take_event(event, now);
        }
    }

    fn take_event(&mut self, event: Event, now: Timestamp) {
        match event {
            Event::Pods(pods) => self.resync_pods(pods, now),
            Event::PodSeen(pod) => self.see_pod(*pod, now),
            Event::PodGone(uid) => self.miss_pod(&uid),
            Event::PodEnded(uid) => self.lose_pod(&uid),
            Event::Nodes(nodes) => self.resync_nodes(nodes, now),
            Event::NodeSeen(node) => self.see_node(*node, now),
            Event::NodeGone(name) => self.lose_node(&name),
            Event::Quotas(quotas) => self.resync_quotas(quotas),
            Event::QuotaSeen(quota) => self.see_quota(quota),
            Event::QuotaGone(key) => self.lose_quota(&key),
            Event::Listed(kind, objects) => self.resync_objects(kind, objects, now),
            Event::Unserved(kind) => self.miss_kind(kind, now),
            Event::Seen(object) => self.see_object(object, now),
            Event::Gone(kind, name) => self.lose_object(kind, &name, now),
            Event::LockAnswered { pod, node, locks, outcome } => {
                self.advance(&node, NodeFlowInput::LockAnswered { pod: &pod, locks, outcome });
            }
            Event::BindAnswered { pod, node, outcome } => {
                self.advance(&node, NodeFlowInput::BindAnswered { pod: &pod, outcome });
            }
            Event::Prebound { pod, write, outcome } => {
                self.advance_prebind(PrebindInput::Answered { pod: &pod, write: &write, outcome });
            }
            Event::Withdrawn { pod, node, outcome } => {
                self.advance(&node, NodeFlowInput::Withdrawn { pod: &pod, outcome });
            }
            Event::Nominated { pod, node, outcome } => {
                let (node, outcome) = (node.as_ref(), &outcome);
                self.advance_preempt(PreemptInput::Nominated { pod: &pod, node, outcome });
                self.tell(&pod.uid);
            }
            Event::Preempted { pod, preemptor, outcome } => {
                let (pod, preemptor, outcome) = (&pod, &preemptor, &outcome);
                self.advance_preempt(PreemptInput::Deleted { pod, preemptor, outcome });
            }
            Event::EvictionAnswered { eviction, outcome } => {
                self.outbox.effects.extend(self.evictions.answered(eviction, outcome, now));
            }
            Event::PodRead { pod, found } => self.pod_read(&pod, found, now),
            Event::LockReleased { node, outcome } => {
                self.advance(&node, NodeFlowInput::LockReleased(outcome));
            }
            Event::NodeRead { node, found, pods } => self.node_read(&node, found, pods, now),
            Event::HolderRead { owner, since, found } => self.holder_read(&owner, since, found, now),
            Event::Told { pod, message, outcome } => self.told(&pod, message, outcome, now),
            Event::ClaimsCompared(compared) => self.claims_compared(compared),
            Event::Hinted(ask) => self.prepare(&ask),
            Event::Vacated { node, until } => self.advance(&node, NodeFlowInput::Vacated(until)),
            Event::Directed { pod, node } => self.direct(&pod, &node, now),
            Event::Undirected { pod } => self.undirect(&pod),
            Event::Tick => {}
        }
    }

    /// From now on nothing new is decided: pods whose lock was asked for or whose Binding was sent are carried through, and no
    /// other is locked.
    pub fn drain(&mut self) {
        self.duty.course = Course::Draining;
        self.flows.touch_all();
    }

    /// Whether nothing is half done. Only one that drains stays so.
    pub fn is_drained(&self) -> bool {
        self.flows.serve_none()
    }

    /// Decides all that can be decided, and says what is to be done for it.
    pub fn settle(&mut self, now: Timestamp) -> Vec<Effect> {
        self.queue.begin_turn(now);
        self.watch_zones(now);
        self.wake_helped();
        if self.is_synced() {
            self.meet_deadlines(now);
            self.advance_prebinds(now);
            self.advance_prebind(PrebindInput::TimePassed);
            self.advance_preempt(PreemptInput::TimePassed);
            if self.duty.course == Course::Onward {
                self.roll_back_gangs(now);
            }
            self.wake_moved();
            self.schedule(now);
            self.serve_nodes(now);
            if self.duty.course != Course::Standby {
                self.evict_when_due(now);
                self.audit(now);
                self.wake_moved();
                self.schedule(now);
                self.serve_nodes(now);
            }
        }
        self.queue.charge_turn(self.classes.take_steps());
        let effects = std::mem::take(&mut self.outbox.effects);
        // Of one that stands by nobody asks what it measures.
        if self.duty.course == Course::Standby {
            return Vec::new();
        }
        let steps = self.queue.steps();
        self.outbox.measures.extend((steps > 0).then_some(Measure::Steps(steps)));
        effects
    }

    /// Whether pods, nodes and quotas have been listed: the ledger is complete.
    pub fn is_synced(&self) -> bool {
        self.duty.synced.is_complete() && self.snapshot.objects().are_listed(&[Kind::Namespace])
    }

    /// The cluster as it stands.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Forgets a pod's charge; its node has more room and wakes who waits for that.
    fn release(&mut self, uid: &Uid) {
        if let Some(charge) = self.snapshot.release(uid) {
            self.wake(&charge.node);
            self.wake_within_quota(&charge.namespace);
            self.flows.touch(&charge.node);
        }
    }

    /// A node would have the pod: it waits for nothing but its turn there.
    fn note_decided(&mut self, uid: &Uid) {
        if let Some(entry) = self.pods.get_mut(uid) {
            (entry.reason, entry.blame) = (None, None);
        }
        self.queue.end_backoff(uid);
    }
}
