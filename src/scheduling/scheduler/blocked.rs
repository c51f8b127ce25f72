//! Why the pod at the head of a line is not served: saying so while it lasts, and sending who waits to another node where one would do.
//!
//! It must not decide whether it is served: that is asked of the lock and of the ledger.

use jiff::{SignedDuration, Timestamp};

use super::{Scheduler, Work, decide::assumed};
use crate::{
    device::Lock,
    scheduling::{
        decide::Decision,
        effect::Effect,
        model::{
            message::Message,
            name::{NodeName, Uid},
            node::NodeInfo,
            pod::{Ask, Demand},
        },
        node_flow::line::Blocked,
        plan::Plan,
    },
};

/// For so long a wait is nothing to speak of: a device plugin takes its time. After it, other nodes come first.
pub(super) const USUAL: SignedDuration = SignedDuration::from_secs(10);

/// When a wait is said the next time: each time after twice as long.
fn said_after(told: u32) -> Option<SignedDuration> {
    USUAL.checked_mul(1_i32.checked_shl(told)?)
}

impl Scheduler {
    /// The pod at the head of this line waits, for this reason. If that lasts, who waits here may go elsewhere.
    pub(super) fn block(
        &mut self,
        node: &NodeName,
        uid: &Uid,
        now: Timestamp,
        why: impl Fn(&Self) -> Message,
    ) {
        let due = self.note_wait(node, uid, now);
        if due {
            self.lines.hold_up(node);
        }
        if self.lines.is_held_up(node) {
            self.find_other_places(node, now);
        }
        if self.lines.get(node).and_then(|line| line.waiting.front()) != Some(uid) {
            return self.lines.touch(node);
        }
        if due && let Some(pod) = self.pods.get(uid).map(|entry| entry.info.key.clone()) {
            let message = why(self);
            let message = self.worded(&pod, message);
            self.outbox.effects.push(Effect::TellWaiting { pod, message });
        }
    }

    /// Puts the node after all others at once while its plugin's answer is not to come soon: nothing that a pod in its line could wait for
    /// shows when the plugin will be done.
    pub(super) fn pass_over_if_stuck(&mut self, node: &NodeName, now: Timestamp) {
        if self.agent_is_stuck(node, now) {
            self.lines.hold_up(node);
        }
    }

    /// Keeps in mind since when the head of this line waits; whether that is to be said now.
    fn note_wait(&mut self, node: &NodeName, uid: &Uid, now: Timestamp) -> bool {
        let Some(line) = self.lines.get_mut(node) else { return false };
        let begins = || Blocked { uid: uid.clone(), since: now, told: 0 };
        let before = line.blocked.take().filter(|blocked| blocked.uid == *uid);
        let mut blocked = before.unwrap_or_else(begins);
        let due = said_after(blocked.told).is_some_and(|patience| blocked.since + patience <= now);
        blocked.told += u32::from(due);
        line.blocked = Some(blocked);
        due
    }

    /// Sends who waits in a line that is held up to nodes that are not and would have him; the others keep their places.
    fn find_other_places(&mut self, node: &NodeName, now: Timestamp) {
        if self.directed {
            return;
        }
        let waiting = self.lines.get(node).map(|line| line.waiting.iter().cloned().collect::<Vec<_>>());
        let mut stay: Vec<Demand> = Vec::new();
        for uid in waiting.unwrap_or_default() {
            let Some(demand) = self.pods.get(&uid).and_then(|entry| entry.info.demand()) else { continue };
            // Its gang shares a domain, which a node elsewhere may not be in.
            if self.shares_topology(&uid) {
                continue;
            }
            if !stay.iter().any(|other| other.is_alike(&demand)) && !self.move_on(&uid, node, now) {
                stay.push(demand);
            }
        }
    }

    /// Sends a pod to the line of a better node, if there is one.
    fn move_on(&mut self, uid: &Uid, from: &NodeName, now: Timestamp) -> bool {
        let Some(info) = self.pods.get(uid).map(|entry| &entry.info) else { return false };
        let Some(demand) = info.demand() else { return false };
        let mut plan = Plan::new(&mut self.snapshot);
        if plan.evict(uid).is_none() {
            return false;
        }
        let lines = &self.lines;
        let better = self.classes.decide(&demand, &plan, |node| lines.rank(node)).ok();
        let ready = |found: &Decision| found.steps.is_empty() && !lines.is_held_up(&found.node);
        let Some(Decision { node, allocations, .. }) = better.filter(ready) else { return false };
        plan.place(uid, assumed(info, node.clone(), allocations, Vec::new(), now));
        plan.commit();
        self.lines.leave(from, uid);
        self.set_work(uid, Work::InLine(node.clone()));
        let place = self.place_in_line(uid, &node);
        self.lines.join(&node, uid.clone(), place);
        // The node was judged without the pod already, and that woke no waiting pod.
        if let Some(slot) = self.snapshot.slot(from) {
            self.classes.forget(slot);
        }
        self.wake(from);
        self.wake_within_quota_of(uid);
        true
    }

    /// Nobody waits here; the node is no longer held up unless it still would be.
    pub(super) fn unblock(&mut self, node: &NodeName, now: Timestamp) {
        if let Some(line) = self.lines.get_mut(node) {
            line.blocked = None;
        }
        if self.lines.is_held_up(node) && !self.agent_is_busy(node, now) && !self.is_locked(node, now) {
            self.lines.go_on(node);
        }
    }

    /// When it is said again that the head of this line waits.
    pub(super) fn blocked_deadline(&self, node: &NodeName) -> Option<Timestamp> {
        let blocked = self.lines.get(node)?.blocked.as_ref()?;
        blocked.since.checked_add(said_after(blocked.told)?).ok()
    }

    /// Whose answer the node's device plugin owes.
    pub(super) fn busy_because(&self, node: &NodeName) -> Message {
        let in_flight =
            self.snapshot.ledger().on_node(node).find(|(uid, charge)| self.is_in_flight(uid, charge));
        let known = in_flight.and_then(|(uid, charge)| Some((&self.pods.get(uid)?.info.key, charge.since)));
        match known {
            Some((pod, since)) => Message::with_own(
                format!(
                    "Waiting for the device plugin of node {node}, which has been allocating for {pod} since {since:.0}"
                ),
                format!(
                    "Waiting for the device plugin of a node, which has been allocating for another pod since {since:.0}"
                ),
            ),
            None => Message::with_own(
                format!(
                    "Waiting for the device plugin of node {node}, which may still be allocating for a deleted pod"
                ),
                "Waiting for the device plugin of a node, which may still be allocating for a deleted pod",
            ),
        }
    }
}

/// Who holds the lock that a pod waits for.
pub(super) fn locked_because(info: &NodeInfo, ask: &Ask) -> Message {
    let node = &info.name;
    let mut locks = info.locks_for(ask).map(|lock| &lock.state);
    match locks.find(|lock| matches!(lock, Lock::Held { .. })) {
        Some(Lock::Held { owner: Some(owner), since }) => {
            let (namespace, name) = (&owner.namespace, &owner.name);
            Message::with_own(
                format!("Waiting for the lock of node {node}, held by {namespace}/{name} since {since:.0}"),
                format!("Waiting for the lock of a node, held for another pod since {since:.0}"),
            )
        }
        Some(Lock::Held { owner: None, since }) => Message::with_own(
            format!(
                "Waiting for the lock of node {node}, held since {since:.0}; the lock does not name its holder"
            ),
            format!(
                "Waiting for the lock of a node, held since {since:.0}; the lock does not name its holder"
            ),
        ),
        _ => Message::with_own(
            format!("Waiting for the lock of node {node}"),
            "Waiting for the lock of a node",
        ),
    }
}
