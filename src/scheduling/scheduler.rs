//! The scheduler: owns the snapshot, the queue and the lines, takes [`Event`]s, and says what is to be done.
//!
//! A state machine without a client or a clock. [`Scheduler::observe`] takes in what happened; [`Scheduler::settle`] then
//! decides all that can be decided. The order of events within one `observe` run does not change what is right, only when.

mod agent;
mod alike;
mod audit;
mod blocked;
mod decide;
mod excess;
mod lock;
mod objects;
mod observe;
mod outcome;
mod prebind;
mod quota;
mod reads;
mod requeue;
mod said;
mod serve;
mod show;
mod sync;
mod tell;
#[cfg(test)]
mod tests;
mod turn;
mod unlisted;
mod unread;
mod withdraw;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};

use super::{
    class::Classes,
    effect::Effect,
    event::Event,
    line::Lines,
    measure::Measure,
    node::NodeName,
    object::Kind,
    pod::{Ask, PodInfo, Uid},
    queue::Queue,
    score::ScoreWeights,
    snapshot::Snapshot,
};
use crate::device::{CardId, LockOwner};
use agent::Silence;
use alike::Rejections;
use lock::{Held, Releasing, Stranger};
use prebind::{Prebind, Undo};
use quota::OverQuota;
use reads::Reads;
use requeue::Requeue;
use said::Said;
use sync::Synced;
use tell::Telling;
use turn::Turn;
use unlisted::Unlisted;
use withdraw::Remnant;

/// What the scheduler is told once.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The dialects' own resources, which a node need not advertise.
    pub device_resources: BTreeSet<String>,
    /// How long a node's agent may owe an answer, and how long a foreign lock without a living holder is respected.
    pub lock_expiry: SignedDuration,
    /// By how much each plugin's score of a node is multiplied.
    pub weights: ScoreWeights,
}

/// Where a pod that wants a place stands.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Work {
    /// Nothing is to be done for it.
    Idle,
    /// In the queue; after a rejection it may have to wait out its backoff there.
    Queued,
    /// No node would have it; it waits for one to change, or for the quota of its namespace where nodes failed for that.
    Waiting(Arc<Ask>),
    /// It would exceed the quota of its namespace.
    OverQuota,
    /// It has claims, and not all kinds that decide on these are listed.
    Unlisted,
    /// It waits out a failure.
    BackingOff,
    /// Decided: its claims are being bound on this node.
    Prebinding(NodeName),
    /// Decided: it stands in this node's line or is being served there.
    InLine(NodeName),
}

#[derive(Debug)]
struct Entry {
    info: PodInfo,
    /// Its place among all pods ever seen.
    seen: u64,
    /// When it was first seen.
    since: Timestamp,
    /// When it joined the line that it stands in.
    lined_up: Option<Timestamp>,
    work: Work,
    /// How often its decision could not be carried out since it was last rejected.
    failures: u32,
    /// How often it was rejected for more than what the nodes are themselves.
    rejections: u32,
    /// Until when it waits after the last of these rejections, where there is other work.
    backoff_until: Option<Timestamp>,
    /// How often its node's agent was reported as silent.
    silence_told: u32,
    /// Why it waits.
    reason: Option<String>,
    telling: Telling,
}

/// What is still to be done.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Course {
    /// Everything.
    #[default]
    Onward,
    /// Only what is half done.
    Draining,
    /// Nothing: another decides, this one looks on.
    Standby,
}

/// The scheduler.
#[derive(Debug)]
pub struct Scheduler {
    settings: Settings,
    snapshot: Snapshot,
    pods: HashMap<Uid, Entry>,
    by_name: HashMap<(Arc<str>, Arc<str>), Uid>,
    queue: Queue,
    turn: Turn,
    classes: Classes,
    /// Pods that wait for the quota of their namespace.
    over_quota: OverQuota,
    /// Waiting pods that a plugin which looks at more than one node has rejected.
    requeue: Requeue,
    /// Why pods were rejected since the last change.
    rejections: Rejections,
    /// Pods with claims that wait for lists of what decides on these.
    unlisted: Unlisted,
    /// Pods whose claims are being bound.
    prebinds: BTreeMap<Uid, Prebind>,
    /// What was written for claims of pods that went elsewhere.
    undos: Vec<Undo>,
    lines: Lines,
    synced: Synced,
    course: Course,
    effects: Vec<Effect>,
    seen: u64,
    /// Whom nodes' locks name, and where.
    holders: BTreeMap<LockOwner, BTreeSet<NodeName>>,
    strangers: BTreeMap<(LockOwner, Timestamp), Stranger>,
    releasing: BTreeMap<NodeName, Releasing>,
    /// Locks that were taken and are not known to have been lost.
    held: BTreeMap<NodeName, Held>,
    /// Nodes whose device plugin has left a pod without an answer, until it answers one.
    silences: BTreeMap<NodeName, Silence>,
    /// Until when a node's device plugin may be at work for a pod that has gone.
    vacated: BTreeMap<NodeName, Timestamp>,
    measures: Vec<Measure>,
    reads: Reads,
    /// Dead pods whose assignments their nodes' agents may still take.
    remnants: BTreeMap<NodeName, BTreeMap<Uid, Remnant>>,
    /// Cards of which more is held than there is, in words.
    excess: Said<CardId>,
    /// Pods of which nobody can tell which cards they hold, and why, as it was said.
    unread: Said<Uid>,
    /// Words that were not heard, and when they are said again.
    retells: BTreeSet<(Timestamp, Uid)>,
    next_audit: Option<Timestamp>,
}

impl Scheduler {
    /// A scheduler that has seen nothing yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            classes: Classes::new(settings.weights),
            snapshot: Snapshot::new(settings.device_resources.clone()),
            settings,
            pods: HashMap::new(),
            by_name: HashMap::new(),
            queue: Queue::default(),
            turn: Turn::default(),
            over_quota: OverQuota::default(),
            requeue: Requeue::default(),
            rejections: Rejections::default(),
            unlisted: Unlisted::default(),
            prebinds: BTreeMap::new(),
            undos: Vec::new(),
            lines: Lines::default(),
            synced: Synced::default(),
            course: Course::default(),
            effects: Vec::new(),
            seen: 0,
            holders: BTreeMap::new(),
            strangers: BTreeMap::new(),
            releasing: BTreeMap::new(),
            held: BTreeMap::new(),
            silences: BTreeMap::new(),
            vacated: BTreeMap::new(),
            measures: Vec::new(),
            reads: Reads::default(),
            remnants: BTreeMap::new(),
            excess: Said::default(),
            unread: Said::default(),
            retells: BTreeSet::new(),
            next_audit: None,
        }
    }

    /// A scheduler that has seen nothing yet and only looks on: it decides nothing and wants nothing done, ever.
    pub fn standing_by(settings: Settings) -> Self {
        Self { course: Course::Standby, ..Self::new(settings) }
    }

    /// Takes in what happened.
    pub fn observe(&mut self, event: Event, now: Timestamp) {
        let Some(event) = self.synced.admit(event) else { return };
        self.take_event(event, now);
        for event in self.synced.take_early() {
            self.take_event(event, now);
        }
    }

    fn take_event(&mut self, event: Event, now: Timestamp) {
        match event {
            Event::Pods(pods) => self.resync_pods(pods, now),
            Event::PodSeen(pod) => self.see_pod(*pod, now),
            Event::PodGone(uid) => self.miss_pod(&uid, now),
            Event::PodEnded(uid) => self.lose_pod(&uid),
            Event::Nodes(nodes) => self.resync_nodes(nodes, now),
            Event::NodeSeen(node) => self.see_node(*node, now),
            Event::NodeGone(name) => self.lose_node(&name),
            Event::Quotas(quotas) => self.resync_quotas(quotas),
            Event::QuotaSeen(quota) => self.see_quota(quota),
            Event::QuotaGone(key) => self.lose_quota(&key),
            Event::Listed(kind, objects) => self.resync_objects(kind, objects),
            Event::Seen(object) => self.snapshot.set_object(object),
            Event::Gone(kind, name) => self.snapshot.remove_object(kind, &name),
            Event::LockAnswered { pod, node, profile, outcome } => {
                self.lock_answered(&pod, &node, profile, outcome, now);
            }
            Event::BindAnswered { pod, node, outcome } => self.bind_answered(&pod, &node, outcome, now),
            Event::VolumeWritten { pod, write, outcome } => self.volume_written(&pod, &write, outcome, now),
            Event::Withdrawn { pod, node, outcome } => self.withdrawn(&pod, &node, outcome, now),
            Event::PodRead { pod, found } => self.pod_read(&pod, found, now),
            Event::LockReleased { node, outcome } => self.lock_released(&node, outcome, now),
            Event::NodeRead { node, found, pods } => self.node_read(&node, found, pods, now),
            Event::HolderRead { owner, since, found } => self.holder_read(&owner, since, found, now),
            Event::Told { pod, message, outcome } => self.told(&pod, message, outcome, now),
            Event::Hinted(ask) => self.prepare(&ask),
            Event::Vacated { node, until } => drop(self.vacated.insert(node, until)),
            Event::Tick => {}
        }
    }

    /// From now on nothing new is decided: pods whose lock was asked for or whose Binding was sent are carried through, and no
    /// other is locked.
    pub fn drain(&mut self) {
        self.course = Course::Draining;
        self.lines.touch_all();
    }

    /// Whether nothing is half done. Only one that drains stays so.
    pub fn is_drained(&self) -> bool {
        self.lines.nobody_is_served()
    }

    /// Decides all that can be decided, and says what is to be done for it.
    pub fn settle(&mut self, now: Timestamp) -> Vec<Effect> {
        self.begin_turn(now);
        self.wake_helped();
        if self.is_synced() {
            self.meet_deadlines(now);
            self.advance_prebinds(now);
            self.schedule(now);
            self.serve_lines(now);
            if self.course != Course::Standby {
                self.audit_when_due(now);
                self.schedule(now);
                self.serve_lines(now);
            }
        }
        let effects = std::mem::take(&mut self.effects);
        if self.course == Course::Standby { Vec::new() } else { effects }
    }

    /// Whether pods, nodes and quotas have been listed: the ledger is complete.
    pub fn is_synced(&self) -> bool {
        self.synced.is_complete() && self.snapshot.objects().are_listed(&[Kind::Namespace])
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
            self.lines.touch(&charge.node);
        }
    }

    /// A node has more to give: pods that wait for that are decided again.
    fn wake(&mut self, node: &NodeName) {
        let Some(state) = self.snapshot.node(node) else { return };
        self.lines.touch_held_up();
        let Some(slot) = self.snapshot.slot(node) else { return };
        for uid in self.classes.wake(slot, state, self.snapshot.device_resources()) {
            self.set_work(&uid, Work::Idle);
            self.enqueue(&uid);
        }
    }

    /// A node would have the pod: it waits for nothing but its turn there.
    fn note_decided(&mut self, uid: &Uid) {
        if let Some(entry) = self.pods.get_mut(uid) {
            (entry.reason, entry.backoff_until) = (None, None);
        }
    }

    fn enqueue(&mut self, uid: &Uid) {
        if let Some(entry) = self.pods.get(uid) {
            match entry.backoff_until {
                Some(until) => self.queue.back_off(&entry.info, entry.seen, until),
                None => self.queue.push(&entry.info, entry.seen),
            }
            self.set_work(uid, Work::Queued);
        }
    }

    fn set_work(&mut self, uid: &Uid, work: Work) {
        if !matches!(work, Work::Waiting(_)) {
            self.requeue.leave(uid);
        }
        if work != Work::Unlisted {
            self.unlisted.leave(uid);
        }
        if !matches!(work, Work::Waiting(_) | Work::OverQuota) {
            self.queue.take_back(uid);
        }
        if let Some(entry) = self.pods.get_mut(uid) {
            entry.work = work;
        }
    }
}
