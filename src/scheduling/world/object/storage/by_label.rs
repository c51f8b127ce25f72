//! What there is of a class of storage, by the labels that a node needs to reach it: a node costs about as much as what its labels lead to.
//!
//! A label is a necessary condition and no more: whether what is found will do is for the caller to say.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use foldhash::fast::FixedState;

use crate::{object::selector::LabelValues, scheduling::model::needed_label::NeededLabel};

/// Objects by class, each under a key in whose order they are found.
#[derive(Clone, Debug)]
pub(super) struct ByLabel<K>(BTreeMap<Arc<str>, OfClass<K>>);

/// Those of one class.
#[derive(Clone, Debug)]
struct OfClass<K> {
    /// By label and value, those of which a node needs it. One for which it needs more labels is found by one of them.
    needing: BTreeMap<Arc<str>, ByValue<K>>,
    /// Those of which a node needs no label.
    free: BTreeSet<K>,
}

/// Those of which a node needs one label, by its value. Each node that is tried is looked up.
type ByValue<K> = HashMap<Arc<str>, BTreeSet<K>, FixedState>;

impl<K> Default for ByLabel<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K> Default for OfClass<K> {
    fn default() -> Self {
        Self { needing: BTreeMap::new(), free: BTreeSet::new() }
    }
}

impl<K: Clone + Ord> ByLabel<K> {
    /// Adds one of this class, for which a node needs these labels.
    pub(super) fn insert<'n>(&mut self, class: &str, key: &K, needed: impl Iterator<Item = NeededLabel<'n>>) {
        self.0.entry(class.into()).or_default().insert(key, needed);
    }

    /// Removes one that was added so.
    pub(super) fn remove<'n>(&mut self, class: &str, key: &K, needed: impl Iterator<Item = NeededLabel<'n>>) {
        let Some(of_class) = self.0.get_mut(class) else { return };
        of_class.remove(key, needed);
        if of_class.needing.is_empty() && of_class.free.is_empty() {
            self.0.remove(class);
        }
    }

    /// How many of the class are looked at on any node.
    pub(super) fn anywhere(&self, class: &str) -> usize {
        self.0.get(class).map_or(0, |of_class| of_class.free.len())
    }

    /// Those of the class to which these labels of a node lead, in sets each of which is in order.
    pub(super) fn led_to<'a>(
        &'a self,
        class: &str,
        labels: &dyn LabelValues,
    ) -> impl Iterator<Item = &'a BTreeSet<K>> {
        self.0.get(class).into_iter().flat_map(move |OfClass { needing, free }| {
            let by_label = needing.iter();
            let led_to = by_label.filter_map(move |(key, by_value)| by_value.get(labels.value(key)?));
            led_to.chain([free])
        })
    }
}

impl<K: Clone + Ord> OfClass<K> {
    /// By the label to which the fewest are found already.
    fn insert<'n>(&mut self, key: &K, needed: impl Iterator<Item = NeededLabel<'n>>) {
        let count = |label: &NeededLabel<'_>| -> usize {
            let by_value = self.needing.get(label.key);
            let keys = label.values.iter().filter_map(|value| by_value?.get(value.as_str()));
            keys.map(BTreeSet::len).sum()
        };
        let Some(label) = needed.min_by_key(count) else {
            self.free.insert(key.clone());
            return;
        };
        let by_value = self.needing.entry(label.key.into()).or_default();
        for value in label.values {
            by_value.entry(value.as_str().into()).or_default().insert(key.clone());
        }
    }

    fn remove<'n>(&mut self, key: &K, needed: impl Iterator<Item = NeededLabel<'n>>) {
        self.free.remove(key);
        for label in needed {
            let Some(by_value) = self.needing.get_mut(label.key) else { continue };
            for value in label.values {
                if let Some(keys) = by_value.get_mut(value.as_str()) {
                    keys.remove(key);
                    if keys.is_empty() {
                        by_value.remove(value.as_str());
                    }
                }
            }
            if by_value.is_empty() {
                self.needing.remove(label.key);
            }
        }
    }
}
