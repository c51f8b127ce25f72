//! Which domain of a topology key each node is in: looked up again only where a node has changed.
//!
//! A domain is the nodes with one value of a node label (v1.36 `pkg/scheduler/framework/plugins/podtopologyspread`). What stands in a
//! domain is not known here.

use std::{collections::HashMap, sync::Arc};

use super::node_state::NodeState;

/// The domains of one topology key. Each has a number below [`Self::numbers`].
#[derive(Clone, Debug)]
pub struct Topology {
    key: Arc<str>,
    by_value: HashMap<Arc<str>, usize>,
    /// By slot, the node's generation when it was looked at; 0: there was none.
    generations: Vec<u64>,
    /// By slot, the node's domain; `None`: it lacks the label, or there is none.
    by_slot: Vec<Option<usize>>,
}

impl Topology {
    /// Of this key, without nodes.
    pub fn of_key(key: &Arc<str>) -> Self {
        Self { key: key.clone(), by_value: HashMap::new(), generations: Vec::new(), by_slot: Vec::new() }
    }

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
        let topology = Arc::make_mut(&mut self);
        topology.generations.resize(slots.len(), 0);
        topology.by_slot.resize(slots.len(), None);
        for (slot, generation) in generations.iter().enumerate() {
            if topology.generations[slot] != *generation {
                topology.generations[slot] = *generation;
                topology.by_slot[slot] = slots[slot].as_ref().and_then(|state| topology.number(state));
            }
        }
        // Values that no node has any more are dropped from time to time.
        if topology.by_value.len() > 2 * slots.len() {
            return Arc::new(Self::of_key(&topology.key)).refreshed(slots, generations);
        }
        self
    }

    fn number(&mut self, state: &NodeState) -> Option<usize> {
        let value = state.info.labels.get(&*self.key)?.as_str();
        if let Some(known) = self.by_value.get(value) {
            return Some(*known);
        }
        let next = self.by_value.len();
        self.by_value.insert(value.into(), next);
        Some(next)
    }

    /// How many numbers of domains there are; some may be of domains that have gone.
    pub fn numbers(&self) -> usize {
        self.by_value.len()
    }

    /// The domain of the node in this slot; `None`: it lacks the label, or there is no node.
    #[inline]
    pub fn of_slot(&self, slot: usize) -> Option<usize> {
        self.by_slot.get(slot).copied().flatten()
    }

    /// The domain of a node; `None`: it lacks the label.
    pub fn of_node(&self, node: &NodeState) -> Option<usize> {
        match self.generations.get(node.slot) {
            Some(generation) if *generation == node.generation => self.of_slot(node.slot),
            // The state is not the one whose domain was looked up.
            _ => self.by_value.get(node.info.labels.get(&*self.key)?.as_str()).copied(),
        }
    }
}

/// Something for each domain of a topology key.
#[derive(Debug)]
pub struct ByDomain<T> {
    topology: Arc<Topology>,
    /// By number of the domain.
    values: Vec<T>,
}

impl<T: Clone + Default> ByDomain<T> {
    /// The default for each domain.
    pub fn of(topology: Arc<Topology>) -> Self {
        Self { values: vec![T::default(); topology.numbers()], topology }
    }

    /// What there is for the domain of a node; `None`: the node is in none.
    pub fn of_node(&self, node: &NodeState) -> Option<&T> {
        self.topology.of_node(node).map(|domain| &self.values[domain])
    }

    /// What there is for the domain of the node in this slot; `None`: the node is in none.
    pub fn of_slot(&self, slot: usize) -> Option<&T> {
        self.topology.of_slot(slot).map(|domain| &self.values[domain])
    }

    /// As [`Self::of_slot`], to be changed.
    pub fn of_slot_mut(&mut self, slot: usize) -> Option<&mut T> {
        self.topology.of_slot(slot).map(|domain| &mut self.values[domain])
    }

    /// What there is for the domain with this value of the label; `None`: there is no such domain.
    pub fn of_value(&mut self, value: &str) -> Option<&mut T> {
        self.topology.by_value.get(value).map(|domain| &mut self.values[*domain])
    }

    /// What there is for each domain, those included that have gone.
    pub fn values(&self) -> &[T] {
        &self.values
    }
}

#[cfg(test)]
mod tests;
