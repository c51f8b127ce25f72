//! A group of pods, as Volcano, the coscheduling plugin and Kubernetes have it, and Kubernetes' groups of groups: a CompositePodGroup has fields of the
//! same names.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{
    LabelSelector,
    metadata::Metadata,
    nullable,
    pod::{Condition, PodResourceClaim},
};

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
    /// Parts of the group of which each is placed together (Volcano 1.14).
    #[serde(deserialize_with = "nullable")]
    pub sub_group_policy: Vec<SubGroupPolicy>,
    /// Whether the pods are placed together (Kubernetes).
    #[serde(deserialize_with = "nullable")]
    pub scheduling_policy: SchedulingPolicy,
    /// Where the pods run (Kubernetes).
    pub scheduling_constraints: Option<SchedulingConstraints>,
    /// Whether the pods are disrupted together (Kubernetes).
    pub disruption_mode: Option<DisruptionMode>,
    /// The priority of the pods as a group (Kubernetes).
    pub priority: Option<i32>,
    /// Whether pods of lower priority may be preempted for the group: `Never` or `PreemptLowerPriority` (Kubernetes, `v1beta1`).
    pub preemption_policy: Option<String>,
    /// Claims of devices that the pods share (Kubernetes, `PodGroupResourceClaim`): the fields are those of a pod's entry.
    #[serde(deserialize_with = "nullable")]
    pub resource_claims: Vec<PodResourceClaim>,
    /// The CompositePodGroup that the group is in (Kubernetes, `v1beta1`, and CompositePodGroups themselves).
    pub parent_composite_pod_group_name: Option<String>,
}

/// `spec.disruptionMode` of Kubernetes' PodGroup. Its form depends on the version.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(untagged)]
pub enum DisruptionMode {
    /// `Pod` or `PodGroup` (`v1alpha2`).
    Name(String),
    /// One of the members is set (`v1beta1`).
    OneOf(DisruptionModes),
}

/// The modes of `v1beta1`. A mode that is not known here leaves both unset.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct DisruptionModes {
    /// Each pod by itself.
    pub single: Option<NoFields>,
    /// All pods or none.
    pub all: Option<NoFields>,
}

/// An object of which no field is read. Unlike [`Present`](super::Present), it must be an object.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
pub struct NoFields {}

/// `spec.networkTopology` of Volcano's PodGroup.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct NetworkTopology {
    /// `hard` (the default) or `soft`.
    #[serde(deserialize_with = "nullable")]
    pub mode: String,
}

/// One entry of `spec.subGroupPolicy` of Volcano's PodGroup: the pods with these labels, a part for each value of the keys.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct SubGroupPolicy {
    /// Its name.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// The pods.
    pub label_selector: Option<LabelSelector>,
    /// Pods with the same values of these labels are one part.
    #[serde(deserialize_with = "nullable")]
    pub match_label_keys: Vec<String>,
    /// How many pods of a part are placed together.
    pub sub_group_size: Option<i32>,
    /// How many parts are.
    pub min_sub_groups: Option<i32>,
    /// Where the pods of a part run, by HyperNodes.
    pub network_topology: Option<NetworkTopology>,
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
    /// How many groups are, of a CompositePodGroup.
    #[serde(deserialize_with = "nullable")]
    pub min_group_count: i32,
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
    /// What schedulers say of them.
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<Condition>,
}
