//! What is in use of a node: by pods, by claims of devices, and by Koordinator's Reservations.

use std::sync::Arc;

use super::Snapshot;
use crate::{
    device::Usage,
    scheduling::{
        model::{footprint::Footprint, name::NodeName, node::NodeInfo, resources::ResourceAmounts},
        world::{
            ledger::Charge,
            node_state::{self, NodeState},
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

impl InUse {
    /// What is in use of a node by these of its pods, of which these are the charges, by claims of devices and by its Reservations.
    pub(super) fn of(
        snapshot: &Snapshot,
        (info, name): (&NodeInfo, &NodeName),
        pods: &[Arc<Footprint>],
        charges: &[&Charge],
    ) -> Self {
        let Snapshot { world, ledger, reserved, .. } = snapshot;
        let own = ledger.usage_by(name, charges);
        let requested = node_state::requested(pods);
        let claims = world.claims_on(info, pods);
        let join = |usage: Usage| match claims {
            Some((claims, doubt)) => claims.join(info, info.devices.joined(usage), doubt),
            None => info.devices.joined(usage),
        };
        let Some(reserved) = reserved.on_node(name) else {
            let beside_claims = claims.is_some().then(|| info.devices.joined(own.clone()));
            return Self { usage: join(own), beside_claims, requested, reservations: Vec::new() };
        };
        let beside_claims = claims.is_some().then(|| {
            let of_pods = (own.clone(), ResourceAmounts::default());
            fold(|usage| info.devices.joined(usage), reserved.values(), charges, of_pods).0
        });
        let (usage, requested, reservations) = fold(join, reserved.values(), charges, (own, requested));
        Self { usage, beside_claims, requested, reservations }
    }
}

/// What is in use of a node's cards by these charges on it, without what claims of devices and Reservations hold there: all of it is that much, or more.
pub(in crate::scheduling) fn least_usage(snapshot: &Snapshot, info: &NodeInfo, charges: &[&Charge]) -> Usage {
    let reserved = snapshot.reserved.on_node(&info.name).is_some();
    // What pods hold of a Reservation may count for less beside it.
    if reserved {
        Usage::default()
    } else {
        info.devices.joined(snapshot.ledger.usage_by(&info.name, charges))
    }
}

/// A node as it is with these alone of the charges on it. What claims of devices hold stays as it is.
pub(in crate::scheduling) fn with_charges(
    snapshot: &Snapshot,
    node: &NodeState,
    charges: &[&Charge],
) -> NodeState {
    snapshot.state_with(node.slot, &node.info.name, (node.info.clone(), node.zone.clone()), charges)
}
