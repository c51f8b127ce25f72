//! Devices that are kept for a pod, and what they take of the cards of their node.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    ResourceClaims,
    cards::{Doubt, NodeClaims, PoolClaims, fold},
};
use crate::{
    dra::{PoolId, held},
    object::resource_claim::AllocationResult,
    scheduling::world::node_state::NodeState,
};

/// Devices of one node that are kept for a pod.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(in crate::scheduling) struct KeptDevices {
    /// What its claims would be given.
    allocations: Vec<Arc<AllocationResult>>,
    /// What these take of the node's cards.
    cards: BTreeMap<PoolId, PoolClaims>,
    /// The stamp of the node's devices when they were chosen.
    stamp: u64,
}

impl KeptDevices {
    /// These devices of a node, to be kept.
    pub(in crate::scheduling) fn of(
        known: &ResourceClaims,
        node: &str,
        allocations: Vec<Arc<AllocationResult>>,
    ) -> Self {
        let pools = allocations.iter().flat_map(|allocation| held::pools(allocation));
        let pools: BTreeSet<PoolId> = pools.collect();
        let of_node = |pool: PoolId| {
            let held = allocations.iter().map(|allocation| &**allocation);
            let claims = fold(&pool, &known.inventory, held).remove(node)?;
            Some((pool, claims))
        };
        let cards = pools.into_iter().filter_map(of_node).collect();
        Self { allocations, cards, stamp: 0 }
    }

    /// The stamp of the node's devices when they were chosen.
    pub(in crate::scheduling) fn stamp(&self) -> u64 {
        self.stamp
    }

    /// The same, chosen at this stamp of the node's devices.
    #[must_use]
    pub(in crate::scheduling) fn stamped(self, stamp: u64) -> Self {
        Self { stamp, ..self }
    }

    /// The node as it is while these are kept on it too.
    pub(in crate::scheduling) fn keep_on(&self, mut node: NodeState) -> NodeState {
        if self.allocations.is_empty() {
            return node;
        }
        if !self.cards.is_empty() {
            let registered = node.registered().clone();
            let claims = NodeClaims { pools: Some(&self.cards) };
            node.usage = claims.join(&node.info, node.usage, Doubt::Skipped);
            node.claimed.beside = Some(registered);
        }
        node.claimed.kept.get_or_insert_default().extend(self.allocations.iter().cloned());
        node
    }
}
