//! What is made of each node, by slot: it is made again only where a node has changed.

use std::sync::Arc;

use super::node_state::NodeState;

/// So many slots are compared at once: of most nodes nothing has changed.
const LANES: usize = 64;

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

    /// Makes it again in each slot that has changed; of a slot without a node, too. `of` also sees what was made before, and where it has no answer, that slot
    /// and the rest stay as they were.
    pub fn refresh(
        &mut self,
        slots: &[Option<Arc<NodeState>>],
        generations: &[u64],
        mut of: impl FnMut(Option<&NodeState>, &T) -> Option<T>,
    ) {
        self.generations.resize(slots.len(), 0);
        self.made.resize(slots.len(), T::default());
        for slot in changed(&self.generations, generations) {
            let Some(made) = of(slots[slot].as_deref(), &self.made[slot]) else { return };
            self.generations[slot] = generations[slot];
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
        self.of_generation(node.slot, node.generation)
    }

    /// What was made of the node in this slot, in this generation; `None`: it was made of another one.
    pub fn of_generation(&self, slot: usize, generation: u64) -> Option<&T> {
        let known = self.generations.get(slot)?;
        self.get(slot).filter(|_| *known == generation)
    }

    /// What was made of each, by slot.
    pub fn as_slice(&self) -> &[T] {
        &self.made
    }
}

impl BySlot<i64> {
    /// The slots of which a number other than 0 was made, each with it, in their order.
    pub fn counted(&self) -> impl Iterator<Item = (usize, i64)> {
        let has_some = |made: &[i64]| made.iter().fold(0, |bits, one| bits | one) != 0;
        let chunks = self.made.chunks(LANES).enumerate().filter(move |(_, made)| has_some(made));
        chunks.flat_map(|(at, made)| {
            let made = made.iter().enumerate().filter(|(_, made)| **made != 0);
            made.map(move |(lane, made)| (at * LANES + lane, *made))
        })
    }
}

/// The slots whose nodes are in another generation now than in the one that is known, in their order.
pub fn changed(known: &[u64], now: &[u64]) -> Vec<usize> {
    let mut changed = Vec::new();
    for (at, (known, now)) in known.chunks(LANES).zip(now.chunks(LANES)).enumerate() {
        if known == now {
            continue;
        }
        for (lane, (known, now)) in known.iter().zip(now).enumerate() {
            if known != now {
                changed.push(at * LANES + lane);
            }
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_slot_in_another_generation_is_found(
            generations in prop::collection::vec((0_u64..9, any::<bool>()), 0..300),
            beyond in 0_usize..3,
        ) {
            let known: Vec<u64> = generations.iter().map(|(generation, _)| *generation).collect();
            let mut now: Vec<u64> =
                generations.iter().map(|(generation, is_other)| generation + u64::from(*is_other)).collect();
            now.extend(vec![7; beyond]);
            let others = generations.iter().enumerate().filter(|(_, (_, is_other))| *is_other);
            prop_assert_eq!(changed(&known, &now), others.map(|(slot, _)| slot).collect::<Vec<_>>());
        }

        #[test]
        fn every_slot_that_counts_is_found(made in prop::collection::vec(prop_oneof![9 => Just(0_i64), 1 => 1_i64..3], 0..300)) {
            let by_slot = BySlot { generations: vec![1; made.len()], made: made.clone() };
            let expected = made.into_iter().enumerate().filter(|(_, made)| *made != 0);
            prop_assert_eq!(by_slot.counted().collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        }
    }
}
