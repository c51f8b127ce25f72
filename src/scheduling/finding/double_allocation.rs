//! Devices of bound pods that several claims were given.
//!
//! Berth gives no device twice, and gives way while its pod is not bound. What is found here is for people to end: a pod that is bound has its devices.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    dra::device::DeviceId,
    scheduling::{
        model::{
            message::Message,
            name::{NodeName, Uid},
        },
        snapshot::Snapshot,
        world::{
            ledger::Commitment,
            resource_claims::double_allocation::{claims_with, double_allocations},
        },
    },
};

/// A device that several claims have, although it is not to be shared.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DoubleAllocation {
    /// The device.
    pub device: DeviceId,
    /// The full names of the claims.
    pub claims: BTreeSet<Arc<str>>,
    /// The bound pods of the node that have it by one of them.
    pub pods: BTreeSet<Uid>,
}

impl DoubleAllocation {
    /// Those of the bound pods of a node, by device.
    pub(super) fn on_node(node: &NodeName, snapshot: &Snapshot) -> BTreeMap<DeviceId, Self> {
        let claims = snapshot.resource_claims();
        let mut found: BTreeMap<DeviceId, Self> = BTreeMap::new();
        if claims.held().double_allocations().is_empty() {
            return found;
        }
        let bound =
            snapshot.ledger().on_node(node).filter(|(_, charge)| charge.commitment == Commitment::Bound);
        for (uid, charge) in bound {
            for device in
                charge.claims_of_devices().iter().flat_map(|claim| double_allocations(claim, claims))
            {
                let given = found.entry(device).or_insert_with_key(|device| Self {
                    device: device.clone(),
                    claims: claims_with(device, claims),
                    pods: BTreeSet::new(),
                });
                given.pods.insert(uid.clone());
            }
        }
        found
    }

    pub(super) fn message(&self) -> Message {
        let Self { device: DeviceId { driver, pool, device }, claims, .. } = self;
        let claims: Vec<_> = claims.iter().map(|claim| &**claim).collect();
        let full = format!(
            "Device {device} of pool {pool} ({driver}) is allocated to more than one claim: {}. Delete all but one of their Pods",
            claims.join(", ")
        );
        let own = format!(
            "Device {device} of this Pod ({driver}) is allocated to another claim, too. Delete one of their Pods"
        );
        Message::with_own(full, own)
    }
}
