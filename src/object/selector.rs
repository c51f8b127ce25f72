//! A label selector, as `k8s.io/apimachinery/pkg/apis/meta/v1` reads it.

mod text;

use std::{collections::BTreeMap, fmt};

use serde::Deserialize;

use super::{nullable, requirement::Requirement};

pub use text::UnreadableSelector;

/// Label key to value.
pub type Labels = BTreeMap<String, String>;

/// What a selector is matched with.
pub trait LabelValues: fmt::Debug {
    /// The value of the label with this key; `None`: there is no such label.
    fn value(&self, key: &str) -> Option<&str>;
}

impl LabelValues for Labels {
    fn value(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

/// Requirements on labels that must all hold. Without any it matches every object; a selector that is absent matches none.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[serde(default, rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that must be equal.
    #[serde(deserialize_with = "nullable")]
    pub match_labels: Labels,
    /// Requirements with an operator: `In`, `NotIn`, `Exists` or `DoesNotExist`.
    #[serde(deserialize_with = "nullable")]
    pub match_expressions: Vec<Requirement>,
}

impl LabelSelector {
    /// How many requirements and values it has.
    pub fn requirements(&self) -> usize {
        self.match_labels.len() + self.match_expressions.iter().map(Requirement::size).sum::<usize>()
    }

    /// Whether the selector has no requirement.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    /// Whether all requirements hold for these labels. `NotIn` and `DoesNotExist` hold where the label is absent; an operator that
    /// the API server would not store holds for nothing.
    pub fn matches(&self, labels: &dyn LabelValues) -> bool {
        let equal = |(key, value): (&String, &String)| labels.value(key) == Some(value);
        self.match_labels.iter().all(equal)
            && self
                .match_expressions
                .iter()
                .all(|requirement| meets(requirement, labels.value(&requirement.key)))
    }

    /// The same as requirements alone: an equal label is one whose value is `In` a list of one.
    pub fn into_requirements(self) -> Vec<Requirement> {
        let equal = |(key, value)| Requirement { key, operator: "In".to_owned(), values: vec![value] };
        let mut requirements: Vec<_> = self.match_labels.into_iter().map(equal).collect();
        requirements.extend(self.match_expressions);
        requirements.shrink_to_fit();
        requirements
    }

    /// With one more requirement, unless it is there already.
    #[must_use]
    pub fn and(mut self, requirement: Requirement) -> Self {
        if !self.match_expressions.contains(&requirement) {
            self.match_expressions.push(requirement);
        }
        self
    }
}

fn meets(requirement: &Requirement, actual: Option<&str>) -> bool {
    let listed = || actual.is_some_and(|actual| requirement.values.iter().any(|value| value == actual));
    match requirement.operator.as_str() {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => actual.is_some(),
        "DoesNotExist" => actual.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_requirement_must_hold() {
        let labels =
            Labels::from([("app".to_owned(), "web".to_owned()), ("tier".to_owned(), "a".to_owned())]);
        for (json, expected) in [
            (r"{}", true),
            (r#"{"matchLabels":{"app":"web"}}"#, true),
            (r#"{"matchLabels":{"app":"web","zone":"x"}}"#, false),
            (r#"{"matchExpressions":[{"key":"tier","operator":"In","values":["a","b"]}]}"#, true),
            (r#"{"matchExpressions":[{"key":"tier","operator":"NotIn","values":["a"]}]}"#, false),
            (r#"{"matchExpressions":[{"key":"zone","operator":"NotIn","values":["a"]}]}"#, true),
            (r#"{"matchExpressions":[{"key":"zone","operator":"Exists"}]}"#, false),
            (r#"{"matchExpressions":[{"key":"zone","operator":"DoesNotExist"}]}"#, true),
            (r#"{"matchExpressions":[{"key":"tier","operator":"Gt","values":["1"]}]}"#, false),
        ] {
            let selector: LabelSelector = serde_json::from_str(json).unwrap();
            assert_eq!(selector.matches(&labels), expected, "{json}");
        }
    }
}
