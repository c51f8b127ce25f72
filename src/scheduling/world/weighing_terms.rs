//! By which terms about other pods the pods of each node move the scores of nodes for others: looked up again only where a node has changed.

use std::{collections::HashMap, ptr, sync::Arc};

use smallvec::SmallVec;

use super::{by_slot::BySlot, node_state::NodeState};
use crate::scheduling::model::footprint::NeighbourTerms;

/// The terms of the pods of each node that attract or repel others. Pods that are alike have one list of terms.
#[derive(Clone, Debug, Default)]
pub struct WeighingTerms {
    /// The lists, by number; some may be of pods that have gone.
    lists: Vec<Arc<NeighbourTerms>>,
    /// The number of each, by address, which none of the others has while it is kept.
    numbers: HashMap<usize, usize>,
    by_slot: BySlot<NumberedTerms>,
}

/// The numbers of the lists of a node's pods, each with how many pods have it.
type NumberedTerms = SmallVec<[(usize, i64); 1]>;

impl WeighingTerms {
    /// The nodes as they are, by slot, with their generations. Where nothing has changed since the last time, what others hold of it is shared on.
    #[must_use]
    pub fn refreshed(
        mut self: Arc<Self>,
        slots: &[Option<Arc<NodeState>>],
        generations: &[u64],
    ) -> Arc<Self> {
        if self.by_slot.is_current(generations) {
            return self;
        }
        let Self { lists, numbers, by_slot } = Arc::make_mut(&mut self);
        by_slot.refresh(slots, generations, |state, _| {
            let pods = state.map_or(&[][..], |state| &state.pods);
            let mut of_node = NumberedTerms::new();
            for pod in pods.iter().filter(|pod| pod.weighs()) {
                let number = *numbers.entry(ptr::from_ref(&*pod.neighbours).addr()).or_insert_with(|| {
                    lists.push(pod.neighbours.clone());
                    lists.len() - 1
                });
                match of_node.iter_mut().find(|(known, _)| *known == number) {
                    Some((_, pods)) => *pods += 1,
                    None => of_node.push((number, 1)),
                }
            }
            Some(of_node)
        });
        // Lists that no pod has any more are dropped from time to time.
        let used = || by_slot.as_slice().iter().map(SmallVec::len).sum::<usize>();
        if lists.len() > 2 * slots.len() && lists.len() > 2 * used() {
            return Arc::new(Self::default()).refreshed(slots, generations);
        }
        self
    }

    /// The lists of terms, by number.
    pub fn lists(&self) -> &[Arc<NeighbourTerms>] {
        &self.lists
    }

    /// Each of these slots with the number of a list, and how many pods there have it.
    pub fn in_slots(&self, slots: impl Iterator<Item = usize>) -> impl Iterator<Item = (usize, usize, i64)> {
        slots.flat_map(|slot| {
            let of_node = self.by_slot.get(slot).map_or(&[][..], SmallVec::as_slice);
            of_node.iter().map(move |(number, pods)| (slot, *number, *pods))
        })
    }
}

#[cfg(test)]
mod tests;
