//! Pods with claims, or with devices by type, that wait until the kinds which their plugins read are listed.
//!
//! Such a pod is not decided before, and its condition says nothing, since the lists come within a moment. Where one of them does not
//! come, as without the permission to list it, the pods say which.

use jiff::Timestamp;

use super::{SchedulingCycle, scheduling_queue::PodProgress};
use crate::scheduling::{
    model::{footprint::Footprint, kind::Kind, name::Uid, pod::PodInfo},
    pending::PendingReason,
    world::object::Objects,
};

impl SchedulingCycle {
    /// Lets a pod with claims wait for the lists that are missing; whether it has to.
    pub(in crate::scheduling::scheduler) fn wait_for_lists(&mut self, uid: &Uid, now: Timestamp) -> bool {
        if unlisted_of(self, uid).is_empty() {
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
    pub(in crate::scheduling::scheduler) fn end_wait_for_lists(&mut self) {
        for uid in self.queue.unlisted.pods.clone() {
            if unlisted_of(self, &uid).is_empty() {
                self.enqueue(&uid);
            } else if self.queue.unlisted.overdue {
                self.tell_unlisted(&uid);
            }
        }
    }

    /// Has the pods say which lists are missing, once they have waited for long.
    pub(in crate::scheduling::scheduler) fn watch_lists(&mut self, now: Timestamp) {
        if self.queue.unlisted.deadline().is_some_and(|at| at <= now) {
            self.queue.unlisted.overdue = true;
            for uid in self.queue.unlisted.pods.clone() {
                self.tell_unlisted(&uid);
            }
        }
    }

    fn tell_unlisted(&mut self, uid: &Uid) {
        let kinds = unlisted_of(self, uid);
        self.tell_unschedulable(uid, PendingReason::Lists(kinds));
    }
}

fn unlisted_of(cycle: &SchedulingCycle, uid: &Uid) -> Vec<Kind> {
    let entry = cycle.pods.get(uid);
    entry.map_or_else(Vec::new, |entry| unlisted_kinds(&entry.info, cycle.snapshot.objects()))
}

/// The kinds that decide where the pod may go and are not listed yet: of a pod with claims, those of the claims; of one that asks for
/// devices by type, Devices and Reservations.
pub(in crate::scheduling::scheduler) fn unlisted_kinds(pod: &PodInfo, objects: &Objects) -> Vec<Kind> {
    let Footprint { claims, resource_claims, extended, reservation, .. } = &*pod.footprint;
    let shares = pod.demand().is_some_and(|demand| !demand.ask.devices.is_empty());
    let extended = extended.is_some() && !shares || pod.status.served.is_some();
    let kinds = [
        (!claims.is_empty(), Kind::STORAGE),
        (!resource_claims.is_empty() || extended, Kind::DEVICE_CLAIMS),
        (reservation.is_some(), Kind::DEVICES_BY_TYPE),
    ];
    let kinds = kinds.into_iter().filter(|(needed, _)| *needed);
    kinds.flat_map(|(_, kinds)| objects.unlisted(kinds)).collect()
}
