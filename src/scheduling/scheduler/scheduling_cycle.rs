//! The scheduling cycle: the cluster as it stands, the pods that want a place, and what each of them waits for.
//!
//! It finds a node and cards for a pod, or why there are none, and decides pods again when something has changed that may help them. What becomes of a
//! decision is the [binding cycle](super::binding_cycle)'s, of which nothing is known here.

pub(super) mod alike;
mod claiming_pods;
pub(super) mod compare;
pub(super) mod conditions;
pub(super) mod decide;
pub(super) mod direct;
pub(super) mod directed;
pub(super) mod gang;
pub(super) mod kept_rooms;
mod lines;
pub(super) mod mix;
pub(super) mod outbox;
pub(super) mod pods;
mod preempt;
mod quota;
mod requeue;
pub(super) mod scheduling_queue;
pub(super) mod sync;
pub(super) mod unlisted;
pub(super) mod views;

use jiff::Timestamp;

use super::Settings;
use crate::scheduling::{
    decide::class::Classes,
    model::{kind::Kind, measure::Measure, name::Uid},
    preempt::Preempting,
    snapshot::Snapshot,
};

use compare::CLAIM_ALLOWANCE;
use conditions::Conditions;
use gang::Gangs;
use kept_rooms::KeptRooms;
use outbox::Outbox;
use pods::Pods;
use scheduling_queue::SchedulingQueue;
use sync::Duty;

/// What is known of the cluster, and the pods that are to be decided.
#[derive(Debug)]
pub(super) struct SchedulingCycle {
    /// Nodes, charges, and other objects that decide.
    pub(super) snapshot: Snapshot,
    /// Every pod that was seen.
    pub(super) pods: Pods,
    /// What pods with equal asks are known to fit.
    pub(super) classes: Classes,
    /// How far each pod is, and where those wait that are to be decided.
    pub(super) queue: SchedulingQueue,
    /// Pods that are placed together.
    pub(super) gangs: Gangs,
    /// Preemptions under way.
    pub(super) preempting: Preempting,
    /// For which pods that wait long room is kept.
    pub(super) kept_rooms: KeptRooms,
    /// What it may decide.
    pub(super) duty: Duty,
    /// Why pods wait, and how far saying it is.
    pub(super) conditions: Conditions,
    /// What is to be done, and what was measured.
    pub(super) outbox: Outbox,
}

impl SchedulingCycle {
    /// Nothing was seen yet.
    pub(super) fn new(settings: Settings) -> Self {
        let Settings {
            device_resources,
            weights,
            arguments,
            preemption,
            rooms,
            zones,
            gangs,
            claims,
            pace,
            ..
        } = settings;
        Self {
            snapshot: Snapshot::new(device_resources, arguments, zones).awaiting(claims),
            classes: Classes::new(weights).bounded(CLAIM_ALLOWANCE),
            pods: Pods::default(),
            queue: SchedulingQueue::at(pace),
            gangs: Gangs::new(gangs, pace),
            preempting: Preempting::new(preemption),
            kept_rooms: KeptRooms::new(rooms),
            duty: Duty::at(pace),
            conditions: Conditions::default(),
            outbox: Outbox::default(),
        }
    }

    /// Whether pods, nodes and quotas have been listed: the ledger is complete.
    pub(super) fn is_synced(&self) -> bool {
        self.duty.synced.is_complete() && self.snapshot.objects().are_listed(&[Kind::Namespace])
    }

    /// A node would have the pod: it waits for nothing but its turn there.
    pub(super) fn note_decided(&mut self, uid: &Uid) {
        self.conditions.end(uid);
        self.queue.end_backoff(uid);
    }

    /// A pod that Berth has decided is bound.
    pub(super) fn measure_bound(&mut self, uid: &Uid, now: Timestamp) {
        if let Some(entry) = self.pods.get(uid) {
            self.outbox.measures.push(Measure::Bound(now.duration_since(entry.since)));
        }
        self.queue.forget_history(uid);
    }
}
