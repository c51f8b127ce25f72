//! What was found on each node and said: so that what lasts is said once.

use std::collections::BTreeMap;

use crate::scheduling::model::name::NodeName;

/// In words, by node and by what they are of; a node where nothing is found is not kept.
#[derive(Debug)]
pub(super) struct Said<K>(BTreeMap<NodeName, BTreeMap<K, String>>);

impl<K> Default for Said<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Clone + Ord> Said<K> {
    /// Keeps what is found on a node now; what was found before, if that differs.
    pub(super) fn replace(
        &mut self,
        node: &NodeName,
        found: &BTreeMap<K, String>,
    ) -> Option<BTreeMap<K, String>> {
        if self.0.get(node).map_or(found.is_empty(), |known| known == found) {
            return None;
        }
        let known =
            if found.is_empty() { self.0.remove(node) } else { self.0.insert(node.clone(), found.clone()) };
        Some(known.unwrap_or_default())
    }
}
