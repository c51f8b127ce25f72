//! Waking pods that wait: what has changed is compared with what they wait for, and those that it may help are decided again.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{Precedence, Scheduler};
use crate::scheduling::{
    decide::class::Held,
    model::{
        change::Change,
        kind::Kind,
        name::{NodeName, Uid},
    },
};

impl Scheduler {
    /// A node has more to give: pods that wait for that are decided again, those among them for which a Reservation on the node is. What
    /// these may have of it is more than what their class finds.
    pub(super) fn wake(&mut self, node: &NodeName) {
        let Some(state) = self.snapshot.node(node).cloned() else { return };
        self.flows.touch_held_up();
        self.queue.note_moved(node, Held::Less);
        let reservations = &state.reservations.all;
        if !reservations.is_empty() {
            let profiles = reservations.iter().map(|one| one.reservation.allocation.profile.clone());
            for uid in self.classes.waiting_for(&profiles.collect()) {
                let demand = self.pods.get(&uid).and_then(|entry| entry.info.demand());
                if demand.is_some_and(|demand| reservations.iter().any(|one| one.reservation.is_for(&demand)))
                {
                    self.decide_waiting_again(&uid);
                }
            }
        }
        self.wake_nominated(node);
    }

    /// Wakes the pods that changed nodes would have, as many as half of the turn has room for: the rest is woken in the next one.
    pub(super) fn wake_moved(&mut self) {
        while let Some((node, held)) = self.queue.pop_moved() {
            if let (Some(state), Some(slot)) = (self.snapshot.node(&node), self.snapshot.nodes.slot(&node)) {
                let (resources, now) = (self.snapshot.device_resources(), self.snapshot.now());
                for uid in self.classes.wake(slot, state, resources, (held, now)) {
                    self.enqueue(&uid);
                }
                if held == Held::Less {
                    self.wake_for_held(&node);
                }
            }
            self.queue.charge_woken(self.classes.take_steps());
        }
    }

    /// Decides those waiting pods again that one of the changes since the last time could help.
    pub(super) fn wake_helped(&mut self) {
        let changes = self.snapshot.take_changes();
        let (mut charged, mut claimed) = (BTreeSet::new(), BTreeSet::new());
        for change in &changes {
            match change {
                // Pods of several shares may have a node now that more of it is held.
                Change::Charged(node) => drop(charged.insert(node)),
                // Claims may hold less of its cards.
                Change::CardsClaimed(node) => drop(claimed.insert(node)),
                _ => {}
            }
        }
        for node in charged {
            self.queue.note_moved(node, Held::More);
        }
        for node in claimed {
            self.wake(node);
            self.flows.touch(node);
        }
        self.prebinding.note(&changes, self.snapshot.ledger());
        let footprint = |uid: &Uid| Some(&*self.pods.get(uid)?.info.footprint);
        for uid in self.queue.requeue.helped(&changes, self.snapshot.objects(), footprint) {
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
        self.queue.stop_waiting(&entry.info.key, &mut self.classes)
    }

    /// The pod is taken out of the queue, wherever it waits.
    pub(super) fn take_out(&mut self, uid: &Uid) {
        if let Some(entry) = self.pods.get(uid) {
            self.queue.take_out(&entry.info.key, &mut self.classes);
        }
    }

    /// The pod is decided as soon as its turn comes.
    pub(super) fn enqueue(&mut self, uid: &Uid) {
        if let Some(entry) = self.pods.get(uid) {
            let first = self.gangs.is_partly_bound(&entry.info);
            let precedence = if first { Precedence::First } else { Precedence::Priority };
            self.queue.enqueue(entry, precedence);
        }
    }

    /// The next pod to decide, those that the last decision has helped among them; `None`: none in this turn.
    pub(super) fn pop(&mut self, now: Timestamp) -> Option<Uid> {
        self.wake_helped();
        self.wake_moved();
        let decided = self.flows.pods().chain(self.prebinding.pods());
        self.queue.pop(now, &self.pods, decided)
    }

    /// Whether lists are still to come without which no pod is decided: those of PodGroups, and of claims, as far as pods use any. Where the
    /// lists of claims do not come, the cards of nodes with pods that use claims are not given (`snapshot/claims`).
    pub(super) fn awaits_lists(&self) -> bool {
        let gangs = || self.gangs.has_timeout() && !self.snapshot.objects().are_listed(Kind::POD_GROUPS);
        let uses_claims = || self.pods.all().any(|entry| !entry.info.footprint.resource_claims.is_empty());
        !self.queue.lists.is_overdue() && (gangs() || self.snapshot.awaits_claims() && uses_claims())
    }
}
