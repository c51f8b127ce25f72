//! A pod's labels in little memory. Most of their keys and values are those of other pods too, and the sets as a whole are not: a dialect or a
//! controller may put the name of the node or of the pod among them.

use std::sync::Arc;

use crate::object::{Labels, selector::LabelValues};

/// Label keys and values, in the order of the keys.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct PodLabels(Box<[(Arc<str>, Arc<str>)]>);

impl PodLabels {
    /// Whether the pod has no label.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every key and every value.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut Arc<str>> {
        self.0.iter_mut().flat_map(|(key, value)| [key, value])
    }
}

impl LabelValues for PodLabels {
    fn value(&self, key: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(known, _)| (**known).cmp(key)).ok()?;
        Some(&self.0[at].1)
    }
}

impl From<&Labels> for PodLabels {
    fn from(labels: &Labels) -> Self {
        Self(labels.iter().map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect())
    }
}

impl<const COUNT: usize> From<[(&str, &str); COUNT]> for PodLabels {
    fn from(labels: [(&str, &str); COUNT]) -> Self {
        Self::from(
            &labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect::<Labels>(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_is_found_by_its_key() {
        let read = [("tier", "b"), ("app", "web"), ("zone", "")];
        let labels = PodLabels::from(read);
        for (key, value) in read {
            assert_eq!(labels.value(key), Some(value));
        }
        assert_eq!((labels.value("ap"), labels.value("b"), labels.value("zones")), (None, None, None));
        assert!(!labels.is_empty() && PodLabels::default().is_empty());
    }
}
