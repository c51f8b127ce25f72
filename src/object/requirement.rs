//! A requirement on a label or a field, as selectors of labels and of nodes list them.

use serde::{Deserialize, Serialize};

use super::nullable;

/// One requirement: key, operator, values.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(default)]
pub struct Requirement {
    /// Label key or field path.
    pub key: String,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`.
    pub operator: String,
    /// Values, as the operator needs them.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

impl Requirement {
    /// The requirement and its values.
    pub fn size(&self) -> usize {
        1 + self.values.len()
    }

    /// Whether a value meets the requirement; `None` is a label or field that is absent, and meets `NotIn` and `DoesNotExist`.
    pub fn is_met(&self, actual: Option<&str>) -> bool {
        let listed = actual.is_some_and(|actual| self.values.iter().any(|value| value == actual));
        match self.operator.as_str() {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => actual.is_some(),
            "DoesNotExist" => actual.is_none(),
            "Gt" => self.order(actual).is_some_and(std::cmp::Ordering::is_gt),
            "Lt" => self.order(actual).is_some_and(std::cmp::Ordering::is_lt),
            _ => false,
        }
    }

    fn order(&self, actual: Option<&str>) -> Option<std::cmp::Ordering> {
        let [bound] = &self.values[..] else { return None };
        let (actual, bound) = (actual?.parse::<i64>().ok()?, bound.parse::<i64>().ok()?);
        Some(actual.cmp(&bound))
    }
}
