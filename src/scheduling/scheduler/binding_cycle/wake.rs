//! Waking pods that wait: what has changed is compared with what they wait for, and those that it may help are decided again.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{BindingCycle, kept_rooms::RoomKeeping};
use crate::scheduling::{
    decide::class::HeldChange,
    model::{
        change::Change,
        name::{NodeName, Uid},
    },
};

impl BindingCycle {
    /// A node has more to give: pods that wait for that are decided again, those among them for which a Reservation on the node is. What
    /// these may have of it is more than what their class finds.
    pub(in crate::scheduling::scheduler) fn wake(&mut self, node: &NodeName) {
        let Some(state) = self.cycle.snapshot.node(node).cloned() else { return };
        self.flows.touch_held_up();
        self.cycle.queue.note_moved(node, HeldChange::Less);
        let reservations = &state.reservations.all;
        if !reservations.is_empty() {
            let profiles = reservations.iter().map(|one| one.reservation.allocation.profile.clone());
            for uid in self.cycle.classes.waiting_for(&profiles.collect()) {
                let demand = self.cycle.pods.get(&uid).and_then(|entry| entry.info.demand());
                if demand.is_some_and(|demand| reservations.iter().any(|one| one.reservation.is_for(&demand)))
                {
                    self.cycle.decide_waiting_again(&uid);
                }
            }
        }
        if !self.cycle.snapshot.nominations().is_empty()
            && let Some(mut rooms) = RoomKeeping::of(self)
        {
            rooms.adapt_on(node);
        }
        self.cycle.wake_nominated(node);
    }

    /// Wakes the pods that changed nodes would have, as many as half of the turn has room for: the rest is woken in the next one.
    pub(in crate::scheduling::scheduler) fn wake_moved(&mut self) {
        while let Some((node, held)) = self.cycle.queue.pop_moved() {
            if let (Some(state), Some(slot)) =
                (self.cycle.snapshot.node(&node), self.cycle.snapshot.nodes.slot(&node))
            {
                let (resources, now) = (self.cycle.snapshot.device_resources(), self.cycle.snapshot.now());
                for uid in self.cycle.classes.wake(slot, state, resources, (held, now)) {
                    self.cycle.enqueue(&uid);
                }
                if held == HeldChange::Less {
                    self.wake_for_held(&node);
                }
            }
            self.cycle.queue.charge_woken(self.cycle.classes.take_steps());
        }
    }

    /// Decides those waiting pods again that one of the changes since the last time could help.
    pub(in crate::scheduling::scheduler) fn wake_helped(&mut self) {
        let changes = self.cycle.snapshot.take_changes();
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
            self.cycle.queue.note_moved(node, HeldChange::More);
        }
        for node in claimed {
            self.wake(node);
            self.flows.touch(node);
        }
        self.prebinding.note(&changes, self.cycle.snapshot.ledger());
        let footprint = |uid: &Uid| Some(&*self.cycle.pods.get(uid)?.info.footprint);
        for uid in self.cycle.queue.requeue.helped(&changes, self.cycle.snapshot.objects(), footprint) {
            self.cycle.decide_waiting_again(&uid);
        }
    }

    /// The next pod to decide, those that the last decision has helped among them; `None`: none in this turn.
    pub(in crate::scheduling::scheduler) fn pop(&mut self, now: Timestamp) -> Option<Uid> {
        self.wake_helped();
        self.wake_moved();
        let decided = self.flows.pods().chain(self.prebinding.pods());
        self.cycle.queue.pop(now, &self.cycle.pods, decided)
    }
}
