//! What an allocation follows from, without what tells the devices of one node from those of another: nodes that are described alike have alike devices
//! for the same claims.

use std::{
    collections::BTreeSet,
    hash::{Hash, Hasher},
};

use super::{CandidateDevice, candidates};
use crate::dra::{
    DevicePools, HeldDevices, TargetNode,
    device::PoolDevice,
    node::NodeSelection,
    pool::{PoolState, VisiblePool},
};

/// Describes the devices of a node by what values write when they are hashed, with these of their attributes, and returns how many there are. What pools and
/// devices are called is left out. For claims to which no other attributes matter ([`crate::dra::WaitingClaim::attributes`]), and which find nothing in
/// use but `held`, the allocator finds the same on nodes with equal descriptions, up to these names and to errors.
///
/// `None`: the node can't be described so. It can reach devices of other nodes too, or selectors see more of a device than is described.
pub fn describe(
    node: TargetNode<'_>,
    (inventory, held): (&DevicePools, &HeldDevices),
    attributes: &BTreeSet<String>,
    description: &mut impl Hasher,
) -> Option<usize> {
    let pools = inventory.pools(node);
    if !pools.iter().all(|pool| is_of_alone(pool, node)) {
        return None;
    }
    description.write_usize(pools.len());
    for pool in &pools {
        (&pool.id.0, pool.counters(), pool.devices.len()).hash(description);
    }
    let candidates = candidates(&pools, node, held);
    for candidate in &candidates {
        let CandidateDevice { device, pool: _, featureless, held, is_claimed, shares_left } = candidate;
        let PoolDevice {
            id: _,
            reading: _,
            attributes: values,
            capacity,
            consumes,
            hardware: _,
            nodes,
            taints,
            binding: _,
            shareable,
            view,
            unserved,
        } = device;
        if !view.is_plain || !nodes.takes.is_nothing() {
            return None;
        }
        (featureless, held, is_claimed, shares_left).hash(description);
        (capacity, consumes, taints, shareable, view.variable.is_err(), unserved).hash(description);
        for name in attributes {
            values.get(name).hash(description);
        }
    }
    Some(candidates.len())
}

/// Whether the pool has all of its devices on the node.
fn is_of_alone(pool: &VisiblePool<'_>, node: TargetNode<'_>) -> bool {
    let is_it = |device: &PoolDevice| matches!(&device.nodes.selection, NodeSelection::Name(name) if name == node.name);
    pool.state == PoolState::Usable && pool.all_devices().all(is_it)
}
