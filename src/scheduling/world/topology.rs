//! Which domain of a topology key each node is in: looked up again only where a node has changed.
//!
//! A domain is the nodes with one value of a node label (v1.36 `pkg/scheduler/framework/plugins/podtopologyspread`). What stands in a
//! domain is not known here.

use std::{collections::HashMap, num::NonZeroU32, sync::Arc};

use super::{by_slot::BySlot, node_state::NodeState};

/// The domains of one topology key. Each has a number below [`Self::numbers`].
#[derive(Clone, Debug)]
pub struct Topology {
    key: Arc<str>,
    by_value: HashMap<Arc<str>, usize>,
    /// How many nodes are in each domain, by its number.
    nodes: Vec<usize>,
    /// The node's domain; `None`: it lacks the label, or there is none.
    by_slot: BySlot<Option<Domain>>,
}

/// The number of a domain, and 1. Decisions look at those of all nodes, so they are small.
type Domain = NonZeroU32;

impl Topology {
    /// Of this key, without nodes.
    pub fn of_key(key: &Arc<str>) -> Self {
        Self { key: key.clone(), by_value: HashMap::new(), nodes: Vec::new(), by_slot: BySlot::default() }
    }

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
        if slots.len() < self.by_slot.as_slice().len() {
            // The nodes as they were at an earlier time: those of the other slots are not to be counted.
            return Arc::new(Self::of_key(&self.key)).refreshed(slots, generations);
        }
        let Self { key, by_value, nodes, by_slot } = Arc::make_mut(&mut self);
        by_slot.refresh(slots, generations, |state, before| {
            let now = state.and_then(|state| domain(by_value, state.info.labels.get(key)?));
            nodes.resize(by_value.len(), 0);
            if let Some(before) = before.map(number) {
                nodes[before] -= 1;
            }
            if let Some(now) = now.map(number) {
                nodes[now] += 1;
            }
            Some(now)
        });
        // Values that no node has any more are dropped from time to time.
        if by_value.len() > 2 * slots.len() {
            return Arc::new(Self::of_key(key)).refreshed(slots, generations);
        }
        self
    }

    /// How many numbers of domains there are; some may be of domains that have gone.
    pub fn numbers(&self) -> usize {
        self.by_value.len()
    }

    /// How many nodes are in each domain, by its number.
    pub fn nodes(&self) -> &[usize] {
        &self.nodes
    }

    /// The domain of the node in this slot; `None`: it lacks the label, or there is no node.
    #[inline]
    pub fn of_slot(&self, slot: usize) -> Option<usize> {
        self.by_slot.get(slot).copied().flatten().map(number)
    }

    /// Whether the nodes in all of these slots have the label.
    pub fn has_all(&self, slots: &[usize]) -> bool {
        slots.iter().all(|slot| self.by_slot.get(*slot).is_some_and(Option::is_some))
    }

    /// The domain of a node; `None`: it lacks the label.
    pub fn of_node(&self, node: &NodeState) -> Option<usize> {
        match self.by_slot.of_node(node) {
            Some(domain) => domain.map(number),
            // The state is not the one whose domain was looked up.
            None => self.by_value.get(node.info.labels.get(&self.key)?).copied(),
        }
    }
}

#[inline]
fn number(domain: Domain) -> usize {
    domain.get() as usize - 1
}

/// The domain with this value of the label: a new one, where the value is new.
fn domain(by_value: &mut HashMap<Arc<str>, usize>, value: &str) -> Option<Domain> {
    let number = by_value.get(value).copied().unwrap_or_else(|| {
        let next = by_value.len();
        by_value.insert(value.into(), next);
        next
    });
    u32::try_from(number + 1).ok().and_then(Domain::new)
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

    /// For each domain, what `made` makes of the number of its nodes.
    pub fn of_nodes(topology: Arc<Topology>, made: impl FnMut(usize) -> T) -> Self {
        Self { values: topology.nodes().iter().copied().map(made).collect(), topology }
    }

    /// What is made of what there is for each domain.
    pub fn map<U>(&self, made: impl FnMut(&T) -> U) -> ByDomain<U> {
        ByDomain { values: self.values.iter().map(made).collect(), topology: self.topology.clone() }
    }

    /// What there is for the domain of a node; `None`: the node is in none.
    pub fn of_node(&self, node: &NodeState) -> Option<&T> {
        self.topology.of_node(node).map(|domain| &self.values[domain])
    }

    /// What there is for the domain of the node in this slot; `None`: the node is in none.
    #[inline]
    pub fn of_slot(&self, slot: usize) -> Option<&T> {
        self.topology.of_slot(slot).map(|domain| &self.values[domain])
    }

    /// As [`Self::of_slot`], of each of these slots.
    pub fn of_slots<'s>(&'s self, slots: &'s [usize]) -> impl Iterator<Item = Option<&'s T>> {
        let (domains, values) = (self.topology.by_slot.as_slice(), self.values.as_slice());
        slots.iter().map(|slot| domains.get(*slot).copied().flatten().map(|domain| &values[number(domain)]))
    }

    /// As [`Self::of_slot`], to be changed.
    #[inline]
    pub fn of_slot_mut(&mut self, slot: usize) -> Option<&mut T> {
        self.topology.of_slot(slot).map(|domain| &mut self.values[domain])
    }

    /// Clears the slots whose nodes may not pass by what there is for their domain, or by `None` where they are in none.
    pub fn narrow(&self, may_pass: &mut [bool], passes: impl Fn(Option<&T>) -> bool) {
        let (outside, within) = (passes(None), self.values.iter().map(|value| passes(Some(value))));
        let within: Vec<bool> = within.collect();
        for (may_pass, domain) in may_pass.iter_mut().zip(self.topology.by_slot.as_slice()) {
            *may_pass &= domain.map_or(outside, |domain| within[number(domain)]);
        }
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
