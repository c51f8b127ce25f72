//! Objects that select pods: Services and the controllers that make pods.

use serde::Deserialize;

use super::{
    metadata::Metadata,
    nullable,
    selector::{LabelSelector, Labels},
};

/// `v1` Service.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct Service {
    /// Names.
    pub metadata: Metadata,
    /// Its pods.
    #[serde(deserialize_with = "nullable")]
    pub spec: ByLabels,
}

/// `v1` ReplicationController.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct ReplicationController {
    /// Names.
    pub metadata: Metadata,
    /// Its pods.
    #[serde(deserialize_with = "nullable")]
    pub spec: ByLabels,
}

/// `apps/v1` ReplicaSet.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct ReplicaSet {
    /// Names.
    pub metadata: Metadata,
    /// Its pods.
    #[serde(deserialize_with = "nullable")]
    pub spec: BySelector,
}

/// `apps/v1` StatefulSet.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct StatefulSet {
    /// Names.
    pub metadata: Metadata,
    /// Its pods.
    #[serde(deserialize_with = "nullable")]
    pub spec: BySelector,
}

/// `apps/v1` DaemonSet.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct DaemonSet {
    /// Names.
    pub metadata: Metadata,
}

/// A `spec` that selects pods by labels which must be equal.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct ByLabels {
    /// The labels; none: no pod.
    #[serde(deserialize_with = "nullable")]
    pub selector: Labels,
}

/// A `spec` that selects pods by a label selector.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct BySelector {
    /// The selector; absent: no pod.
    pub selector: Option<LabelSelector>,
}
