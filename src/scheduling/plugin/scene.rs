//! What the plugins that look at one node may read.

use std::collections::BTreeSet;

use crate::{
    device::CardId,
    scheduling::{model::pod::Ask, world::node_state::NodeState},
};

/// All that the plugins which look at one node may read.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// What the pod asks for.
    pub ask: &'a Ask,
    /// The node as it stands.
    pub node: &'a NodeState,
    /// The dialects' own resources: a node need not advertise them.
    pub device_resources: &'a BTreeSet<String>,
    /// The card that is tried before others.
    pub first_card: Option<&'a CardId>,
}
