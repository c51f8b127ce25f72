//! A pod, as far as admission and scheduling read it.

use std::{collections::BTreeMap, sync::Arc};

use compact_str::CompactString;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    Present,
    affinity::Affinity,
    container::{Container, ResourceMap, Resources},
    metadata::Metadata,
    nullable,
    quantity::Quantity,
    selector::LabelSelector,
    toleration::Toleration,
    volume::Volume,
};

/// kube-scheduler's name, which the API server gives to pods that name no scheduler.
pub const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// The priority classes that every cluster has, and their priorities (kubernetes `pkg/apis/scheduling/v1/helpers.go`).
pub const SYSTEM_CLASSES: [(&str, i32); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

/// A pod.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct Pod {
    /// Identity, labels and annotations.
    pub metadata: Metadata,
    /// What was asked for.
    #[serde(deserialize_with = "nullable")]
    pub spec: PodSpec,
    /// What has come of it.
    #[serde(deserialize_with = "nullable")]
    pub status: PodStatus,
}

/// `spec` of a pod.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// The node, once bound.
    pub node_name: Option<String>,
    /// Which scheduler is to place the pod.
    pub scheduler_name: Option<String>,
    /// Priority, as the API server resolved it.
    pub priority: Option<i32>,
    /// `PreemptLowerPriority`, the default, or `Never`.
    pub preemption_policy: Option<CompactString>,
    /// The name of the priority class.
    pub priority_class_name: Option<String>,
    /// Names of gates that hold the pod back.
    #[serde(deserialize_with = "nullable")]
    pub scheduling_gates: Vec<Present>,
    /// Labels that a node must have.
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Affinities.
    #[serde(deserialize_with = "nullable")]
    pub affinity: Affinity,
    /// Taints that the pod bears.
    #[serde(deserialize_with = "nullable")]
    pub tolerations: Vec<Toleration>,
    /// How pods must be spread.
    #[serde(deserialize_with = "nullable")]
    pub topology_spread_constraints: Vec<TopologySpread>,
    /// App containers. A copy of the pod shares its containers until it changes one.
    #[serde(deserialize_with = "nullable")]
    pub containers: Vec<Arc<Container>>,
    /// Init containers and sidecars, in starting order.
    #[serde(deserialize_with = "nullable")]
    pub init_containers: Vec<Arc<Container>>,
    /// Containers that were added to the running pod; they can ask for no resources.
    #[serde(deserialize_with = "nullable")]
    pub ephemeral_containers: Vec<Arc<Container>>,
    /// What the runtime class adds to the pod's requests.
    pub overhead: Option<ResourceMap>,
    /// Requests and limits of the pod as a whole.
    #[serde(deserialize_with = "nullable")]
    pub resources: Resources,
    /// Whether the pod uses the node's network.
    #[serde(deserialize_with = "nullable")]
    pub host_network: bool,
    /// Whether the pod uses the node's user namespace; absent: it does.
    pub host_users: Option<bool>,
    /// Volumes, as far as they can bind a pod to nodes.
    #[serde(deserialize_with = "nullable")]
    pub volumes: Vec<Volume>,
    /// Claims of devices.
    #[serde(deserialize_with = "nullable")]
    pub resource_claims: Vec<PodResourceClaim>,
    /// The runtime class.
    pub runtime_class_name: Option<String>,
    /// The group that is to be placed together.
    pub scheduling_group: Option<SchedulingGroup>,
}

/// A claim of devices that the pod uses. One of the two names is set.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct PodResourceClaim {
    /// The name by which containers use it.
    #[serde(deserialize_with = "nullable")]
    pub name: CompactString,
    /// A claim of the pod's namespace.
    pub resource_claim_name: Option<CompactString>,
    /// A template of the pod's namespace, from which the pod gets a claim of its own.
    pub resource_claim_template_name: Option<CompactString>,
}

/// Which claim was made for an entry of `spec.resourceClaims`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct PodResourceClaimStatus {
    /// The entry's name.
    #[serde(deserialize_with = "nullable")]
    pub name: CompactString,
    /// The claim; absent: the pod needs none.
    pub resource_claim_name: Option<CompactString>,
}

/// `status.extendedResourceClaimStatus` of a pod.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ExtendedResourceClaimStatus {
    /// Which request of the claim serves which resource of which container.
    #[serde(deserialize_with = "nullable")]
    pub request_mappings: Vec<RequestMapping>,
    /// The claim, in the pod's namespace.
    #[serde(deserialize_with = "nullable")]
    pub resource_claim_name: String,
}

/// What a claim takes of the node's own resources for the pod: an entry of `status.nodeAllocatableResourceClaimStatuses` (KEP-5517), as 1.37 has it.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeAllocatableClaimStatus {
    /// The claim, in the pod's namespace.
    #[serde(deserialize_with = "nullable")]
    pub resource_claim_name: String,
    /// The containers that use it.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<String>,
    /// What its devices themselves stand for.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub mapping: Vec<NodeAllocatableMapped>,
    /// What is taken besides.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub overhead: Vec<NodeAllocatableOverhead>,
}

/// How much of a resource of the node a claim's devices stand for.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(default)]
pub struct NodeAllocatableMapped {
    /// The resource.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// How much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantity: Option<Quantity>,
}

/// How much of a resource of the node is taken beside a claim's devices.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeAllocatableOverhead {
    /// The resource.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// For the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_pod: Option<Quantity>,
    /// For each container that uses the claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_container: Option<Quantity>,
}

/// A request of a claim that serves a container's extended resource.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RequestMapping {
    /// The container.
    #[serde(deserialize_with = "nullable")]
    pub container_name: String,
    /// The extended resource.
    #[serde(deserialize_with = "nullable")]
    pub resource_name: String,
    /// The claim's request.
    #[serde(deserialize_with = "nullable")]
    pub request_name: String,
}

/// `spec.schedulingGroup`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct SchedulingGroup {
    /// The PodGroup's name.
    pub pod_group_name: Option<CompactString>,
}

/// How evenly pods must be spread over the values of a node label.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct TopologySpread {
    /// How many more matching pods one domain may have than the one with the fewest.
    pub max_skew: i32,
    /// The node label whose equal values make one domain.
    #[serde(deserialize_with = "nullable")]
    pub topology_key: String,
    /// `DoNotSchedule` or `ScheduleAnyway`.
    #[serde(deserialize_with = "nullable")]
    pub when_unsatisfiable: String,
    /// Which pods are counted; absent: none.
    pub label_selector: Option<LabelSelector>,
    /// Below so many domains the fewest are taken to be 0; absent: 1.
    pub min_domains: Option<i32>,
    /// `Honor` (the default) or `Ignore`: whether nodes that the pod's node affinity rejects are left out.
    pub node_affinity_policy: Option<String>,
    /// `Honor` or `Ignore` (the default): whether nodes with taints that the pod does not tolerate are left out.
    pub node_taints_policy: Option<String>,
    /// Labels of the pod itself that counted pods must share.
    #[serde(deserialize_with = "nullable")]
    pub match_label_keys: Vec<String>,
}

/// `status` of a pod.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    #[serde(deserialize_with = "nullable")]
    pub phase: String,
    /// Conditions.
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<Condition>,
    /// When the kubelet took the pod on.
    pub start_time: Option<Timestamp>,
    /// How the app containers fare.
    #[serde(deserialize_with = "nullable")]
    pub container_statuses: Vec<ContainerStatus>,
    /// What the pod as a whole runs with; absent: the node has not said.
    pub resources: Option<Resources>,
    /// What the node has set aside for the pod as a whole.
    pub allocated_resources: Option<ResourceMap>,
    /// The node that a scheduler means the pod to go to, as a hint.
    pub nominated_node_name: Option<String>,
    /// How the init containers fare.
    #[serde(deserialize_with = "nullable")]
    pub init_container_statuses: Vec<ContainerStatus>,
    /// The claims that were made from templates.
    #[serde(deserialize_with = "nullable")]
    pub resource_claim_statuses: Vec<PodResourceClaimStatus>,
    /// The claim that serves extended resources of the pod (KEP-5004); absent: none does.
    pub extended_resource_claim_status: Option<Arc<ExtendedResourceClaimStatus>>,
    /// What claims take of the node's own resources for the pod (KEP-5517).
    #[serde(deserialize_with = "nullable")]
    pub node_allocatable_resource_claim_statuses: Arc<[NodeAllocatableClaimStatus]>,
}

impl PodStatus {
    /// The condition of this type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }
}

/// A condition of a pod.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct Condition {
    /// `PodScheduled` and the like.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in one word.
    #[serde(deserialize_with = "nullable")]
    pub reason: String,
    /// Why, in words.
    #[serde(deserialize_with = "nullable")]
    pub message: String,
    /// Since when it is so.
    #[serde(rename = "lastTransitionTime")]
    pub last_transition_time: Option<Timestamp>,
}

/// How one container fares.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerStatus {
    /// The container's name.
    pub name: String,
    /// Its present state.
    #[serde(deserialize_with = "nullable")]
    pub state: ContainerState,
    /// What it runs with; absent: the node has not said.
    pub resources: Option<Resources>,
    /// What the node has set aside for it.
    pub allocated_resources: Option<ResourceMap>,
}

/// The present state of a container.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct ContainerState {
    /// Set once the container has ended.
    pub terminated: Option<Terminated>,
}

/// How a container ended.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Terminated {
    /// 0: it did its work.
    pub exit_code: i32,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

impl Pod {
    /// Whether the pod has ended and holds nothing any more.
    pub fn is_terminal(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// When its last container ended; `None`: that is not known.
    pub fn ended_at(&self) -> Option<Timestamp> {
        let containers = self.status.container_statuses.iter().chain(&self.status.init_container_statuses);
        containers.filter_map(|container| container.state.terminated.as_ref()?.finished_at).max()
    }

    /// Every container that asks for resources, in kubelet's starting order, with its path below the pod.
    pub fn containers(&self) -> impl Iterator<Item = (String, &Container)> {
        let init = self.spec.init_containers.iter().enumerate();
        let apps = self.spec.containers.iter().enumerate();
        init.map(|(at, container)| (format!("spec.initContainers[{at}]"), container.as_ref()))
            .chain(apps.map(|(at, container)| (format!("spec.containers[{at}]"), container.as_ref())))
    }

    /// Whether every init container that must end has ended well: their shares are free again.
    pub fn init_is_done(&self) -> bool {
        let mut must_end = self.spec.init_containers.iter().filter(|container| !container.is_sidecar());
        must_end.all(|container| {
            let status =
                self.status.init_container_statuses.iter().find(|status| status.name == container.name);
            status.and_then(|status| status.state.terminated.as_ref()).is_some_and(|end| end.exit_code == 0)
        })
    }
}
