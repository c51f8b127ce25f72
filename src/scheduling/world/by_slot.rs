//! What is made of each node, by slot: it is made again only where a node has changed.

use std::sync::Arc;

use super::node_state::NodeState;

/// Something of each node.
#[derive(Clone, Debug, Default)]
pub struct BySlot<T> {
    /// By slot, the node's generation when it was looked at; 0: there was none.
    generations: Vec<u64>,
    made: Vec<T>,
}

impl<T: Clone + Default> BySlot<T> {
    /// Whether no node has changed: these are the generations that the nodes have now.
    pub fn is_current(&self, generations: &[u64]) -> bool {
        self.generations == generations
    }

    /// Makes it again in each slot that has changed; of a slot without a node, too. Where `of` has no answer, that slot and the rest stay as they were.
    pub fn refresh(
        &mut self,
        slots: &[Option<Arc<NodeState>>],
        generations: &[u64],
        mut of: impl FnMut(Option<&NodeState>) -> Option<T>,
    ) {
        self.generations.resize(slots.len(), 0);
        self.made.resize(slots.len(), T::default());
        for (slot, generation) in generations.iter().enumerate() {
            if self.generations[slot] == *generation {
                continue;
            }
            let Some(made) = of(slots[slot].as_deref()) else { return };
            self.generations[slot] = *generation;
            self.made[slot] = made;
        }
    }

    /// Has everything made again.
    pub fn outdate(&mut self) {
        self.generations.clear();
    }

    /// What was made of the node in this slot.
    #[inline]
    pub fn get(&self, slot: usize) -> Option<&T> {
        self.made.get(slot)
    }

    /// What was made of exactly this state of a node; `None`: it was made of another one.
    pub fn of_node(&self, node: &NodeState) -> Option<&T> {
        let generation = self.generations.get(node.slot)?;
        self.get(node.slot).filter(|_| *generation == node.generation)
    }

    /// What was made of each, by slot.
    pub fn as_slice(&self) -> &[T] {
        &self.made
    }
}
