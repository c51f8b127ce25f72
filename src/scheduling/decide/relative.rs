//! The scores of nodes that are in percent of the highest, by slot: most pods have none.

use std::borrow::Cow;

use super::verdict::NodeVerdict;
use crate::scheduling::plugin::score::{RELATIVE_SCORES, RelativeColumns, RelativeScores};

/// Those scores, before they are normalised, by plugin.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RelativeBySlot([RelativeColumn; RELATIVE_SCORES]);

/// The scores by one plugin. Nothing is kept while all are 0.
#[derive(Clone, Debug, Default, PartialEq)]
struct RelativeColumn {
    /// By slot; empty where all are 0.
    scores: Vec<i64>,
    /// How many nodes have another than 0.
    nodes: usize,
}

impl RelativeBySlot {
    /// Whether every node's are 0.
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|column| column.nodes == 0)
    }

    /// Takes in the verdict on the node in this slot, of so many.
    pub(super) fn set(&mut self, slot: usize, slots: usize, verdict: &NodeVerdict) {
        let scores = match verdict {
            NodeVerdict::Fits(fit) if fit.scores.raw.is_relative() => fit.scores.raw.relative(),
            NodeVerdict::Fits(_) | NodeVerdict::Fails(_) => RelativeScores::default(),
        };
        for (column, score) in self.0.iter_mut().zip(scores) {
            column.set(slot, slots, score);
        }
    }

    /// Those of the nodes in these slots, which are in order, each once.
    pub(super) fn of_slots(&self, slots: &[usize]) -> RelativeColumns<'_> {
        self.0.each_ref().map(|column| column.of_slots(slots))
    }

    /// How many bytes they take.
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(|column| size_of_val(column.scores.as_slice())).sum()
    }
}

impl RelativeColumn {
    fn set(&mut self, slot: usize, slots: usize, score: i64) {
        if self.nodes == 0 && score == 0 {
            return;
        }
        self.scores.resize(slots, 0);
        let before = std::mem::replace(&mut self.scores[slot], score);
        self.nodes = self.nodes + usize::from(score != 0) - usize::from(before != 0);
        if self.nodes == 0 {
            self.scores = Vec::new();
        }
    }

    fn of_slots(&self, slots: &[usize]) -> Cow<'_, [i64]> {
        if self.nodes == 0 || slots.len() == self.scores.len() {
            return Cow::Borrowed(&self.scores);
        }
        slots.iter().map(|slot| self.scores.get(*slot).copied().unwrap_or_default()).collect()
    }
}
