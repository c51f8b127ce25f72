//! Requirements on the labels of a device or of a group of its virtual functions.

use std::collections::BTreeMap;

/// Label key to value.
pub type DeviceLabels = BTreeMap<String, String>;

/// What one label must be.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum LabelRule {
    /// The label is there and has one of these values.
    In(String, Vec<String>),
    /// The label is absent or has none of these values.
    NotIn(String, Vec<String>),
    /// The label is there.
    Exists(String),
    /// The label is absent.
    Absent(String),
}

impl LabelRule {
    fn admits(&self, labels: &DeviceLabels) -> bool {
        let has = |key: &String, values: &[String]| labels.get(key).is_some_and(|is| values.contains(is));
        match self {
            Self::In(key, values) => has(key, values),
            Self::NotIn(key, values) => !has(key, values),
            Self::Exists(key) => labels.contains_key(key),
            Self::Absent(key) => !labels.contains_key(key),
        }
    }
}

/// Rules that must all hold; none admits every set of labels.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct LabelFilter(pub Vec<LabelRule>);

impl LabelFilter {
    /// Whether every rule holds for these labels.
    pub fn admits(&self, labels: &DeviceLabels) -> bool {
        self.0.iter().all(|rule| rule.admits(labels))
    }
}
