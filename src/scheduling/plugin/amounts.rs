//! What the plugins that look at one node make of its amounts: nodes differ in amounts more often than in what follows from these for a pod. The memory
//! of nodes of one type, for instance, differs by a few KiB.

use std::collections::BTreeSet;

use smallvec::SmallVec;

use super::{TABLE, contract::Placement, scene::Scene};
use crate::scheduling::{
    model::pod::Ask,
    packing::Packing,
    world::{node_parts::NodePart, node_state::NodeState},
};

/// What follows for a pod from the amounts of a node that has enough, and from how many cards it has: nodes for which it is equal, and which are equal in
/// their other parts, are equal to all plugins.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct AmountsVerdict(SmallVec<[u64; 10]>);

impl AmountsVerdict {
    /// `None`: the node has too little, or a plugin may read anything of them.
    pub fn of(
        ask: &Ask,
        node: &NodeState,
        device_resources: &BTreeSet<String>,
        packing: &Packing,
    ) -> Option<Self> {
        let scene = Scene { ask, node, device_resources, first_card: None };
        let placement = Placement { ask, node, allocations: &[], packing };
        let mut found = SmallVec::new();
        for row in TABLE.iter().filter(|row| row.looks_at_one_node()) {
            let read = (row.reads)(ask)?;
            if !read.contains(&NodePart::Amounts) {
                continue;
            }
            if let Some(scoring) = row.room_score {
                found.extend((scoring.amounts)(ask, node).map(u64::from));
                continue;
            }
            if *read != [NodePart::Amounts] {
                found.push((row.of_amounts)(ask, node)?);
                continue;
            }
            if let Some(test) = row.test {
                test(&scene).ok()?;
            }
            if let Some(scoring) = row.score {
                found.push((scoring.score)(&placement).map_or(u64::MAX, f64::to_bits));
            }
        }
        Some(Self(found))
    }
}
