//! What Koordinator's Reservations hold of nodes, beside what pods do.

use std::sync::Arc;

use super::Snapshot;
use crate::{
    device::Usage,
    scheduling::{
        model::{
            footprint::Footprint,
            kind::Kind,
            name::{NodeName, Uid},
            node::NodeInfo,
            pod::Demand,
            resources::ResourceAmounts,
        },
        world::{
            ledger::Charge,
            node_state,
            object::Object,
            reservation::{Reserved, fold},
        },
    },
};

/// What is in use of a node.
#[derive(Debug, PartialEq)]
pub(super) struct InUse {
    /// Cards and devices.
    pub(super) usage: Usage,
    /// The same by pods' shares alone, where claims of devices hold some of the cards too.
    pub(super) beside_claims: Option<Usage>,
    /// Other resources.
    pub(super) requested: ResourceAmounts,
    /// Each Reservation.
    pub(super) reservations: Vec<Arc<Reserved>>,
}

impl Snapshot {
    /// What is in use of a node by these of its pods, by claims of devices and by its Reservations.
    pub(super) fn in_use(
        &self,
        (info, name): (&NodeInfo, &NodeName),
        pods: &[Arc<Footprint>],
        counts: impl Fn(&Uid, &Charge) -> bool,
    ) -> InUse {
        let own = self.ledger.usage_by(name, &counts);
        let requested = node_state::requested(pods);
        let claims = self.claims_on(info, pods);
        let join = |usage: Usage| match claims {
            Some((claims, doubt)) => claims.join(info, info.joined(usage), doubt),
            None => info.joined(usage),
        };
        let Some(reserved) = self.reserved.get(name) else {
            let beside_claims = claims.is_some().then(|| info.joined(own.clone()));
            return InUse { usage: join(own), beside_claims, requested, reservations: Vec::new() };
        };
        let charges: Vec<&Charge> = self
            .ledger
            .on_node(name)
            .filter(|(uid, charge)| counts(uid, charge))
            .map(|(_, charge)| charge)
            .collect();
        let beside_claims = claims.is_some().then(|| {
            let of_pods = (own.clone(), ResourceAmounts::default());
            fold(|usage| info.joined(usage), reserved.values(), &charges, of_pods).0
        });
        let (usage, requested, reservations) = fold(join, reserved.values(), &charges, (own, requested));
        InUse { usage, beside_claims, requested, reservations }
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
