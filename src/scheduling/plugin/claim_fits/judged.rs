//! What the allocator has found on each node, by slot. What a decision looks at of every node lies close together.

use std::sync::Arc;

use super::super::dynamic_resources::{found::FoundDevices, rejection::ClaimRejection};
use crate::dra::Selected;

/// What it has found for some claims.
#[derive(Clone, Debug, Default)]
pub(super) struct JudgedNodes {
    /// The node's generation when it was judged; 0: there was no node, or it is to be judged anew.
    generations: Vec<u64>,
    /// Whether the node lacks devices, where that holds for more than one decision.
    lacking: Vec<bool>,
    of_nodes: Vec<JudgedNode>,
}

/// What it has found on one node.
#[derive(Clone, Debug, Default)]
pub(super) struct JudgedNode {
    /// The stamp of the node's devices then; `None`: the verdict holds for one decision.
    pub(super) stamp: Option<u64>,
    /// Nodes that are alike share it. `None`: there was no node.
    pub(super) found: Option<Found>,
    /// Which of its devices selectors admit, where it was judged by itself.
    pub(super) selected: Option<Box<Selected>>,
}

/// What was found on a node.
pub(super) type Found = Arc<Result<FoundDevices, ClaimRejection>>;

impl JudgedNodes {
    /// Makes room for so many slots.
    pub(super) fn resize(&mut self, slots: usize) {
        self.generations.resize(slots, 0);
        self.lacking.resize(slots, false);
        self.of_nodes.resize_with(slots, JudgedNode::default);
    }

    /// The generation of each node when it was judged; 0: there was no node, or it is to be judged anew.
    pub(super) fn generations(&self) -> &[u64] {
        &self.generations
    }

    /// By slot, whether the node lacks devices, as far as that holds for more than one decision.
    pub(super) fn lacking(&self) -> &[bool] {
        &self.lacking
    }

    /// What was found on the node in this slot.
    pub(super) fn get(&self, slot: usize) -> Option<&JudgedNode> {
        self.of_nodes.get(slot)
    }

    /// The same, if the node was judged in this generation.
    pub(super) fn of_generation(&self, slot: usize, generation: u64) -> Option<&JudgedNode> {
        self.get(slot).filter(|_| self.generations[slot] == generation)
    }

    /// Those that were judged, with their slots and generations.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, u64, &JudgedNode)> {
        let judged = self.generations.iter().zip(&self.of_nodes).enumerate();
        judged
            .filter(|(_, (generation, _))| **generation > 0)
            .map(|(slot, (generation, judged))| (slot, *generation, judged))
    }

    /// There is no node in this slot.
    pub(super) fn clear(&mut self, slot: usize) {
        self.outdate(slot);
        self.of_nodes[slot] = JudgedNode::default();
    }

    /// The node in this slot is to be judged anew.
    pub(super) fn outdate(&mut self, slot: usize) {
        (self.generations[slot], self.lacking[slot]) = (0, false);
    }

    /// This was found on the node in this slot, in this generation and with this stamp of its devices; without one, it holds for one decision.
    pub(super) fn set(&mut self, slot: usize, (generation, stamp): (u64, Option<u64>), found: Found) {
        self.generations[slot] = generation;
        self.lacking[slot] = found.is_err() && stamp.is_some();
        let judged = &mut self.of_nodes[slot];
        (judged.stamp, judged.found) = (stamp, Some(found));
    }

    /// Which devices of the node in this slot selectors admit, to be found out further.
    pub(super) fn selected_mut(&mut self, slot: usize) -> &mut Option<Box<Selected>> {
        &mut self.of_nodes[slot].selected
    }
}

impl JudgedNode {
    /// Which of its devices selectors admit, as far as that is known.
    pub(super) fn selected(&self) -> Selected {
        self.selected.as_deref().cloned().unwrap_or_default()
    }
}
