//! The scores of nodes that are in percent of the highest, by slot: most pods have none.

use super::verdict::NodeVerdict;
use crate::scheduling::plugin::score::RelativeScores;

/// Those scores, before they are normalised. Nothing is kept while all are 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RelativeBySlot {
    /// By slot; empty where all are 0.
    scores: Vec<RelativeScores>,
    /// How many nodes have one above 0.
    nodes: usize,
}

impl RelativeBySlot {
    /// Whether every node's are 0.
    pub(super) fn is_empty(&self) -> bool {
        self.nodes == 0
    }

    /// Takes in the verdict on the node in this slot, of so many.
    pub(super) fn set(&mut self, slot: usize, slots: usize, verdict: &NodeVerdict) {
        let scores = match verdict {
            NodeVerdict::Fits(fit) if fit.scores.raw.is_relative() => fit.scores.raw.relative(),
            NodeVerdict::Fits(_) | NodeVerdict::Fails(_) => RelativeScores::default(),
        };
        let none = RelativeScores::default();
        if self.is_empty() && scores == none {
            return;
        }
        self.scores.resize(slots, none);
        let before = std::mem::replace(&mut self.scores[slot], scores);
        self.nodes = self.nodes + usize::from(scores != none) - usize::from(before != none);
        if self.nodes == 0 {
            self.scores = Vec::new();
        }
    }

    /// Those of the nodes in these slots; nothing where all are 0.
    pub(super) fn of_slots(&self, slots: &[usize]) -> Vec<RelativeScores> {
        if self.is_empty() {
            return Vec::new();
        }
        slots.iter().filter_map(|slot| self.scores.get(*slot)).copied().collect()
    }

    /// How many bytes they take.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.scores.as_slice())
    }
}
