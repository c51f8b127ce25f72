//! Node affinity, and affinity and anti-affinity between pods.

use serde::{Deserialize, Serialize};

use super::{
    nullable,
    requirement::Requirement,
    selector::{LabelSelector, LabelValues},
};

/// `spec.affinity`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Affinity {
    /// Which nodes the pod may or would like to run on.
    pub node_affinity: Option<NodeAffinity>,
    /// Affinity to other pods.
    pub pod_affinity: Option<PodAffinity>,
    /// Anti-affinity to other pods.
    pub pod_anti_affinity: Option<PodAffinity>,
}

/// `nodeAffinity`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct NodeAffinity {
    /// A node must match one of the terms.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Option<NodeSelector>,
    /// Terms that raise a node's score.
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution", deserialize_with = "nullable")]
    pub preferred: Vec<PreferredTerm>,
}

/// Affinity or anti-affinity to other pods.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
#[serde(default)]
pub struct PodAffinity {
    /// Terms that must all hold.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution", deserialize_with = "nullable")]
    pub required: Vec<PodAffinityTerm>,
    /// Terms that raise or lower a node's score.
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution", deserialize_with = "nullable")]
    pub preferred: Vec<WeightedPodAffinityTerm>,
}

/// Pods, and the domain that the node must share or not share with them.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct PodAffinityTerm {
    /// Which pods by their labels; absent: none.
    pub label_selector: Option<LabelSelector>,
    /// Namespaces of the pods.
    #[serde(deserialize_with = "nullable")]
    pub namespaces: Vec<String>,
    /// Namespaces of the pods by the namespaces' labels. Where neither is given, it is the pod's own namespace.
    pub namespace_selector: Option<LabelSelector>,
    /// The node label whose equal values make one domain.
    #[serde(deserialize_with = "nullable")]
    pub topology_key: String,
    /// Labels of the pod itself that the other pods must share.
    #[serde(deserialize_with = "nullable")]
    pub match_label_keys: Vec<String>,
    /// Labels of the pod itself that the other pods must not share.
    #[serde(deserialize_with = "nullable")]
    pub mismatch_label_keys: Vec<String>,
}

impl PodAffinityTerm {
    /// How many requirements, values and names it has, itself counted as one.
    pub fn requirements(&self) -> usize {
        let selectors = self.label_selector.iter().chain(&self.namespace_selector);
        let names = self.namespaces.len() + self.match_label_keys.len() + self.mismatch_label_keys.len();
        1 + names + selectors.map(LabelSelector::requirements).sum::<usize>()
    }
}

/// A preferred term and its weight of 1 to 100.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct WeightedPodAffinityTerm {
    /// What each matching pod adds.
    pub weight: i32,
    /// The term.
    #[serde(deserialize_with = "nullable")]
    pub pod_affinity_term: PodAffinityTerm,
}

/// Terms of which one must match.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeSelector {
    /// The terms; none matches nothing.
    #[serde(deserialize_with = "nullable")]
    pub node_selector_terms: Vec<NodeSelectorTerm>,
}

impl NodeSelector {
    /// How many requirements and values it has.
    pub fn requirements(&self) -> usize {
        self.node_selector_terms.iter().map(NodeSelectorTerm::requirements).sum()
    }

    /// Whether one of the terms matches a node of this name and these labels (`k8s.io/component-helpers/scheduling/corev1/nodeaffinity`).
    pub fn matches(&self, name: &str, labels: &dyn LabelValues) -> bool {
        self.node_selector_terms.iter().any(|term| term.matches(name, labels))
    }
}

/// Requirements that must all hold; a term without any matches nothing.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeSelectorTerm {
    /// Requirements on labels.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<Requirement>,
    /// Requirements on fields; only `metadata.name` exists.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub match_fields: Vec<Requirement>,
}

impl NodeSelectorTerm {
    /// How many requirements and values it has, itself counted as one.
    pub fn requirements(&self) -> usize {
        1 + self.match_expressions.iter().chain(&self.match_fields).map(Requirement::size).sum::<usize>()
    }

    /// Whether all requirements hold for an object of this name and these labels. A term without any matches nothing.
    pub fn matches(&self, name: &str, labels: &dyn LabelValues) -> bool {
        let empty = self.match_expressions.is_empty() && self.match_fields.is_empty();
        let label = |requirement: &Requirement| requirement.is_met(labels.value(&requirement.key));
        let field = |requirement: &Requirement| {
            requirement.is_met((requirement.key == "metadata.name").then_some(name))
        };
        !empty && self.match_expressions.iter().all(label) && self.match_fields.iter().all(field)
    }
}

/// A preferred term and its weight of 1 to 100.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
#[serde(default)]
pub struct PreferredTerm {
    /// What the term adds to a matching node.
    pub weight: i32,
    /// The term.
    #[serde(deserialize_with = "nullable")]
    pub preference: NodeSelectorTerm,
}
