//! What of a simulation is shown to somebody who may see the pods of some namespaces: the others are numbers.

use super::report::Simulation;
use crate::cluster::report::ledger::LedgerNode;

impl Simulation {
    /// The same, with the names of pods and claims of those namespaces alone that are shown.
    #[must_use]
    pub fn shown(mut self, shows: impl Fn(&str) -> bool) -> Self {
        for pod in &mut self.pods {
            pod.victims.other_victims += hide(&mut pod.victims.victims, &shows);
        }
        let evictions = self.evictions.len();
        self.evictions.retain(|eviction| shows(&eviction.namespace));
        self.other_evictions += evictions - self.evictions.len();
        self.nodes.iter_mut().for_each(|node| hide_on(node, &shows));
        self
    }
}

fn hide_on(node: &mut LedgerNode, shows: &impl Fn(&str) -> bool) {
    for card in &mut node.cards {
        let holders = &mut card.holders;
        holders.others += hide(&mut holders.pods, shows) + hide(&mut holders.claims, shows);
    }
    for device in &mut node.devices {
        device.others += hide(&mut device.pods, shows);
    }
    // Reservations are in no namespace.
    for reservation in node.reservations.iter_mut().filter(|_| !shows("")) {
        reservation.name.clear();
    }
    node.unreadable_pods.retain(|pod, _| shows(namespace_of(pod)));
}

/// Leaves out what is not shown of these full names; how many that were.
fn hide(names: &mut Vec<String>, shows: &impl Fn(&str) -> bool) -> usize {
    let before = names.len();
    names.retain(|name| shows(namespace_of(name)));
    before - names.len()
}

fn namespace_of(full: &str) -> &str {
    full.split_once('/').map_or("", |(namespace, _)| namespace)
}
