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
    /// By slot: the node's generation when it was looked at, and its domain; `None`: the node lacks the label, or there is none.
    by_slot: Vec<(u64, Option<usize>)>,
}

/// The generation of a slot without a node.
const EMPTY: u64 = 0;

impl Topology {
    /// Of this key, without nodes.
    pub fn of_key(key: &Arc<str>) -> Self {
        Self { key: key.clone(), by_value: HashMap::new(), by_slot: Vec::new() }
    }

    /// The nodes as they are, by slot. Where nothing has changed since the last time, what others hold of it is shared on.
    #[must_use]
    pub fn refreshed(mut self: Arc<Self>, slots: &[Option<Arc<NodeState>>]) -> Arc<Self> {
        let generation =
            |state: &Option<Arc<NodeState>>| state.as_ref().map_or(EMPTY, |state| state.generation);
        let known = self.by_slot.iter().map(|(generation, _)| *generation);
        let known = known.chain(std::iter::repeat(EMPTY));
        let changed = slots.iter().zip(known).enumerate();
        let changed = changed.filter(|(_, (state, known))| generation(state) != *known);
        let changed: Vec<usize> = changed.map(|(slot, _)| slot).collect();
        if changed.is_empty() && self.by_slot.len() == slots.len() {
            return self;
        }
        let topology = Arc::make_mut(&mut self);
        topology.by_slot.resize(slots.len(), (EMPTY, None));
        for slot in changed {
            let domain = slots[slot].as_ref().and_then(|state| topology.number(state));
            topology.by_slot[slot] = (generation(&slots[slot]), domain);
        }
        // Values that no node has any more are dropped from time to time.
        if topology.by_value.len() > 2 * slots.len() {
            return Arc::new(Self::of_key(&topology.key)).refreshed(slots);
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
    pub fn of_slot(&self, slot: usize) -> Option<usize> {
        self.by_slot.get(slot).and_then(|(_, domain)| *domain)
    }

    /// The domain of a node; `None`: it lacks the label.
    pub fn of_node(&self, node: &NodeState) -> Option<usize> {
        match self.by_slot.get(node.slot) {
            Some((generation, domain)) if *generation == node.generation => *domain,
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
    pub fn of_slot(&mut self, slot: usize) -> Option<&mut T> {
        self.topology.of_slot(slot).map(|domain| &mut self.values[domain])
    }

    /// As [`Self::of_node`], to be changed.
    pub fn of_node_mut(&mut self, node: &NodeState) -> Option<&mut T> {
        self.topology.of_node(node).map(|domain| &mut self.values[domain])
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
