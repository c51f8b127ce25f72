//! A group of pods, as Volcano, the coscheduling plugin and Kubernetes have it.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{metadata::Metadata, nullable};

/// A group of pods. Which fields there are depends on the API.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct PodGroup {
    /// Name, namespace, labels and annotations.
    pub metadata: Metadata,
    /// What must hold of its pods.
    #[serde(deserialize_with = "nullable")]
    pub spec: PodGroupSpec,
    /// What has come of them.
    #[serde(deserialize_with = "nullable")]
    pub status: PodGroupStatus,
}

/// `spec` of a PodGroup.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct PodGroupSpec {
    /// How many pods are placed together (Volcano, coscheduling).
    pub min_member: Option<i32>,
    /// How many pods of each task are (Volcano).
    pub min_task_member: Option<BTreeMap<String, i32>>,
    /// For how many seconds pods that are placed wait for the others (coscheduling).
    pub schedule_timeout_seconds: Option<i32>,
    /// Where the pods run, by HyperNodes (Volcano).
    pub network_topology: Option<NetworkTopology>,
    /// Whether the pods are placed together (Kubernetes).
    #[serde(deserialize_with = "nullable")]
    pub scheduling_policy: SchedulingPolicy,
    /// Where the pods run (Kubernetes).
    pub scheduling_constraints: Option<SchedulingConstraints>,
}

/// `spec.networkTopology` of Volcano's PodGroup.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct NetworkTopology {
    /// `hard` (the default) or `soft`.
    #[serde(deserialize_with = "nullable")]
    pub mode: String,
}

/// `spec.schedulingPolicy` of Kubernetes' PodGroup.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct SchedulingPolicy {
    /// The pods are placed together; absent: each alone.
    pub gang: Option<GangPolicy>,
}

/// `spec.schedulingPolicy.gang`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct GangPolicy {
    /// How many pods are placed together.
    #[serde(deserialize_with = "nullable")]
    pub min_count: i32,
}

/// `spec.schedulingConstraints` of Kubernetes' PodGroup.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct SchedulingConstraints {
    /// The node labels of which all pods share one value.
    #[serde(deserialize_with = "nullable")]
    pub topology: Vec<TopologyConstraint>,
}

/// One entry of `spec.schedulingConstraints.topology`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct TopologyConstraint {
    /// The node label.
    #[serde(deserialize_with = "nullable")]
    pub key: String,
}

/// `status` of a PodGroup.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct PodGroupStatus {
    /// How many pods have ended well (Volcano, coscheduling).
    pub succeeded: Option<i32>,
}
