//! Which nodes are alike: equal in the parts that plugins read of them, whatever they are called. Of those a class that is new judges one.
//!
//! What is known of a node holds for one generation of it, so nothing has to be undone when a pod is placed on trial.

#[cfg(test)]
mod tests;

use super::judging::GoOn;
use crate::scheduling::world::{
    World,
    descriptions::Descriptions,
    node_parts::{InfoPart, NodePart, PartId},
    node_state::NodeState,
};

/// The parts of a node that are read for a pod. Nodes with equal keys are one to it.
pub(super) type NodeKey = [PartId; NodePart::COUNT];

/// Which nodes are alike.
#[derive(Debug, Default)]
pub struct Likenesses {
    by_slot: Vec<DescribedNode>,
    descriptions: Descriptions,
}

/// The numbers of the descriptions of one node.
#[derive(Clone, Copy, Debug, Default)]
struct DescribedNode {
    /// The node's generation when it was described; 0: there was no node.
    generation: u64,
    /// The parts that plugins read.
    parts: NodeKey,
    /// What these refer to.
    of_info: [PartId; 2],
}

impl Likenesses {
    /// Describes those of the nodes in these slots that have changed since the last time, and says how many these were. `go_on` is asked before each;
    /// `None`: it has said no, and the rest is described the next time.
    pub(super) fn refresh(
        &mut self,
        world: &World,
        slots: impl IntoIterator<Item = usize>,
        go_on: GoOn<'_>,
    ) -> Option<usize> {
        if self.descriptions.are_used_up() {
            *self = Self::default();
        }
        let (nodes, generations) = (world.nodes.slots(), world.nodes.generations());
        self.by_slot.resize(nodes.len(), DescribedNode::default());
        let mut described = 0;
        for slot in slots {
            if self.by_slot[slot].generation == generations[slot] {
                continue;
            }
            go_on().continue_value()?;
            self.by_slot[slot] = match &nodes[slot] {
                Some(state) => self.describe(state),
                None => DescribedNode::default(),
            };
            described += 1;
        }
        let numbers = || self.by_slot.iter().flat_map(|node| node.parts.iter().chain(&node.of_info));
        self.descriptions.forget_all_but(|| numbers().copied());
        Some(described)
    }

    /// The node in this slot, with these parts read of it.
    pub(super) fn key(&self, slot: usize, read: &[NodePart]) -> NodeKey {
        let mut key = NodeKey::default();
        for part in read {
            key[*part as usize] = self.by_slot[slot].parts[*part as usize];
        }
        key
    }

    /// What plugins read of the amounts of the node in this slot, with how many cards it has.
    pub(super) fn amounts(&self, slot: usize) -> [PartId; 2] {
        let DescribedNode { parts, of_info: [_, fixtures], .. } = self.by_slot[slot];
        [parts[NodePart::Amounts as usize], fixtures]
    }

    fn describe(&mut self, node: &NodeState) -> DescribedNode {
        let known = &mut self.descriptions;
        let mut of_info = |part| known.number(|description| description.describe_info(part, &node.info));
        let labels = of_info(InfoPart::Labels);
        let (resources, fixtures) = (of_info(InfoPart::Resources), of_info(InfoPart::Fixtures));
        let amounts = known.number(|description| description.describe_amounts(node, resources));
        let rest = known.number(|description| description.describe_rest(node, fixtures));
        DescribedNode {
            generation: node.generation,
            parts: [labels, amounts, rest],
            of_info: [resources, fixtures],
        }
    }
}
