//! A node: labels, taints, what it can allocate, and the annotations that its device plugins write.

use serde::Deserialize;

use super::{container::ResourceMap, metadata::Metadata, nullable};

/// The label with a node's host name. Most nodes are alone in their value; it need not be the node's name.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

/// A node.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct Node {
    /// Name, labels and annotations.
    pub metadata: Metadata,
    /// Taints and cordon.
    #[serde(deserialize_with = "nullable")]
    pub spec: NodeSpec,
    /// Capacity and allocatable.
    #[serde(deserialize_with = "nullable")]
    pub status: NodeStatus,
}

/// `spec` of a node.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct NodeSpec {
    /// Cordoned.
    #[serde(deserialize_with = "nullable")]
    pub unschedulable: bool,
    /// Taints.
    #[serde(deserialize_with = "nullable")]
    pub taints: Vec<Taint>,
}

/// A taint.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
#[serde(default)]
pub struct Taint {
    /// The taint's key.
    pub key: String,
    /// Its value; empty when absent.
    #[serde(deserialize_with = "nullable")]
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// `status` of a node.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct NodeStatus {
    /// What the machine has.
    #[serde(deserialize_with = "nullable")]
    pub capacity: ResourceMap,
    /// What pods may be given.
    pub allocatable: Option<ResourceMap>,
    /// The images that the node has; a kubelet reports 50 by default.
    #[serde(deserialize_with = "nullable")]
    pub images: Vec<NodeImage>,
    /// Features of the kubelet that some pods need (KEP-5328).
    #[serde(rename = "declaredFeatures", deserialize_with = "nullable")]
    pub declared_features: Vec<String>,
}

/// An image that a node has.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeImage {
    /// By which names: with a tag, with a digest.
    #[serde(deserialize_with = "nullable")]
    pub names: Vec<String>,
    /// How many bytes it takes.
    #[serde(deserialize_with = "nullable")]
    pub size_bytes: i64,
}

impl Node {
    /// What pods may be given: `allocatable`, or `capacity` where the former is absent, as the API server defaults it.
    pub fn allocatable(&self) -> &ResourceMap {
        self.status.allocatable.as_ref().unwrap_or(&self.status.capacity)
    }
}
