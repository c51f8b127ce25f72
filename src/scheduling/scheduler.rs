//! The scheduler: owns the snapshot, the queue and the nodes' flows, takes [`Event`]s, and says what is to be done.
//!
//! A state machine without a client or a clock. [`Scheduler::observe`] takes in what happened; [`Scheduler::settle`] then
//! decides all that can be decided. The order of events within one `observe` run does not change what is right, only when.

mod audit;
mod binding_cycle;
mod direct;
mod evict;
mod gangs;
mod objects;
mod observe;
mod read;
mod schedule;
mod scheduling_cycle;
mod serve;
#[cfg(test)]
mod tests;
mod view;
mod zones;

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::{
    effect::Effect,
    event::{Computed, Event, NodeChange, ObjectChange, PodChange, QuotaChange, ReadAnswer},
    finding::Findings,
    model::{
        claim_use::DeviceClaims, kept_room::RoomTerms, measure::Measure, plugin_arguments::PluginArguments,
        tdm::RevocableZones,
    },
    node_flow::{Course, NodeFlowInput},
    plan::preemption::Rules,
    plugin::score::weights::ScoreWeights,
    prebind::PrebindInput,
    preempt::{Nominated, PreemptInput},
    snapshot::Snapshot,
    world::ledger::EndedCharges,
};
use audit::Audits;
use binding_cycle::{BindingCycle, kept_rooms::RoomKeeping};
use evict::{EvictionView, Evictions};
use scheduling_cycle::{conditions::ConditionInput, mix, outbox::Outbox};

pub use scheduling_cycle::{
    directed::{Directed, Untaken},
    scheduling_queue::Pace,
};
pub use view::SchedulerView;

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
    /// From when and for how long room is kept for pods that fit nowhere; `None`: none is.
    pub rooms: Option<RoomTerms>,
    /// The revocable zones and their windows.
    pub zones: RevocableZones,
    /// For how long the bound pods of a gang wait for the others; `None`: every pod is placed alone.
    pub gangs: Option<SignedDuration>,
    /// How many percent of the cluster's cards the pods of one namespace may hold while they wait for volumes; one pod or one gang may hold more.
    pub held_percent: u32,
    /// Whether claims of devices are served.
    pub claims: DeviceClaims,
    /// Which pods a turn decides.
    pub pace: Pace,
}

/// What can be counted of the scheduler's work, and of pods.
#[derive(Debug)]
pub struct MeasuredWork {
    /// Of its work.
    pub measures: Vec<Measure>,
    /// What pods held that have ended, or hold something else now.
    pub ended: EndedCharges,
}

/// The scheduler.
#[derive(Debug)]
pub struct Scheduler {
    /// The cluster, the pods that want a place, and what becomes of decisions.
    binding: BindingCycle,
    /// Pods that leave nodes of closed zones.
    evictions: Evictions,
    /// What is found wrong on nodes.
    findings: Findings,
    /// Whether all of that is what the pods say.
    audits: Audits,
}

impl Scheduler {
    /// A scheduler that has seen nothing yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            binding: BindingCycle::new(settings),
            evictions: Evictions::default(),
            findings: Findings::default(),
            audits: Audits::default(),
        }
    }

    /// A scheduler that has seen nothing yet and only looks on: it decides nothing and wants nothing done, ever.
    pub fn standing_by(settings: Settings) -> Self {
        Self::new(Settings { pace: Pace::Standby, ..settings })
    }

    /// Takes in what happened.
    pub fn observe(&mut self, event: Event, now: Timestamp) {
        self.watch_zones(now);
        let Some(event) = self.binding.cycle.duty.synced.admit(event) else { return };
        self.take_event(event, now);
        for event in self.binding.cycle.duty.synced.take_early() {
            self.take_event(event, now);
        }
    }

    fn take_event(&mut self, event: Event, now: Timestamp) {
        match event {
            Event::Pod(PodChange::Listed(pods)) => self.resync_pods(pods, now),
            Event::Pod(PodChange::Seen(pod)) => self.see_pod(pod, now),
            Event::Pod(PodChange::Gone(uid)) => self.miss_pod(&uid),
            Event::Pod(PodChange::Ended(uid)) => self.lose_pod(&uid),
            Event::Node(NodeChange::Listed(nodes)) => self.resync_nodes(nodes, now),
            Event::Node(NodeChange::Seen(node)) => self.see_node(*node, now),
            Event::Node(NodeChange::Gone(name)) => self.lose_node(&name),
            Event::Quota(QuotaChange::Listed(quotas)) => self.binding.cycle.resync_quotas(quotas),
            Event::Quota(QuotaChange::Seen(quota)) => self.binding.cycle.see_quota(quota),
            Event::Quota(QuotaChange::Gone(key)) => self.binding.cycle.lose_quota(&key),
            Event::Object(ObjectChange::Listed(kind, objects)) => self.resync_objects(kind, objects, now),
            Event::Object(ObjectChange::Unserved(kind)) => {
                self.resync_objects(kind, Vec::new(), now);
                self.binding.cycle.snapshot.note_unserved(kind);
                self.binding.cycle.wake_gangs(kind, None);
            }
            Event::Object(ObjectChange::OtherSchedulers(others)) => {
                self.binding.flows.note_other_schedulers(others, now);
            }
            Event::Object(ObjectChange::Seen(object)) => {
                let (kind, name) = (object.kind(), object.name());
                let before = self.snapshot().objects().version();
                self.put_object(object, now);
                // What Berth writes into the status of a PodGroup changes nothing for its pods.
                if self.snapshot().objects().version() != before {
                    self.binding.cycle.wake_gangs(kind, Some(&name));
                }
            }
            Event::Object(ObjectChange::Gone(kind, name)) => {
                self.take_object(kind, &name, now);
                self.binding.cycle.wake_gangs(kind, Some(&name));
            }
            Event::LockAnswered { pod, node, locks, outcome } => {
                self.binding.advance(&node, NodeFlowInput::LockAnswered { pod: &pod, locks, outcome });
            }
            Event::BindAnswered { pod, node, outcome } => {
                self.binding.advance(&node, NodeFlowInput::BindAnswered { pod: &pod, outcome });
            }
            Event::Prebound { pod, write, outcome } => {
                self.binding.advance_prebind(PrebindInput::Answered { pod: &pod, write: &write, outcome });
            }
            Event::Withdrawn { pod, node, outcome } => {
                self.binding.advance(&node, NodeFlowInput::Withdrawn { pod: &pod, outcome });
            }
            Event::Nominated { pod, node, room, outcome } => {
                let (stated, outcome) = (&Nominated { node, room }, &outcome);
                self.binding.advance_preempt(PreemptInput::Nominated { pod: &pod, stated, outcome });
                self.binding.cycle.advance_conditions(ConditionInput::Freed(&pod.uid));
            }
            Event::Preempted { pod, preemptor, outcome } => {
                let (pod, preemptor, outcome) = (&pod, &preemptor, &outcome);
                self.binding.advance_preempt(PreemptInput::Deleted { pod, preemptor, outcome });
            }
            Event::EvictionAnswered { eviction, outcome } => {
                self.binding.cycle.outbox.effects.extend(self.evictions.answered(eviction, outcome, now));
            }
            Event::Read(ReadAnswer::Pod { pod, found }) => self.pod_read(&pod, found, now),
            Event::LockReleased { node, resource_version, locks, outcome } => {
                self.binding.advance(&node, NodeFlowInput::LockReleased { resource_version, locks, outcome });
            }
            Event::Read(ReadAnswer::Node { node, found, pods }) => self.node_read(&node, found, pods, now),
            Event::Read(ReadAnswer::Holder { owner, since, found }) => {
                self.holder_read(&owner, since, found, now);
            }
            Event::Told { pod, message, outcome } => {
                let pod = &pod.uid;
                self.binding.cycle.advance_conditions(ConditionInput::Told { pod, message, outcome, now });
            }
            Event::Computed(Computed::Claims(compared)) => self.binding.cycle.claims_compared(compared),
            Event::Computed(Computed::Mix(renewed)) => {
                self.binding.cycle.snapshot.packing_mut().renew(renewed);
            }
            Event::Hinted(ask) => self.binding.cycle.prepare(&ask),
            Event::Vacated { node, until } => self.binding.advance(&node, NodeFlowInput::Vacated(until)),
            Event::Directed { pod, node } => self.binding.direct(&pod, &node, now),
            Event::Undirected { pod } => self.binding.undirect(&pod),
            Event::Tick => {}
        }
    }

    /// From now on nothing new is decided: pods whose lock was asked for or whose Binding was sent are carried through, and no
    /// other is locked.
    pub fn drain(&mut self) {
        self.binding.cycle.duty.course = Course::Draining;
        self.binding.flows.touch_all();
    }

    /// Decides all that can be decided, and says what is to be done for it.
    pub fn settle(&mut self, now: Timestamp) -> Vec<Effect> {
        self.binding.cycle.queue.begin_turn(now);
        self.watch_zones(now);
        self.binding.wake_helped();
        if self.binding.cycle.is_synced() {
            mix::count_claims(&mut self.binding.cycle);
            mix::renew(&mut self.binding.cycle);
            self.meet_deadlines(now);
            self.binding.advance_prebinds(now);
            self.binding.advance_prebind(PrebindInput::TimePassed);
            self.binding.advance_preempt(PreemptInput::TimePassed);
            if let Some(rooms) = RoomKeeping::of(&mut self.binding) {
                rooms.go_on(now);
            }
            if self.binding.cycle.duty.course == Course::Onward {
                self.roll_back_gangs(now);
            }
            self.binding.wake_moved();
            self.schedule(now);
            self.serve_nodes(now);
            if self.binding.cycle.duty.course != Course::Standby {
                let evictions = self.evictions.when_due(EvictionView::of(&self.binding.cycle), now);
                self.binding.cycle.outbox.effects.extend(evictions);
                self.audits.audit(&mut self.binding, now);
                self.binding.wake_moved();
                self.schedule(now);
                self.serve_nodes(now);
            }
        }
        self.binding.cycle.queue.charge_turn(self.binding.cycle.classes.take_steps());
        let effects = std::mem::take(&mut self.binding.cycle.outbox.effects);
        // Of one that stands by nobody asks what it measures.
        if self.binding.cycle.duty.course == Course::Standby {
            return Vec::new();
        }
        let steps = self.binding.cycle.queue.steps();
        self.binding.cycle.outbox.measures.extend((steps > 0).then_some(Measure::Steps(steps)));
        effects
    }

    /// The cluster as it stands.
    pub fn snapshot(&self) -> &Snapshot {
        &self.binding.cycle.snapshot
    }

    /// What others may see of it.
    pub fn view(&self) -> SchedulerView<'_> {
        SchedulerView::of(&self.binding)
    }

    /// What was measured since this was last asked.
    pub fn take_measured(&mut self) -> MeasuredWork {
        let Outbox { measures, ended, .. } = &mut self.binding.cycle.outbox;
        MeasuredWork { measures: std::mem::take(measures), ended: std::mem::take(ended) }
    }
}
