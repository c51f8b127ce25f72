//! What Koordinator's Reservations hold of nodes, beside what pods do.

use std::sync::Arc;

use super::Snapshot;
use crate::{
    device::Usage,
    scheduling::{
        footprint::Footprint,
        ledger::Charge,
        node::{NodeInfo, NodeName},
        node_state,
        object::{Kind, Object},
        pod::{Demand, Uid},
        reservation::{Reserved, fold},
        resources::ResourceAmounts,
    },
};

impl Snapshot {
    /// What is in use of a node by these of its pods and by its Reservations: cards and devices, other resources, and each Reservation.
    pub(super) fn in_use(
        &self,
        (info, name): (&NodeInfo, &NodeName),
        pods: &[Arc<Footprint>],
        counts: impl Fn(&Uid, &Charge) -> bool,
    ) -> (Usage, ResourceAmounts, Vec<Arc<Reserved>>) {
        let usage = self.ledger.usage_by(name, &counts);
        let requested = node_state::requested(pods);
        let Some(reservations) = self.reserved.get(name) else {
            return (info.joined(usage), requested, Vec::new());
        };
        let charges = self.ledger.on_node(name).filter(|(uid, charge)| counts(uid, charge));
        let charges: Vec<&Charge> = charges.map(|(_, charge)| charge).collect();
        fold(info, reservations.values(), &charges, (usage, requested))
    }

    /// Replaces the Reservation of this name; `None`: it is gone. Returns the nodes on which it holds something, or did.
    pub(super) fn set_reservation(&mut self, name: &Arc<str>, object: Option<&Object>) -> Vec<NodeName> {
        let mut nodes = Vec::new();
        self.reserved.retain(|node, of_node| {
            nodes.extend(of_node.remove(name).map(|_| node.clone()));
            !of_node.is_empty()
        });
        if let Some(Object::Reservation(_, reservation)) = object
            && let Some(node) = &reservation.node
        {
            self.reserved.entry(node.clone()).or_default().insert(name.clone(), reservation.clone());
            nodes.push(node.clone());
        }
        nodes.sort_unstable();
        nodes.dedup();
        for node in &nodes {
            self.refold(node);
        }
        nodes
    }

    /// Whether a Reservation is for the pod, or the pod must use one: what is found for it holds for no other.
    pub(in crate::scheduling) fn has_reservation_for(&self, demand: &Demand) -> bool {
        let Some(pod) = &demand.footprint.reservation else { return false };
        let mut all = self.objects().of_kind(Kind::Reservation);
        pod.affinity.is_some()
            || all.any(|object| matches!(object, Object::Reservation(_, one) if one.is_for(demand)))
    }
}
