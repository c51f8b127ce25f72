//! Labels of a pod or a node in little memory. Most labels are those of other objects too, and the sets as a whole are not: a dialect or a controller
//! may put the name of the node or of the pod among them.

use std::sync::Arc;

use crate::object::{Labels, selector::LabelValues};

/// A key with its value.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Label {
    /// The key.
    pub key: Arc<str>,
    /// The value.
    pub value: Arc<str>,
}

/// Labels, in the order of the keys. A clone shares them.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct LabelSet(Arc<[Arc<Label>]>);

impl LabelSet {
    /// Whether there is no label.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of the label with this key; `None`: there is no such label.
    pub fn get(&self, key: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|label| (*label.key).cmp(key)).ok()?;
        Some(&self.0[at].value)
    }

    /// Whether there is a label with this key.
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Every key with its value, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|label| (&*label.key, &*label.value))
    }

    /// Every label, and all of them together, to be replaced by equal ones that others have too.
    pub fn labels_mut(&mut self) -> &mut Arc<[Arc<Label>]> {
        &mut self.0
    }
}

impl LabelValues for LabelSet {
    fn value(&self, key: &str) -> Option<&str> {
        self.get(key)
    }
}

impl From<&Labels> for LabelSet {
    fn from(labels: &Labels) -> Self {
        let label = |(key, value): (&String, &String)| {
            Arc::new(Label { key: key.as_str().into(), value: value.as_str().into() })
        };
        Self(labels.iter().map(label).collect())
    }
}

/// Of several values of one key, the last counts.
impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for LabelSet {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(labels: I) -> Self {
        Self::from(&labels.into_iter().map(|(key, value)| (key.into(), value.into())).collect::<Labels>())
    }
}

impl<K: Into<String>, V: Into<String>, const COUNT: usize> From<[(K, V); COUNT]> for LabelSet {
    fn from(labels: [(K, V); COUNT]) -> Self {
        labels.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_is_found_by_its_key() {
        let read = [("tier", "b"), ("app", "web"), ("zone", "")];
        let labels = LabelSet::from(read);
        for (key, value) in read {
            assert_eq!(labels.value(key), Some(value));
        }
        assert_eq!((labels.value("ap"), labels.value("b"), labels.value("zones")), (None, None, None));
        assert!(!labels.is_empty() && LabelSet::default().is_empty());
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("app", "web"), ("tier", "b"), ("zone", "")]);
    }

    #[test]
    fn of_several_values_of_a_key_the_last_counts() {
        let labels = LabelSet::from([("app", "web"), ("tier", "b"), ("app", "db")]);
        assert_eq!(labels, LabelSet::from([("app", "db"), ("tier", "b")]));
        assert_ne!(labels, LabelSet::from([("app", "web"), ("tier", "b")]));
    }
}
