//! Devices of bound pods that several claims were given, or of which claims were given more than there is.
//!
//! Berth gives no device twice, and gives way while its pod is not bound. What is found here is for people to end: a pod that is bound has its devices.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    dra::{Excess, device::DeviceId},
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

/// A device that several claims have, although it is not to be shared, or of which they have more than there is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DoubleAllocation {
    /// The device.
    pub device: DeviceId,
    /// Of what claims have too much; `None`: one of them has the whole device.
    pub excess: Option<Excess>,
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
        if claims.held().is_consistent() {
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
                    excess: claims.held().excess(device).cloned(),
                    claims: claims_with(device, claims),
                    pods: BTreeSet::new(),
                });
                given.pods.insert(uid.clone());
            }
        }
        found
    }

    pub(super) fn message(&self) -> Message {
        let Self { device: DeviceId { driver, pool, device }, excess, claims, .. } = self;
        let claims: Vec<_> = claims.iter().map(|claim| &**claim).collect();
        let claims = claims.join(", ");
        let (full, own) = match excess {
            None => (
                format!(
                    "Device {device} of pool {pool} ({driver}) is allocated to more than one claim: {claims}. Delete all but one of their Pods"
                ),
                format!(
                    "Device {device} of this Pod ({driver}) is allocated to another claim, too. Delete one of their Pods"
                ),
            ),
            Some(excess) => (
                format!(
                    "More of {excess} is allocated than there is, with device {device} of pool {pool} ({driver}), to claims {claims}. Delete Pods of \
                     some of them"
                ),
                format!(
                    "More of {excess} is allocated than there is, with device {device} of this Pod ({driver}). Delete one of the Pods that have it"
                ),
            ),
        };
        Message::with_own(full, own)
    }
}
