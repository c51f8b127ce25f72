//! Bound pods that ask for shares and carry no assignment, on a node whose device plugin serves such shares: reported once of each.
//!
//! Whichever scheduler bound them, they hold nothing in the ledger; the plugin may give them cards that belong to another pod.

use std::collections::BTreeMap;

use super::Scheduler;
use crate::scheduling::{
    effect::Effect,
    model::{
        message::Message,
        name::{NodeName, Uid},
        node::NodeInfo,
        pod::{PodInfo, Stage},
    },
};

impl Scheduler {
    /// Finds the pods of the node that ask for shares and carry no assignment, and reports those that are new.
    pub(super) fn watch_unassigned(&mut self, node: &NodeName) {
        let found = self.unassigned_on(node);
        let Some(known) = self.reports.unassigned.replace(node, &found) else { return };
        for (uid, message) in found.iter().filter(|(uid, _)| !known.contains_key(*uid)) {
            if let Some(pod) = self.pods.get(uid).map(|entry| entry.info.key.clone()) {
                let own = self.unassigned(uid, node, "a node").unwrap_or_default();
                let message = self.worded(&pod, Message::with_own(message, own));
                self.outbox.effects.push(Effect::TellUnassigned { pod, message });
            }
        }
        self.outbox.effects.push(Effect::ReportUnassigned { node: node.clone(), pods: found.len() });
    }

    /// The Event's message, by pod.
    fn unassigned_on(&self, node: &NodeName) -> BTreeMap<Uid, String> {
        let whose = format!("node {node}");
        let uids = self.snapshot.ledger().on_node(node).map(|(uid, _)| uid);
        uids.filter_map(|uid| Some((uid.clone(), self.unassigned(uid, node, &whose)?))).collect()
    }

    /// The message of one, with its node called so; `None`: it carries what it must.
    fn unassigned(&self, uid: &Uid, node: &NodeName, whose: &str) -> Option<String> {
        message(&self.pods.get(uid)?.info, &self.snapshot.node(node)?.info, whose)
    }
}

/// What to report of the pod; `None`: nothing is missing, or the node's device plugin is not concerned.
fn message(pod: &PodInfo, node: &NodeInfo, whose: &str) -> Option<String> {
    let holding = pod.holding.as_ref().filter(|_| pod.stage != Stage::Ended)?;
    let profile = holding.unassigned.iter().find(|profile| node.offer(profile).is_some())?;
    Some(format!(
        "the Pod requests a GPU share ({profile}) and is bound to {whose} without an assignment: its device plugin may refuse it or \
         give it the cards of another Pod; delete it and create it again for a scheduler of GPU shares"
    ))
}
