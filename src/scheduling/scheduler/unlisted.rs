//! Pods with claims, or with devices by type, that wait until the kinds which their plugins read are listed.
//!
//! Such a pod is not decided before, and its condition says nothing, since the lists come within a moment. Where one of them does not
//! come, as without the permission to list it, the pods say which.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::{PodProgress, Scheduler};
use crate::scheduling::{
    model::{footprint::Footprint, kind::Kind, name::Uid, pod::PodInfo},
    pending::PendingReason,
    world::object::Objects,
};

/// For so long a missing list is nothing to speak of.
const PATIENCE: SignedDuration = SignedDuration::from_secs(30);

/// Pods with claims that wait for lists.
#[derive(Debug, Default)]
pub(super) struct Unlisted {
    pods: BTreeSet<Uid>,
    /// When the first of them began to wait.
    since: Option<Timestamp>,
    /// Whether the pods have waited for so long that they say for what.
    overdue: bool,
}

impl Unlisted {
    /// The pod no longer waits.
    pub(super) fn leave(&mut self, uid: &Uid) {
        self.pods.remove(uid);
    }

    /// Whether the pod waits.
    pub(super) fn holds(&self, uid: &Uid) -> bool {
        self.pods.contains(uid)
    }

    /// How many pods wait.
    pub(super) fn len(&self) -> usize {
        self.pods.len()
    }

    /// When the pods say which lists are missing.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let waits = !self.overdue && !self.pods.is_empty();
        self.since.filter(|_| waits)?.checked_add(PATIENCE).ok()
    }
}

impl Scheduler {
    /// Lets a pod with claims wait for the lists that are missing; whether it has to.
    pub(super) fn wait_for_lists(&mut self, uid: &Uid, now: Timestamp) -> bool {
        if self.unlisted_kinds(uid).is_empty() {
            return false;
        }
        self.queue.set_progress(uid, PodProgress::Unlisted);
        self.queue.unlisted.pods.insert(uid.clone());
        self.queue.unlisted.since.get_or_insert(now);
        if self.queue.unlisted.overdue {
            self.tell_unlisted(uid);
        }
        true
    }

    /// Decides the pods that waited for lists once none is missing.
    pub(super) fn end_wait_for_lists(&mut self) {
        for uid in self.queue.unlisted.pods.clone() {
            if self.unlisted_kinds(&uid).is_empty() {
                self.enqueue(&uid);
            } else if self.queue.unlisted.overdue {
                self.tell_unlisted(&uid);
            }
        }
    }

    /// Has the pods say which lists are missing, once they have waited for long.
    pub(super) fn watch_lists(&mut self, now: Timestamp) {
        if self.queue.unlisted.deadline().is_some_and(|at| at <= now) {
            self.queue.unlisted.overdue = true;
            for uid in self.queue.unlisted.pods.clone() {
                self.tell_unlisted(&uid);
            }
        }
    }

    fn unlisted_kinds(&self, uid: &Uid) -> Vec<Kind> {
        let entry = self.pods.get(uid);
        entry.map_or_else(Vec::new, |entry| unlisted_kinds(&entry.info, self.snapshot.objects()))
    }

    fn tell_unlisted(&mut self, uid: &Uid) {
        let kinds = self.unlisted_kinds(uid);
        self.tell_unschedulable(uid, PendingReason::Lists(kinds));
    }
}

/// The kinds that decide where the pod may go and are not listed yet: of a pod with claims, those of the claims; of one that asks for
/// devices by type, Reservations, which could hold them.
pub(super) fn unlisted_kinds(pod: &PodInfo, objects: &Objects) -> Vec<Kind> {
    let Footprint { claims, resource_claims, extended, reservation, .. } = &*pod.footprint;
    let shares = pod.demand().is_some_and(|demand| !demand.ask.devices.is_empty());
    let extended = extended.is_some() && !shares || pod.status.served.is_some();
    let kinds = [
        (!claims.is_empty(), Kind::STORAGE),
        (!resource_claims.is_empty() || extended, Kind::DEVICE_CLAIMS),
        (reservation.is_some(), &[Kind::Reservation]),
    ];
    let kinds = kinds.into_iter().filter(|(needed, _)| *needed);
    kinds.flat_map(|(_, kinds)| objects.unlisted(kinds)).collect()
}
