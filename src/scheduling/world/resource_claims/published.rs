//! The cards of nodes that drivers publish as devices of claims.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::ResourceClaims;
use crate::{
    device::CardId,
    dra::{
        DevicePools, PoolId,
        device::{DeviceId, DeviceKind, PoolDevice},
    },
    persistent::PersistentMap,
    scheduling::model::name::NodeName,
};

/// Of which nodes pools publish cards.
#[derive(Clone, Debug, Default)]
pub(super) struct PublishedCards {
    nodes: PersistentMap<PoolId, BTreeSet<NodeName>>,
    /// The nodes of which other cards may be published since that was last asked.
    changed: BTreeSet<NodeName>,
}

impl PublishedCards {
    /// Takes in what a pool publishes by now.
    pub(super) fn note(&mut self, pool: &PoolId, inventory: &DevicePools) {
        let named = inventory.devices_of(pool).filter(|device| device.hardware.is_some());
        let nodes: BTreeSet<NodeName> = named.filter_map(PoolDevice::node).map(NodeName::from).collect();
        self.changed.extend(nodes.iter().cloned());
        self.changed.extend(self.nodes.get(pool).into_iter().flatten().cloned());
        if nodes.is_empty() {
            self.nodes.remove_mut(pool);
        } else {
            self.nodes.insert_mut(pool.clone(), nodes);
        }
    }
}

impl ResourceClaims {
    /// The nodes of which drivers may publish other cards since this was last asked.
    pub(in crate::scheduling) fn take_republished(&mut self) -> BTreeSet<NodeName> {
        std::mem::take(&mut self.published.changed)
    }

    /// The cards of a node that drivers publish, by driver and name of the device, each with its kind. A card may be published by several.
    pub(in crate::scheduling) fn published_cards(&self, node: &str) -> Vec<(CardId, Arc<DeviceKind>)> {
        if self.inventory.hardware_pools(node) == 0 {
            return Vec::new();
        }
        let devices = self.inventory.hardware_of(node).map(|(_, device)| (&device.id, device));
        // Of each device the newest generation counts.
        let newest: BTreeMap<&DeviceId, &PoolDevice> = devices.collect();
        let card = |device: &PoolDevice| {
            Some((CardId::from(device.hardware.as_ref()?), Arc::new(device.as_card()?)))
        };
        newest.into_values().filter_map(card).collect()
    }
}
