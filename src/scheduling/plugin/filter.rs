//! Whether one node can serve a pod: the plugins that look at one node, in the order of the table; the cards come last.

use std::collections::BTreeSet;

use super::{
    NodeReasons, TABLE,
    devices::{self, Devices},
    row::InTable,
    scene::Scene,
};
use crate::{
    device::{Allocation, CardId, Quota},
    scheduling::{
        model::pod::Ask,
        world::{node_parts::NodePart, node_state::NodeState},
    },
};

/// Which parts of a node the plugins that look at one node read for this ask: nodes that are equal in these are equal to all of them. `None`: what tells
/// nodes apart too.
pub fn reads(ask: &Ask) -> Option<Vec<NodePart>> {
    let mut parts = Vec::with_capacity(NodePart::COUNT);
    for row in TABLE.iter().filter(|row| row.looks_at_one_node()) {
        for part in (row.reads)(ask)? {
            if !parts.contains(part) {
                parts.push(*part);
            }
        }
    }
    Some(parts)
}

/// The cards that the node would give, one allocation for each request, or every reason of the first plugin that rejects it.
///
/// `device_resources` are the dialects' own: a node need not advertise them. `quotas` is what the pod's namespace may still take, one for each
/// request; a request without one has no bound.
pub fn filter(
    ask: &Ask,
    node: &NodeState,
    device_resources: &BTreeSet<String>,
    quotas: &[Quota],
) -> Result<Vec<Allocation>, NodeReasons> {
    filter_from(None, ask, node, device_resources, quotas)
}

/// As [`filter`], with this card tried before others.
pub fn filter_from(
    first_card: Option<&CardId>,
    ask: &Ask,
    node: &NodeState,
    device_resources: &BTreeSet<String>,
    quotas: &[Quota],
) -> Result<Vec<Allocation>, NodeReasons> {
    let scene = Scene { ask, node, device_resources, first_card };
    for test in TABLE.iter().filter_map(|row| row.test) {
        test(&scene)?;
    }
    devices::allocations(&scene, quotas).map_err(Devices::reasons)
}
