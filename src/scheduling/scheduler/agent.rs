//! What a node's device plugin owes, and what becomes of a node whose plugin is silent.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::Scheduler;
use crate::{
    device::ProfileName,
    scheduling::{effect::Effect, node::NodeName, pod::Uid, snapshot::Agent},
};

impl Scheduler {
    /// Whether the node's plugin owes an answer for a bound pod, or could take a dead one's assignment: no other is bound there
    /// meanwhile, since it would mix both up.
    pub(super) fn agent_is_busy(&self, node: &NodeName, now: Timestamp) -> bool {
        let mut charges = self.snapshot.ledger().on_node(node);
        self.has_remains(node)
            || charges.any(|(uid, charge)| charge.is_in_flight() || self.lingers(uid, charge, now))
    }

    /// Finds out whether the node's plugin is silent for too long: then it is said, after a pause that doubles each time, and no pod
    /// is sent there until it answers or the pod is gone.
    pub(super) fn watch_agent(&mut self, node: &NodeName, now: Timestamp) {
        let expired =
            |since: &Timestamp| since.checked_add(self.settings.lock_expiry).is_ok_and(|at| at <= now);
        let owed = self.owed(node);
        let late = owed.iter().any(|(_, since)| expired(since))
            || self.remains_since(node).any(|since| expired(&since));
        let agent = if late { Agent::Silent } else { Agent::Answering };
        for (uid, since) in owed {
            self.tell_silence(&uid, node, since, now);
        }
        if self.snapshot.set_agent(node, agent) != agent {
            match agent {
                Agent::Answering => self.wake(node),
                Agent::Silent => self.dismiss(node),
            }
        }
    }

    /// Sends those who wait in the node's line back to the queue: they may have a better place by now.
    pub(super) fn dismiss(&mut self, node: &NodeName) {
        let waiting = self.lines.get(node).map(|line| line.waiting.iter().cloned().collect::<Vec<_>>());
        for uid in waiting.unwrap_or_default() {
            self.forget(&uid);
            self.enqueue_if_wanted(&uid);
        }
    }

    /// Finds out which of the node's plugins have given no sign for too long: no pod is sent to their cards until they do.
    pub(super) fn watch_expiries(&mut self, node: &NodeName, now: Timestamp) {
        if let Some(expired) = self.snapshot.node(node).map(|state| state.info.expired(now)) {
            self.expire(node, &expired);
        }
    }

    /// Takes in which of the node's plugins have given no sign for too long; who waits for one that is back is decided again.
    pub(super) fn expire(&mut self, node: &NodeName, expired: &BTreeSet<ProfileName>) {
        let before = self.snapshot.set_expired(node, expired.clone());
        if !before.is_subset(expired) {
            self.wake(node);
        }
        if !expired.is_subset(&before) {
            self.dismiss(node);
        }
    }

    /// When a plugin of the node has given no sign for too long.
    pub(super) fn expiries(&self, node: &NodeName) -> impl Iterator<Item = Timestamp> {
        let expiries = self.snapshot.node(node).map(|state| state.info.expiries.clone()).unwrap_or_default();
        expiries.into_iter().map(|(_, at)| at)
    }

    fn tell_silence(&mut self, uid: &Uid, node: &NodeName, since: Timestamp, now: Timestamp) {
        let expiry = self.settings.lock_expiry;
        let Some(entry) = self.pods.get_mut(uid) else { return };
        if patience(expiry, entry.silence_told).is_some_and(|patience| since + patience <= now) {
            entry.silence_told += 1;
            self.effects.push(Effect::TellSilent { pod: entry.info.key.clone(), node: node.clone() });
        }
    }

    fn owed(&self, node: &NodeName) -> Vec<(Uid, Timestamp)> {
        let in_flight = self.snapshot.ledger().on_node(node).filter(|(_, charge)| charge.is_in_flight());
        in_flight.map(|(uid, charge)| (uid.clone(), charge.since)).collect()
    }

    /// When silence is to be said the next time.
    pub(super) fn agent_deadlines(&self, node: &NodeName) -> impl Iterator<Item = Timestamp> {
        let expiry = self.settings.lock_expiry;
        let times = self.owed(node).into_iter().filter_map(move |(uid, since)| {
            let told = self.pods.get(&uid)?.silence_told;
            since.checked_add(patience(expiry, told)?).ok()
        });
        let charges = self.snapshot.ledger().on_node(node);
        let going = charges.filter_map(|(uid, charge)| self.goes_by(uid, charge));
        let silent = self.remains_since(node).filter_map(move |since| since.checked_add(expiry).ok());
        let times = times.chain(going).chain(silent).chain(self.withdraw_deadlines(node));
        times.collect::<Vec<_>>().into_iter()
    }
}

fn patience(expiry: SignedDuration, told: u32) -> Option<SignedDuration> {
    expiry.checked_mul(1_i32.checked_shl(told)?)
}
