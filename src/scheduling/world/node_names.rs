//! The names of nodes, each with its slot. Which of two slots has the first name is known without a look at the names, which are far apart in memory.

use std::{collections::BTreeMap, iter, ops::Bound};

use crate::scheduling::model::name::NodeName;

/// The names of nodes in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeNames {
    slots: BTreeMap<NodeName, usize>,
    /// By slot, a number that is the greater, the later its name comes; of slots without a node any.
    places: Vec<u64>,
}

/// The place of the first name, with half of all places before it.
const FIRST: u64 = 1 << 63;

/// A name that comes after all others, or before them, leaves room for so many between.
const STRIDE: u64 = 1 << 32;

/// One of so many names is many of them.
const MANY: usize = 16;

impl NodeNames {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.slots.len()
    }

    /// Each in order, with its slot.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&NodeName, usize)> {
        self.slots.iter().map(|(name, slot)| (name, *slot))
    }

    /// The slot of the node with this name.
    pub(super) fn slot(&self, name: &str) -> Option<usize> {
        self.slots.get(name).copied()
    }

    /// That of these slots whose name comes first.
    pub(super) fn first(&self, slots: impl IntoIterator<Item = usize>) -> Option<usize> {
        slots.into_iter().min_by_key(|slot| self.place(*slot))
    }

    /// Whether the name of the first of these slots comes before that of the second.
    pub(super) fn comes_before(&self, first: usize, second: usize) -> bool {
        self.place(first) < self.place(second)
    }

    /// Puts slots into the order of name.
    pub(super) fn sort(&self, slots: &mut [u32]) {
        slots.sort_unstable_by_key(|slot| self.place(*slot as usize));
    }

    fn place(&self, slot: usize) -> u64 {
        self.places.get(slot).copied().unwrap_or_default()
    }

    /// The slots of which this holds, in order of name.
    pub(super) fn in_order_where(&self, is_one: impl Fn(usize) -> bool) -> impl Iterator<Item = usize> {
        self.slots.values().copied().filter(move |slot| is_one(*slot))
    }

    /// Whether so many names are many of them.
    pub(super) fn are_many(&self, names: usize) -> bool {
        names > self.count() / MANY
    }

    /// The slots of these in order of name.
    pub(super) fn in_order(&self, slots: Vec<usize>) -> impl Iterator<Item = usize> {
        let mut few = slots;
        // Most callers take the first ones alone: among all names these are found sooner than many are sorted.
        let many = self.are_many(few.len()).then(|| {
            let mut wanted = vec![false; self.places.len()];
            for slot in std::mem::take(&mut few) {
                if let Some(wanted) = wanted.get_mut(slot) {
                    *wanted = true;
                }
            }
            self.in_order_where(move |slot| wanted[slot])
        });
        let first = few.iter().enumerate().min_by_key(|(_, slot)| self.place(**slot)).map(|(at, _)| at);
        let first = first.map(|at| few.swap_remove(at));
        let others = iter::once_with(move || {
            few.sort_unstable_by_key(|slot| self.place(*slot));
            few
        });
        many.into_iter().flatten().chain(first).chain(others.flatten())
    }

    /// A node has this name, which no other has, and this slot.
    pub(super) fn insert(&mut self, name: NodeName, slot: usize) {
        if self.places.len() <= slot {
            self.places.resize(slot + 1, 0);
        }
        let place_of = |(_, slot): (&NodeName, &usize)| self.places[*slot];
        let names = |from, to| self.slots.range::<str, _>((from, to));
        let before = names(Bound::Unbounded, Bound::Excluded(&*name)).next_back().map(place_of);
        let after = names(Bound::Excluded(&*name), Bound::Unbounded).next().map(place_of);
        let place = place_between(before, after);
        self.slots.insert(name, slot);
        match place {
            Some(place) => self.places[slot] = place,
            None => self.renumber(),
        }
    }

    /// No node has this name any more; the name with its slot, if one had it.
    pub(super) fn remove(&mut self, name: &str) -> Option<(NodeName, usize)> {
        self.slots.remove_entry(name)
    }

    fn renumber(&mut self) {
        let places = iter::successors(Some(FIRST), |place| Some(place.saturating_add(STRIDE)));
        for (slot, place) in self.slots.values().zip(places) {
            self.places[*slot] = place;
        }
    }
}

/// A place between these two; `None`: there is none.
fn place_between(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    match (before, after) {
        (None, None) => Some(FIRST),
        (Some(before), None) => before.checked_add(STRIDE),
        (None, Some(after)) => after.checked_sub(STRIDE),
        (Some(before), Some(after)) => Some(before.midpoint(after)).filter(|place| *place > before),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn slots_are_in_order_of_name_however_names_came_and_went(
            changes in prop::collection::vec(("[a-c]{1,3}", any::<bool>()), 0..80),
            wanted in prop::collection::btree_set(0_usize..80, 0..80),
        ) {
            let mut names = NodeNames::default();
            let mut of_slots: Vec<Option<String>> = Vec::new();
            for (name, comes) in changes {
                if let Some((gone, slot)) = names.remove(&name) {
                    let before = of_slots[slot].take();
                    prop_assert_eq!(before.as_deref(), Some(&*gone));
                }
                if comes {
                    let slot = of_slots.iter().position(Option::is_none).unwrap_or(of_slots.len());
                    of_slots.resize(of_slots.len().max(slot + 1), None);
                    of_slots[slot] = Some(name.clone());
                    names.insert(name.as_str().into(), slot);
                }
            }
            let wanted = wanted.into_iter().filter(|slot| of_slots.get(*slot).is_some_and(Option::is_some));
            let wanted: BTreeSet<usize> = wanted.collect();
            let ordered: Vec<_> = names.in_order(wanted.iter().copied().collect()).map(|slot| &of_slots[slot]).collect();
            let mut expected: Vec<_> = wanted.iter().map(|slot| &of_slots[*slot]).collect();
            expected.sort_unstable();
            prop_assert_eq!(ordered, expected);
            prop_assert_eq!(names.first(wanted.iter().copied()), names.in_order(wanted.iter().copied().collect()).next());
            prop_assert!(names.iter().map(|(name, _)| name).is_sorted());
        }
    }

    #[test]
    fn names_that_come_between_two_others_are_in_order_once_there_is_no_place_between() {
        let mut names = NodeNames::default();
        names.insert("a".into(), 0);
        for slot in 1..200 {
            // Each comes right after the first.
            names.insert(format!("{}z", "a".repeat(slot)).as_str().into(), slot);
        }
        let ordered: Vec<usize> = names.in_order((0..200).collect()).collect();
        let expected: Vec<usize> = [0].into_iter().chain((1..200).rev()).collect();
        assert_eq!(ordered, expected);
    }

    #[test]
    fn between_two_places_is_none_once_they_are_next_to_each_other() {
        assert_eq!(place_between(Some(6), Some(9)), Some(7));
        assert_eq!(place_between(Some(6), Some(7)), None);
        assert_eq!(place_between(Some(u64::MAX - 1), None), None);
        assert_eq!(place_between(None, Some(1)), None);
    }
}
