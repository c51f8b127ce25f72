//! Node affinity and the presence of the affinities between pods.

use serde::Deserialize;

use super::{Present, nullable};

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

/// Affinity between pods: only whether there is a hard term.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct PodAffinity {
    /// Hard terms, unread.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution", deserialize_with = "nullable")]
    pub required: Vec<Present>,
}

/// Terms of which one must match.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeSelector {
    /// The terms; none matches nothing.
    #[serde(deserialize_with = "nullable")]
    pub node_selector_terms: Vec<NodeSelectorTerm>,
}

/// Requirements that must all hold; a term without any matches nothing.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeSelectorTerm {
    /// Requirements on labels.
    #[serde(deserialize_with = "nullable")]
    pub match_expressions: Vec<Requirement>,
    /// Requirements on fields; only `metadata.name` exists.
    #[serde(deserialize_with = "nullable")]
    pub match_fields: Vec<Requirement>,
}

/// One requirement: key, operator, values.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
#[serde(default)]
pub struct Requirement {
    /// Label key or field path.
    pub key: String,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`.
    pub operator: String,
    /// Values, as the operator needs them.
    #[serde(deserialize_with = "nullable")]
    pub values: Vec<String>,
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
