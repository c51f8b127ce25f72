//! Waiting pods that a plugin which looks at more than one node has rejected, and the changes that could help them: kube-scheduler's
//! queueing hints.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{PodProgress, Scheduler};
use crate::scheduling::{
    decide::class::Held,
    model::{
        change::Change,
        measure::Measure,
        name::{NodeName, Uid},
    },
    plugin::Plugin,
};

/// So many pods are flushed in one turn at most.
const MOST_FLUSHED: usize = 64;

/// Why a pod waits for more than a change of the one node that would have it.
#[derive(Debug)]
pub(super) struct Rejection {
    /// The plugins that rejected it and that look at more than one node.
    pub(super) plugins: BTreeSet<Plugin>,
    /// Whether a node is kept for other pods.
    pub(super) kept: bool,
}

/// Pods that wait for more than a change of the one node that would have them.
#[derive(Debug, Default)]
pub(super) struct Requeue(BTreeMap<Uid, Rejection>);

impl Requeue {
    /// The pod waits for this reason.
    pub(super) fn wait(&mut self, uid: &Uid, rejection: Rejection) {
        if rejection.kept || !rejection.plugins.is_empty() {
            self.0.insert(uid.clone(), rejection);
        }
    }

    /// The pod no longer waits.
    pub(super) fn leave(&mut self, uid: &Uid) {
        self.0.remove(uid);
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Scheduler {
    /// Decides those waiting pods again that one of the changes since the last time could help.
    pub(super) fn wake_helped(&mut self) {
        let changes = self.snapshot.take_changes();
        self.wake_beside(&changes);
        self.wake_claimed(&changes);
        self.prebinding.note(&changes, self.snapshot.ledger());
        if changes.is_empty() || self.waiting.requeue.is_empty() {
            return;
        }
        let objects = self.snapshot.objects();
        let helped = |uid: &Uid, Rejection { plugins, kept }: &Rejection| {
            let Some(pod) = self.pods.get(uid).map(|entry| &entry.info.footprint) else { return false };
            let freed = *kept && changes.iter().any(|change| matches!(change, Change::Nomination));
            freed
                || plugins
                    .iter()
                    .any(|plugin| changes.iter().any(|change| plugin.helps(pod, change, objects)))
        };
        let helped = self.waiting.requeue.0.iter().filter(|(uid, rejection)| helped(uid, rejection));
        let helped: Vec<Uid> = helped.map(|(uid, _)| uid.clone()).collect();
        for uid in helped {
            self.decide_waiting_again(&uid);
        }
    }

    /// Decides pods again for which a node had no room beside those that it is kept for.
    pub(super) fn wake_kept(&mut self) {
        let kept = self.waiting.requeue.0.iter().filter(|(_, rejection)| rejection.kept);
        for uid in kept.map(|(uid, _)| uid.clone()).collect::<Vec<_>>() {
            self.decide_waiting_again(&uid);
        }
    }

    /// Decides pods of several shares again that a node would have now that more of it is held.
    fn wake_beside(&mut self, changes: &[Change]) {
        let charged = changes.iter().filter_map(|change| match change {
            Change::Charged(node) => Some(node),
            _ => None,
        });
        for node in charged.collect::<BTreeSet<_>>() {
            self.note_moved(node, Held::More);
        }
    }

    /// Decides pods again that would have a card of which claims may hold less now.
    fn wake_claimed(&mut self, changes: &[Change]) {
        let claimed = changes.iter().filter_map(|change| match change {
            Change::CardsClaimed(node) => Some(node),
            _ => None,
        });
        for node in claimed.collect::<BTreeSet<_>>() {
            self.wake(node);
            self.flows.touch(node);
        }
    }

    /// Decides those waiting pods again for which a Reservation on the node is: what they may have of it is more than what a class finds.
    pub(super) fn wake_owners(&mut self, node: &NodeName) {
        let Some(state) = self.snapshot.node(node).filter(|state| !state.reservations.all.is_empty()) else {
            return;
        };
        let is_owner = |uid: &Uid| {
            let demand = self.pods.get(uid).and_then(|entry| entry.info.demand());
            demand.is_some_and(|demand| {
                state.reservations.all.iter().any(|one| one.reservation.is_for(&demand))
            })
        };
        let profiles = state.reservations.all.iter().map(|one| one.reservation.allocation.profile.clone());
        let waiting = self.classes.waiting_for(&profiles.collect());
        let owners: Vec<Uid> = waiting.into_iter().filter(is_owner).collect();
        for uid in owners {
            self.decide_waiting_again(&uid);
        }
    }

    /// Decides pods again that have waited for so long that it is done whatever has happened: kube-scheduler's
    /// `flushUnschedulablePodsLeftover`. What is left of them at the end of a turn is next turn's.
    pub(super) fn flush(&mut self, now: Timestamp) {
        for uid in self.waiting.queue.overdue(now, MOST_FLUSHED) {
            self.outbox.measures.push(Measure::Flushed);
            self.decide_waiting_again(&uid);
        }
    }

    /// Decides a pod again that no node would have, or that its namespace's quota kept out.
    pub(super) fn decide_waiting_again(&mut self, uid: &Uid) {
        if self.stop_waiting(uid) {
            self.enqueue(uid);
        }
    }

    /// The pod waits for no node and no quota any more; whether it did.
    pub(super) fn stop_waiting(&mut self, uid: &Uid) -> bool {
        let Some(entry) = self.pods.get(uid) else { return false };
        match entry.progress.clone() {
            PodProgress::Waiting(ask) => self.classes.leave(&ask, uid),
            PodProgress::OverQuota | PodProgress::Ungathered | PodProgress::Comparing => {}
            _ => return false,
        }
        self.waiting.over_quota.leave(&entry.info.key);
        true
    }
}
