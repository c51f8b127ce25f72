//! Pods of which nobody can tell which cards they hold: said once of each, for as long as it is so.
//!
//! What counts for them on the cards of their node is folded from the same ledger.

use std::collections::BTreeMap;

use super::Scheduler;
use crate::{
    device::UnknownCards,
    scheduling::{
        effect::Effect,
        model::{
            message::Message,
            name::{NodeName, Uid},
        },
        world::ledger::Charge,
    },
};

impl Scheduler {
    /// Finds out which pods of the node hold cards that nobody can tell, and says what is new.
    pub(super) fn watch_unread(&mut self, node: &NodeName) {
        let found = self.unread_on(node);
        let Some(known) = self.reports.unread.replace(node, &found) else { return };
        for (uid, why) in found.iter().filter(|(uid, why)| known.get(*uid) != Some(*why)) {
            if let Some(pod) = self.pods.get(uid).map(|entry| entry.info.key.clone()) {
                let counts = self.snapshot.ledger().get(uid).map_or("", counted);
                let full =
                    format!("{why}: Berth can't read which GPUs of node {node} the Pod holds, and {counts}");
                let own =
                    format!("{why}: Berth can't read which GPUs of its node the Pod holds, and {counts}");
                let message = Message::with_own(full, own);
                let message = self.worded(&pod, message);
                self.outbox.effects.push(Effect::TellUnread { pod, message });
            }
        }
        self.outbox.effects.push(Effect::ReportUnread { node: node.clone(), pods: found.len() });
    }

    /// What can't be read, by pod.
    fn unread_on(&self, node: &NodeName) -> BTreeMap<Uid, String> {
        if self.snapshot.node(node).is_none() {
            return BTreeMap::new();
        }
        let unread = |(uid, charge): (&Uid, &Charge)| Some((uid.clone(), charge.unread()?));
        self.snapshot.ledger().on_node(node).filter_map(unread).collect()
    }
}

/// What is done about the cards that are unknown of the pod.
fn counted(charge: &Charge) -> &'static str {
    let unread = || charge.allocations.iter().filter(|allocation| allocation.unread.is_some());
    if unread().any(|allocation| allocation.unknown == Some(UnknownCards::Everything)) {
        "places no further Pods on them until this is repaired or the Pod ends"
    } else if unread().any(|allocation| allocation.unknown.is_some()) {
        "counts what the Pod asks for on each of them until this is repaired or the Pod ends"
    } else if charge.shares().next().is_some() {
        "goes by what it could read before"
    } else {
        "counts none of them, since what the Pod asks for can't be read either"
    }
}
