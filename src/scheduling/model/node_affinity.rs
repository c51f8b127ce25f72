//! What a pod wants of a node's labels and name, as `k8s.io/component-helpers/scheduling/corev1/nodeaffinity` matches it.

use crate::object::{
    Labels, NodeSelector, NodeSelectorTerm, PreferredTerm, Requirement, node::HOSTNAME, selector::LabelValues,
};

/// What a pod wants of a node's labels and name.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct NodeAffinityTerms {
    /// Labels that must be equal.
    pub selector: Labels,
    /// Terms of which one must match.
    pub required: Option<NodeSelector>,
    /// Terms that are preferred.
    pub preferred: Vec<PreferredTerm>,
}

impl NodeAffinityTerms {
    /// How many requirements and values are compared with a node at most.
    pub fn requirements(&self) -> usize {
        let required = self.required.iter().map(NodeSelector::requirements);
        let preferred = self.preferred.iter().map(|term| term.preference.requirements());
        self.selector.len() + required.chain(preferred).sum::<usize>()
    }

    /// Whether it reads what only one node has: its name, or the label that is its own.
    pub fn tells_nodes_apart(&self) -> bool {
        let required = self.required.iter().flat_map(|required| &required.node_selector_terms);
        let mut terms = required.chain(self.preferred.iter().map(|term| &term.preference));
        let is_own = |requirement: &Requirement| requirement.key == HOSTNAME;
        let reads_own = |term: &NodeSelectorTerm| {
            !term.match_fields.is_empty() || term.match_expressions.iter().any(is_own)
        };
        self.selector.contains_key(HOSTNAME) || terms.any(reads_own)
    }

    /// Whether every node will do.
    pub fn admits_all(&self) -> bool {
        self.selector.is_empty() && self.required.is_none()
    }

    /// Whether a node of this name and these labels will do.
    pub fn admits(&self, name: &str, labels: &dyn LabelValues) -> bool {
        let selected = self.selector.iter().all(|(key, value)| labels.value(key) == Some(value));
        selected && self.required.as_ref().is_none_or(|required| required.matches(name, labels))
    }

    /// The sum of the weights of the preferred terms that match the node.
    pub fn preference(&self, name: &str, labels: &dyn LabelValues) -> i64 {
        let matching = self.preferred.iter().filter(|term| term.preference.matches(name, labels));
        matching.map(|term| i64::from(term.weight)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(required: &str, expected: bool) {
        let affinity = NodeAffinityTerms {
            required: Some(serde_json::from_str(required).unwrap()),
            ..NodeAffinityTerms::default()
        };
        let labels = Labels::from([("zone".to_owned(), "a".to_owned()), ("gen".to_owned(), "4".to_owned())]);
        assert_eq!(affinity.admits("n1", &labels), expected, "{required}");
    }

    #[test]
    fn terms_are_alternatives_and_requirements_hold_together() {
        check(r#"{"nodeSelectorTerms":[]}"#, false);
        check(r#"{"nodeSelectorTerms":[{}]}"#, false);
        check(
            r#"{"nodeSelectorTerms":[{},{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}"#,
            true,
        );
        check(
            r#"{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a"]},{"key":"x","operator":"Exists"}]}]}"#,
            false,
        );
        check(
            r#"{"nodeSelectorTerms":[{"matchExpressions":[{"key":"x","operator":"NotIn","values":["a"]}]}]}"#,
            true,
        );
        check(
            r#"{"nodeSelectorTerms":[{"matchExpressions":[{"key":"gen","operator":"Gt","values":["3"]}]}]}"#,
            true,
        );
        check(
            r#"{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"Lt","values":["3"]}]}]}"#,
            false,
        );
        check(
            r#"{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}]}"#,
            true,
        );
    }
}
