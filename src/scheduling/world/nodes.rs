//! Every node in a slot of its own, and which of them plugins have to look at.

use std::sync::Arc;

use bit_set::BitSet;

use super::{node_names::NodeNames, node_state::NodeState};
use crate::scheduling::model::{images::Images, name::NodeName, node::NodeInfo};

/// Every node in its slot, which it keeps while it exists.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    slots: Vec<Option<Arc<NodeState>>>,
    /// By slot, the generation of the node's state, 0 where there is none: what has changed is found without a look at each node.
    generations: Vec<u64>,
    /// Shared, since nodes come and go far less often than what is on them.
    names: Arc<NodeNames>,
    repelling: BitSet,
    weighing: BitSet,
    claiming: BitSet,
    shares_only: BitSet,
    unfavoured: BitSet,
    images: Arc<Images>,
}

impl Nodes {
    /// A node.
    pub fn get(&self, name: &str) -> Option<&Arc<NodeState>> {
        self.at(self.slot(name)?)
    }

    /// The node in this slot.
    pub fn at(&self, slot: usize) -> Option<&Arc<NodeState>> {
        self.slots.get(slot)?.as_ref()
    }

    /// How many nodes there are.
    pub fn count(&self) -> usize {
        self.names.count()
    }

    /// Every node, in order of name.
    pub fn by_name(&self) -> impl Iterator<Item = &Arc<NodeState>> {
        self.names.iter().filter_map(|(_, slot)| self.at(slot))
    }

    /// The name of every node, in order.
    pub fn names(&self) -> impl Iterator<Item = &NodeName> {
        self.names.iter().map(|(name, _)| name)
    }

    /// The first by name of the nodes in these slots.
    pub fn first_by_name(&self, slots: impl IntoIterator<Item = usize>) -> Option<&Arc<NodeState>> {
        self.at(self.first_slot(slots)?)
    }

    /// That of these slots whose node comes first by name.
    pub fn first_slot(&self, slots: impl IntoIterator<Item = usize>) -> Option<usize> {
        self.names.first(slots)
    }

    /// Whether the node in the first of these slots comes before that in the second by name.
    #[inline]
    pub fn comes_before(&self, first: usize, second: usize) -> bool {
        self.names.comes_before(first, second)
    }

    /// Puts slots into the order of their nodes' names.
    pub fn sort_by_name(&self, slots: &mut [u32]) {
        self.names.sort(slots);
    }

    /// The nodes in these slots, in order of name.
    pub fn in_order_of_name(&self, slots: Vec<usize>) -> impl Iterator<Item = &Arc<NodeState>> {
        self.names.in_order(slots).filter_map(|slot| self.at(slot))
    }

    /// The nodes in those slots of which this holds, in order of name. It is asked of one after the other, as they are taken.
    pub fn in_order_of_name_where(
        &self,
        is_one: impl Fn(usize) -> bool,
    ) -> impl Iterator<Item = &Arc<NodeState>> {
        self.names.in_order_where(is_one).filter_map(|slot| self.at(slot))
    }

    /// Whether these are so many of the nodes that the first of them by name are found by a look at one after the other.
    pub fn are_many(&self, nodes: usize) -> bool {
        self.names.are_many(nodes)
    }

    /// Every node, in the order of slots.
    pub fn by_slot(&self) -> impl Iterator<Item = &Arc<NodeState>> {
        self.slots.iter().flatten()
    }

    /// The slots; `None`: there is no node.
    pub fn slots(&self) -> &[Option<Arc<NodeState>>] {
        &self.slots
    }

    /// By slot, the generation of each node's state; 0: there is no node.
    pub fn generations(&self) -> &[u64] {
        &self.generations
    }

    /// The slot of a node.
    pub fn slot(&self, name: &str) -> Option<usize> {
        self.names.slot(name)
    }

    /// The nodes with pods that have required anti-affinity, each with its slot.
    pub fn repelling(&self) -> impl Iterator<Item = (usize, &Arc<NodeState>)> {
        self.in_slots(&self.repelling)
    }

    /// The slots of the nodes with pods whose terms move the scores of nodes for other pods, in their order.
    pub fn weighing(&self) -> impl Iterator<Item = usize> {
        self.weighing.iter()
    }

    /// Whether there is such a node.
    pub fn has_weighing(&self) -> bool {
        !self.weighing.is_empty()
    }

    /// The nodes with pods that use claims.
    pub fn claiming(&self) -> impl Iterator<Item = &Arc<NodeState>> {
        self.in_slots(&self.claiming).map(|(_, state)| state)
    }

    /// Whether one of them is kept for pods with a share of a card.
    pub fn has_shares_only(&self) -> bool {
        !self.shares_only.is_empty()
    }

    /// Whether one of them has a taint of effect `PreferNoSchedule`.
    pub fn has_unfavoured(&self) -> bool {
        !self.unfavoured.is_empty()
    }

    fn in_slots<'a>(&'a self, slots: &'a BitSet) -> impl Iterator<Item = (usize, &'a Arc<NodeState>)> {
        slots.iter().filter_map(|slot| Some((slot, self.at(slot)?)))
    }

    /// On how many nodes each image is.
    pub fn images(&self) -> &Images {
        &self.images
    }

    /// The slot of a node, or a free one that is its own from now on.
    pub(in crate::scheduling) fn take_slot(&mut self, name: &NodeName) -> usize {
        if let Some(slot) = self.slot(name) {
            return slot;
        }
        // Where all are taken, none is looked for: each node that is listed after a start comes by here.
        let is_one_free = self.count() < self.slots.len();
        let free = if is_one_free { self.slots.iter().position(Option::is_none) } else { None };
        let slot = free.unwrap_or_else(|| {
            self.slots.push(None);
            self.generations.push(0);
            self.slots.len() - 1
        });
        Arc::make_mut(&mut self.names).insert(name.clone(), slot);
        slot
    }

    /// Puts a node's state into its slot, in place of what is there.
    pub(in crate::scheduling) fn put(&mut self, state: Arc<NodeState>) {
        let slot = state.slot;
        let kinds = [
            (&mut self.repelling, state.repels()),
            (&mut self.weighing, state.weighs()),
            (&mut self.claiming, state.claims()),
            (&mut self.shares_only, state.info.is_for_shares_only()),
            (&mut self.unfavoured, state.info.is_unfavoured()),
        ];
        for (slots, holds) in kinds {
            if holds {
                slots.insert(slot);
            } else {
                slots.remove(slot);
            }
        }
        self.generations[slot] = state.generation;
        self.slots[slot] = Some(state);
    }

    /// Replaces what is known of a node, of which nothing has changed that decides what fits.
    pub(in crate::scheduling) fn refresh(&mut self, mut info: NodeInfo) {
        let Some(slot) = self.slot(&info.name) else { return };
        self.count_images(slot, &mut info);
        if let Some(state) = self.slots[slot].as_mut() {
            Arc::make_mut(state).info = Arc::new(info);
        }
    }

    /// Counts the images that the node in this slot has from now on. They decide nothing but scores that are found anew for each
    /// decision, so no generation moves.
    pub(in crate::scheduling) fn count_images(&mut self, slot: usize, info: &mut NodeInfo) {
        let before = self.slots[slot].as_ref().map(|state| state.info.images.clone()).unwrap_or_default();
        info.images = if before == info.images {
            before
        } else {
            Arc::make_mut(&mut self.images).replace(&before, &info.images)
        };
    }

    /// Takes a node out, whose slot is free then; its name, if it was there.
    pub(in crate::scheduling) fn remove(&mut self, name: &str) -> Option<NodeName> {
        self.slot(name)?;
        let (name, slot) = Arc::make_mut(&mut self.names).remove(name)?;
        self.generations[slot] = 0;
        let images = self.slots[slot].take().map(|state| state.info.images.clone()).unwrap_or_default();
        Arc::make_mut(&mut self.images).remove(&images);
        self.repelling.remove(slot);
        self.weighing.remove(slot);
        self.claiming.remove(slot);
        self.shares_only.remove(slot);
        self.unfavoured.remove(slot);
        Some(name)
    }
}
