//! Why the pod at the head of a line is not served, and saying so while it lasts.
//!
//! It must not decide whether it is served: that is asked of the lock and of the ledger.

use jiff::{SignedDuration, Timestamp};

use super::Scheduler;
use crate::{
    device::Lock,
    scheduling::{
        effect::Effect,
        line::Blocked,
        node::{NodeInfo, NodeName},
        pod::{Ask, Uid},
    },
};

/// For so long a wait is nothing to speak of: a device plugin takes its time.
const USUAL: SignedDuration = SignedDuration::from_secs(10);

/// When a wait is said the next time: each time after twice as long.
fn said_after(told: u32) -> Option<SignedDuration> {
    USUAL.checked_mul(1_i32.checked_shl(told)?)
}

impl Scheduler {
    /// The pod at the head of this line waits, for this reason.
    pub(super) fn block(
        &mut self,
        node: &NodeName,
        uid: &Uid,
        now: Timestamp,
        why: impl Fn(&Self) -> String,
    ) {
        let Some(line) = self.lines.get_mut(node) else { return };
        let begins = || Blocked { uid: uid.clone(), since: now, told: 0 };
        let before = line.blocked.take().filter(|blocked| blocked.uid == *uid);
        let mut blocked = before.unwrap_or_else(begins);
        let due = said_after(blocked.told).is_some_and(|patience| blocked.since + patience <= now);
        blocked.told += u32::from(due);
        line.blocked = Some(blocked);
        if due && let Some(pod) = self.pods.get(uid).map(|entry| entry.info.key.clone()) {
            let message = why(self);
            self.effects.push(Effect::TellWaiting { pod, message });
        }
    }

    /// Nobody waits in vain here.
    pub(super) fn unblock(&mut self, node: &NodeName) {
        if let Some(line) = self.lines.get_mut(node) {
            line.blocked = None;
        }
    }

    /// When it is said again that the head of this line waits.
    pub(super) fn blocked_deadline(&self, node: &NodeName) -> Option<Timestamp> {
        let blocked = self.lines.get(node)?.blocked.as_ref()?;
        blocked.since.checked_add(said_after(blocked.told)?).ok()
    }

    /// Whose answer the node's device plugin owes.
    pub(super) fn busy_because(&self, node: &NodeName) -> String {
        let in_flight = self.snapshot.ledger().on_node(node).find(|(_, charge)| charge.is_in_flight());
        let known = in_flight.and_then(|(uid, charge)| Some((&self.pods.get(uid)?.info.key, charge.since)));
        match known {
            Some((pod, since)) => {
                format!("Waiting for the device plugin of node {node}, at work for {pod} since {since}")
            }
            None => format!(
                "Waiting for the device plugin of node {node}, which may be at work for a deleted pod"
            ),
        }
    }
}

/// Who holds the lock that a pod waits for.
pub(super) fn locked_because(info: &NodeInfo, ask: &Ask) -> String {
    let node = &info.name;
    match info.lock(&ask.profile.name).map(|lock| &lock.state) {
        Some(Lock::Held { owner: Some(owner), since }) => {
            let (namespace, name) = (&owner.namespace, &owner.name);
            format!("Waiting for the lock of node {node}, held by {namespace}/{name} since {since}")
        }
        Some(Lock::Held { owner: None, since }) => {
            format!(
                "Waiting for the lock of node {node}, held since {since} by somebody whom it does not name"
            )
        }
        _ => format!("Waiting for the lock of node {node}"),
    }
}
