//! By which terms about other pods the pods of each node move the scores of nodes for others: looked up again only where a node has changed.

use std::{collections::HashMap, ptr, sync::Arc};

use smallvec::SmallVec;

use super::node_state::NodeState;
use crate::scheduling::model::footprint::NeighbourTerms;

/// The terms of the pods of each node that attract or repel others. Pods that are alike have one list of terms.
#[derive(Clone, Debug, Default)]
pub struct WeighingTerms {
    /// The lists, by number; some may be of pods that have gone.
    lists: Vec<Arc<NeighbourTerms>>,
    /// The number of each, by address, which none of the others has while it is kept.
    numbers: HashMap<usize, usize>,
    /// By slot, the node's generation when it was looked at; 0: there was none.
    generations: Vec<u64>,
    /// By slot, the numbers of the lists of the node's pods, each with how many pods have it.
    by_slot: Vec<SmallVec<[(usize, i64); 1]>>,
}

impl WeighingTerms {
    /// The nodes as they are, by slot, with their generations. Where nothing has changed since the last time, what others hold of it is shared on.
    #[must_use]
    pub fn refreshed(
        mut self: Arc<Self>,
        slots: &[Option<Arc<NodeState>>],
        generations: &[u64],
    ) -> Arc<Self> {
        if self.generations == generations {
            return self;
        }
        let known = Arc::make_mut(&mut self);
        known.generations.resize(slots.len(), 0);
        known.by_slot.resize(slots.len(), SmallVec::new());
        for (slot, generation) in generations.iter().enumerate() {
            if known.generations[slot] != *generation {
                known.generations[slot] = *generation;
                known.by_slot[slot] =
                    slots[slot].as_ref().map(|state| known.of_node(state)).unwrap_or_default();
            }
        }
        // Lists that no pod has any more are dropped from time to time.
        let used = known.by_slot.iter().map(SmallVec::len).sum::<usize>();
        if known.lists.len() > 2 * used.max(slots.len()) {
            return Arc::new(Self::default()).refreshed(slots, generations);
        }
        self
    }

    fn of_node(&mut self, state: &NodeState) -> SmallVec<[(usize, i64); 1]> {
        let mut of_node: SmallVec<[(usize, i64); 1]> = SmallVec::new();
        for pod in state.pods.iter().filter(|pod| pod.weighs()) {
            let number = *self.numbers.entry(ptr::from_ref(&*pod.neighbours).addr()).or_insert_with(|| {
                self.lists.push(pod.neighbours.clone());
                self.lists.len() - 1
            });
            match of_node.iter_mut().find(|(known, _)| *known == number) {
                Some((_, pods)) => *pods += 1,
                None => of_node.push((number, 1)),
            }
        }
        of_node
    }

    /// The lists of terms, by number.
    pub fn lists(&self) -> &[Arc<NeighbourTerms>] {
        &self.lists
    }

    /// Each slot with the number of a list, and how many pods there have it.
    pub fn by_slot(&self) -> impl Iterator<Item = (usize, usize, i64)> {
        let by_slot = self.by_slot.iter().enumerate();
        by_slot.flat_map(|(slot, of_node)| of_node.iter().map(move |(number, pods)| (slot, *number, *pods)))
    }
}

#[cfg(test)]
mod tests;
