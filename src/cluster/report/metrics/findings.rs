//! What can't be read of nodes and their pods, and what contradicts itself, by node; nodes without such findings are not listed.

use prometheus_client::{
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

use super::{count, labels::NodeLabels};
use crate::scheduling::{
    Event, FindingCounts, NodeChange, ObjectChange,
    model::{kind::Kind, node::NodeInfo},
    world::object::Object,
};

/// Findings by node; clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct FindingMetrics {
    unreadable_registrations: Family<NodeLabels, Gauge>,
    unreadable_devices: Family<NodeLabels, Gauge>,
    unreadable_assignments: Family<NodeLabels, Gauge>,
    overcommitted_cards: Family<NodeLabels, Gauge>,
    double_allocations: Family<NodeLabels, Gauge>,
    unassigned_pods: Family<NodeLabels, Gauge>,
}

impl FindingMetrics {
    pub(super) fn register(&self, scheduler: &mut Registry) {
        let help = "1 for a node whose registered cards can't be read: it gets no GPU pods";
        scheduler.register("unreadable_node_registration", help, self.unreadable_registrations.clone());
        let help = "1 for a node whose Device can't be read: it gets no pods that ask for devices by type";
        scheduler.register("unreadable_device", help, self.unreadable_devices.clone());
        let help = "Pods of a node with an unreadable assignment: the node gets no further pods on these cards; nodes without such pods are not listed";
        scheduler.register("unreadable_pod_assignments", help, self.unreadable_assignments.clone());
        let help = "Cards of a node of which pods hold more than the card has; nodes without such cards are not listed";
        scheduler.register("overcommitted_cards", help, self.overcommitted_cards.clone());
        let help =
            "Devices of bound pods of a node that more than one claim has; nodes without any are not listed";
        scheduler.register("doubly_allocated_devices", help, self.double_allocations.clone());
        let help = "Bound pods of a node that request a share and carry no assignment; nodes without any are not listed";
        scheduler.register("unassigned_pods", help, self.unassigned_pods.clone());
    }

    /// Forgets all of them.
    pub(super) fn clear(&self) {
        self.unreadable_registrations.clear();
        self.unreadable_devices.clear();
        self.unreadable_assignments.clear();
        self.overcommitted_cards.clear();
        self.double_allocations.clear();
        self.unassigned_pods.clear();
    }

    /// Keeps how much is wrong on the node.
    pub(super) fn count(&self, node: &str, findings: FindingCounts) {
        let FindingCounts { overcommitted, double_allocations, unread, unassigned } = findings;
        list(&self.overcommitted_cards, node, overcommitted);
        list(&self.double_allocations, node, double_allocations);
        list(&self.unreadable_assignments, node, unread);
        list(&self.unassigned_pods, node, unassigned);
    }

    /// Keeps which nodes have a registration or a Device that can't be read.
    pub(super) fn take_in(&self, event: &Event) {
        let gauges = &self.unreadable_registrations;
        let unreadable = |node: &NodeInfo| node.devices.offers.iter().any(|offer| offer.inventory.is_none());
        let take_in = |node: &NodeInfo| list(gauges, &node.name, usize::from(unreadable(node)));
        match event {
            Event::Node(NodeChange::Listed(nodes)) => {
                gauges.clear();
                nodes.iter().for_each(take_in);
            }
            Event::Node(NodeChange::Seen(node)) => take_in(node),
            Event::Node(NodeChange::Gone(name)) => list(gauges, name, 0),
            _ => self.devices(event),
        }
    }

    /// Keeps which Devices can't be read.
    fn devices(&self, event: &Event) {
        let gauges = &self.unreadable_devices;
        let take_in = |object: &Object| {
            if let Object::Device(node, offer) = object {
                list(gauges, node, usize::from(offer.inventory.is_none()));
            }
        };
        match event {
            Event::Object(ObjectChange::Listed(Kind::Device, devices)) => {
                gauges.clear();
                devices.iter().for_each(take_in);
            }
            Event::Object(ObjectChange::Unserved(Kind::Device)) => gauges.clear(),
            Event::Object(ObjectChange::Seen(device)) => take_in(device),
            Event::Object(ObjectChange::Gone(Kind::Device, node)) => list(gauges, node, 0),
            _ => {}
        }
    }
}

/// Sets a gauge of a node; with 0 the node is not listed.
fn list(family: &Family<NodeLabels, Gauge>, node: &str, number: usize) {
    let labels = NodeLabels { node: node.to_owned() };
    match count(number) {
        0 => drop(family.remove(&labels)),
        number => drop(family.get_or_create(&labels).set(number)),
    }
}
