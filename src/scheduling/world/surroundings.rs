//! The nodes and what beside them plugins read that look at more than one node.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;

use super::{
    node_state::NodeState, nominations::Nominations, object::Objects, quota::Quotas,
    resource_claims::ResourceClaims, volume_reservations::Reservations,
};
use crate::scheduling::model::images::Images;

/// The nodes and what beside them plugins read that look at more than one node.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// Every node by its slot.
    pub slots: &'a [Option<Arc<NodeState>>],
    /// The generation of each slot's node; 0: there is none.
    pub generations: &'a [u64],
    /// The slots of nodes with pods that have required anti-affinity.
    pub repelling: &'a BTreeSet<usize>,
    /// The slots of nodes with pods whose terms move the scores of nodes for other pods.
    pub weighing: &'a BTreeSet<usize>,
    /// The slots of nodes with pods that use claims.
    pub claiming: &'a BTreeSet<usize>,
    /// On how many nodes each image is.
    pub images: &'a Images,
    /// Other objects, namespaces among them.
    pub objects: &'a Objects,
    /// What pods that are being placed have chosen for their claims.
    pub reservations: &'a Reservations,
    /// Claims of devices, and what decides on them.
    pub resource_claims: &'a ResourceClaims,
    /// Pods that wait for room on a node that is kept for them.
    pub nominations: &'a Nominations,
    /// The quotas of namespaces.
    pub quotas: &'a Quotas,
    /// The dialects' own resources: a node need not advertise them.
    pub device_resources: &'a BTreeSet<String>,
    /// The time.
    pub now: Timestamp,
}

impl<'a> Surroundings<'a> {
    /// Every node, in the order of slots.
    pub fn nodes(&self) -> impl Iterator<Item = &'a Arc<NodeState>> + use<'a> {
        self.slots.iter().flatten()
    }
}
