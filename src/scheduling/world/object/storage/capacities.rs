//! What CSI drivers publish of each class of volumes, found by the labels of a node: a node costs about as much as what its labels lead to, however
//! many others there are.

use std::{
    collections::{BTreeMap, BTreeSet},
    slice,
    sync::Arc,
};

use crate::{
    object::{Labels, storage::CsiStorageCapacity},
    scheduling::model::needed_label::NeededLabel,
};

/// The names of published capacities, by class.
#[derive(Clone, Debug, Default)]
pub(super) struct Capacities(BTreeMap<Arc<str>, OfClass>);

type Names = BTreeSet<Arc<str>>;

/// Those of one class.
#[derive(Clone, Debug, Default)]
struct OfClass {
    /// By label and value, those of which a node needs it. One for which it needs more labels is found by one of them.
    needing: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Names>>,
    /// Those of which a node needs no label.
    free: Names,
}

impl Capacities {
    pub(super) fn insert(&mut self, name: &Arc<str>, capacity: &CsiStorageCapacity) {
        self.0.entry(capacity.storage_class_name.as_str().into()).or_default().insert(name, capacity);
    }

    pub(super) fn remove(&mut self, name: &str, capacity: &CsiStorageCapacity) {
        let Some(of_class) = self.0.get_mut(capacity.storage_class_name.as_str()) else { return };
        of_class.remove(name, capacity);
        if of_class.needing.is_empty() && of_class.free.is_empty() {
            self.0.remove(capacity.storage_class_name.as_str());
        }
    }

    /// How many of the class are looked at on any node.
    pub(super) fn anywhere(&self, class: &str) -> usize {
        self.0.get(class).map_or(0, |of_class| of_class.free.len())
    }

    /// The first name of the class that will do, of those that these labels of a node lead to.
    pub(super) fn first(
        &self,
        class: &str,
        labels: &Labels,
        will_do: impl Fn(&str) -> bool,
    ) -> Option<&Arc<str>> {
        let OfClass { needing, free } = self.0.get(class)?;
        let led_to = needing.iter().filter_map(|(key, by_value)| by_value.get(labels.get(&**key)?.as_str()));
        led_to.chain([free]).filter_map(|names| names.iter().find(|name| will_do(name))).min()
    }
}

impl OfClass {
    /// By the label to which the fewest are found already.
    fn insert(&mut self, name: &Arc<str>, capacity: &CsiStorageCapacity) {
        let count = |label: &NeededLabel<'_>| -> usize {
            let by_value = self.needing.get(label.key);
            let names = label.values.iter().filter_map(|value| by_value?.get(value.as_str()));
            names.map(Names::len).sum()
        };
        let Some(label) = needed_for(capacity).min_by_key(count) else {
            self.free.insert(name.clone());
            return;
        };
        let by_value = self.needing.entry(label.key.into()).or_default();
        for value in label.values {
            by_value.entry(value.as_str().into()).or_default().insert(name.clone());
        }
    }

    fn remove(&mut self, name: &str, capacity: &CsiStorageCapacity) {
        self.free.remove(name);
        for label in needed_for(capacity) {
            let Some(by_value) = self.needing.get_mut(label.key) else { continue };
            for value in label.values {
                if let Some(names) = by_value.get_mut(value.as_str()) {
                    names.remove(name);
                    if names.is_empty() {
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

/// Labels that a node needs to use what is published; its topology may need more.
fn needed_for(capacity: &CsiStorageCapacity) -> impl Iterator<Item = NeededLabel<'_>> {
    capacity.node_topology.iter().flat_map(|topology| {
        let equal = topology.match_labels.iter();
        let equal = equal.map(|(key, value)| NeededLabel { key, values: slice::from_ref(value) });
        equal.chain(NeededLabel::among(&topology.match_expressions))
    })
}
