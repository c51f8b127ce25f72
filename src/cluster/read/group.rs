//! Groups of pods: which one a pod belongs to, and what its PodGroup says.
//!
//! Sources: Volcano ed72c7c `staging/src/volcano.sh/apis/pkg/apis/scheduling/v1beta1/types.go`; scheduler-plugins v0.32
//! `apis/scheduling/v1alpha1/types.go`; k8s.io/api v0.36 `scheduling/v1alpha2/types.go`, and v0.37 `scheduling/v1beta1/types.go` and, for
//! CompositePodGroups, `scheduling/v1alpha3/types.go`. The annotations of [`marks`] that begin with `berth.dev/` are Berth's own, on a PodGroup of any API.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc};

use jiff::SignedDuration;

use super::time_division::budget;
use crate::{
    dialect::marks,
    object::{
        Pod, PodGroup,
        pod::PodResourceClaim,
        pod_group::{self as object, PodGroupSpec},
    },
    scheduling::{
        model::{
            claim_use::{ClaimOrTemplate, GroupClaim},
            gang::{
                DisruptionMode, Gang, GangName, Group, GroupApi, GroupPreemption, Member, Policy,
                SharedTopology, Strictness,
            },
            group_condition::{GroupCondition, GroupOutcome, GroupStatus},
            importance::PreemptionPolicy,
            kind::PodGroupKind,
            name::full_name,
        },
        world::object::Object,
    },
};

/// What the pod is in its group; `None`: it is in none.
pub(super) fn member(pod: &Pod) -> Option<Member> {
    let metadata = &pod.metadata;
    let named = |name: &&str| !name.is_empty();
    let kubernetes = pod.spec.scheduling_group.as_ref().and_then(|group| group.pod_group_name.as_deref());
    let volcano = || marks::GROUP_NAMES.iter().find_map(|key| metadata.annotation(key));
    let coscheduling = || metadata.label(marks::COSCHEDULING_GROUP);
    let (api, name) = None
        .or_else(|| kubernetes.filter(named).map(|name| (GroupApi::Kubernetes, name)))
        .or_else(|| volcano().filter(named).map(|name| (GroupApi::Volcano, name)))
        .or_else(|| coscheduling().filter(named).map(|name| (GroupApi::Coscheduling, name)))?;
    let task = || metadata.annotation(marks::TASK).or_else(|| metadata.label(marks::POD_CLIQUE));
    let task = (api == GroupApi::Volcano).then(task).flatten().map(Arc::from);
    Some(Member { gang: GangName { api, group: full_name(&metadata.namespace, name) }, task })
}

/// A PodGroup of this kind, or a CompositePodGroup.
pub fn pod_group(kind: PodGroupKind, group: &PodGroup) -> Object {
    let metadata = &group.metadata;
    let (preemption, trouble) = preemption(kind, &group.spec);
    let (claims, of_claims) =
        claims(kind, &group.spec).map_or_else(|why| (Vec::new(), Some(why)), |claims| (claims, None));
    let policy = trouble.or(of_claims).map_or_else(|| policy(kind, group), Err);
    let said = Group {
        parent: parent(kind, group),
        budget: budget(metadata),
        policy: policy.unwrap_or_else(|why| Policy::Unserved(why.into())),
        preemption,
        claims,
        status: status(kind, group),
    };
    Object::PodGroup(kind, full_name(&metadata.namespace, &metadata.name), Arc::new(said))
}

/// The full name of the CompositePodGroup that the group is in.
fn parent(kind: PodGroupKind, group: &PodGroup) -> Option<Arc<str>> {
    let parent = group.spec.parent_composite_pod_group_name.as_ref();
    let parent = parent.filter(|_| matches!(kind.api(), GroupApi::Kubernetes | GroupApi::Composite));
    parent.map(|parent| full_name(&group.metadata.namespace, parent))
}

/// So many claims a PodGroup has at most (k8s.io/api v0.37 `scheduling/v1beta1/types.go`, `MaxPodGroupResourceClaims`).
const MOST_CLAIMS: usize = 4;

/// The claims of devices that a PodGroup has for its pods. Where the feature gate is off, the API server drops the field.
fn claims(kind: PodGroupKind, spec: &PodGroupSpec) -> Result<Vec<GroupClaim>, String> {
    if kind.api() != GroupApi::Kubernetes {
        return Ok(Vec::new());
    }
    if spec.resource_claims.len() > MOST_CLAIMS {
        let count = spec.resource_claims.len();
        return Err(format!("spec.resourceClaims must have at most {MOST_CLAIMS} entries, but has {count}"));
    }
    let read = |claim: &PodResourceClaim| {
        let named = match (&claim.resource_claim_name, &claim.resource_claim_template_name) {
            (Some(claim), None) => ClaimOrTemplate::Claim(claim.as_str().into()),
            (None, Some(template)) => ClaimOrTemplate::Template(template.as_str().into()),
            _ => {
                return Err(format!(
                    "spec.resourceClaims[{}] must name either a ResourceClaim or a ResourceClaimTemplate",
                    claim.name
                ));
            }
        };
        Ok(GroupClaim { entry: claim.name.as_str().into(), named })
    };
    spec.resource_claims.iter().map(read).collect()
}

/// The reasons of the condition, and what they say (k8s.io/api v0.37 `scheduling/v1beta1/types.go`).
const OUTCOMES: [(&str, GroupOutcome); 3] = [
    ("Scheduled", GroupOutcome::Scheduled),
    ("Unschedulable", GroupOutcome::Unschedulable),
    ("SchedulerError", GroupOutcome::Error),
];

/// The condition of a PodGroup of Kubernetes that says whether its pods are placed.
pub(in crate::cluster) fn condition_type(kind: PodGroupKind) -> &'static str {
    if kind == PodGroupKind::KubernetesAlpha2 { "PodGroupScheduled" } else { "PodGroupInitiallyScheduled" }
}

/// The version of the API that has this kind of PodGroup of Kubernetes. A CompositePodGroup has no condition.
pub(in crate::cluster) fn version_of(kind: PodGroupKind) -> &'static str {
    match kind {
        PodGroupKind::KubernetesAlpha2 => "v1alpha2",
        PodGroupKind::KubernetesAlpha3 => "v1alpha3",
        _ => "v1beta1",
    }
}

/// The reason of that condition.
pub(in crate::cluster) fn condition_reason(outcome: GroupOutcome) -> &'static str {
    let found = OUTCOMES.into_iter().find(|(_, known)| *known == outcome);
    found.map_or("SchedulerError", |(reason, _)| reason)
}

/// What the status says of a PodGroup of Kubernetes. A condition that is true says for good that the pods are placed, whatever its reason.
fn status(kind: PodGroupKind, group: &PodGroup) -> GroupStatus {
    let stated = || {
        let mut conditions = group.status.conditions.iter();
        let condition = conditions.find(|condition| condition.kind == condition_type(kind))?;
        let by_reason = OUTCOMES.into_iter().find(|(reason, _)| *reason == condition.reason);
        let outcome = match &*condition.status {
            "True" => GroupOutcome::Scheduled,
            _ => by_reason.map(|(_, outcome)| outcome).filter(|outcome| !outcome.is_scheduled())?,
        };
        Some((
            GroupCondition { outcome, message: condition.message.clone() },
            condition.last_transition_time?,
        ))
    };
    if kind.api() != GroupApi::Kubernetes {
        return GroupStatus::default();
    }
    GroupStatus { uid: group.metadata.uid.as_str().into(), stated: stated() }
}

/// What the PodGroup says of preemption, and why none of its pods is placed. Where the mode can't be read, they are disrupted together.
///
/// The API server fills in both the mode and the priority. Where a feature gate is off, as it is by default in 1.36, it drops both.
fn preemption(kind: PodGroupKind, spec: &PodGroupSpec) -> (GroupPreemption, Option<String>) {
    if !matches!(kind.api(), GroupApi::Kubernetes | GroupApi::Composite) {
        return (GroupPreemption::default(), None);
    }
    let mode = disruption_mode(spec.disruption_mode.as_ref());
    let policy = spec.preemption_policy.as_deref().map(|policy| match policy {
        "PreemptLowerPriority" => Ok(PreemptionPolicy::PreemptLowerPriority),
        "Never" => Ok(PreemptionPolicy::Never),
        other => {
            Err(format!("spec.preemptionPolicy must be Never or PreemptLowerPriority, but is {other:?}"))
        }
    });
    let policy = policy.transpose();
    let trouble = mode.as_ref().err().or(policy.as_ref().err()).cloned();
    let preemption = GroupPreemption {
        disruption: mode.unwrap_or(DisruptionMode::All),
        priority: spec.priority,
        policy: policy.unwrap_or(None),
    };
    (preemption, trouble)
}

fn disruption_mode(mode: Option<&object::DisruptionMode>) -> Result<DisruptionMode, String> {
    use object::{DisruptionMode as Stated, DisruptionModes};
    let Some(mode) = mode else { return Ok(DisruptionMode::Single) };
    match mode {
        Stated::Name(name) if name == "Pod" => Ok(DisruptionMode::Single),
        Stated::Name(name) if name == "PodGroup" => Ok(DisruptionMode::All),
        Stated::OneOf(DisruptionModes { single: Some(_), all: None }) => Ok(DisruptionMode::Single),
        Stated::OneOf(DisruptionModes { single: None, all: Some(_) }) => Ok(DisruptionMode::All),
        Stated::Name(_) | Stated::OneOf(_) => Err(
            "spec.disruptionMode is none of the modes that Berth knows: single and all, or Pod and PodGroup"
                .to_owned(),
        ),
    }
}

/// The annotations that can't be served in a tree of groups.
const OF_ONE_GROUP: [&str; 2] = [marks::MAX_MEMBERS, marks::PREFERRED_TOPOLOGY];

/// How the pods are placed. In a tree, a group that places each of its pods or groups alone is one that asks for one of them at least (v1.37
/// `gangscheduling.go`, `getMinCount`).
fn policy(kind: PodGroupKind, group: &PodGroup) -> Result<Policy, String> {
    let PodGroup { metadata, spec, status } = group;
    let is_of_tree = kind == PodGroupKind::Composite || parent(kind, group).is_some();
    if is_of_tree && let Some(mark) = OF_ONE_GROUP.iter().find(|mark| metadata.annotation(mark).is_some()) {
        return Err(format!(
            "metadata.annotations[{mark}] is not served for CompositePodGroups and the groups in them"
        ));
    }
    let stated = spec.scheduling_policy.gang.as_ref();
    let (field, least) = match kind.api() {
        GroupApi::Kubernetes if stated.is_none() && !is_of_tree => return Ok(Policy::Alone),
        GroupApi::Kubernetes => ("spec.schedulingPolicy.gang.minCount", stated.map(|gang| gang.min_count)),
        GroupApi::Composite => {
            ("spec.schedulingPolicy.gang.minGroupCount", stated.map(|gang| gang.min_group_count))
        }
        GroupApi::Volcano | GroupApi::Coscheduling => ("spec.minMember", spec.min_member),
    };
    let min = count(field, least.unwrap_or(1))?;
    if is_of_tree && min == 0 {
        return Err(format!("{field} must be above 0"));
    }
    let gang = Gang {
        min,
        max: metadata.annotation(marks::MAX_MEMBERS).map(max).transpose()?,
        tasks: tasks(spec)?,
        succeeded: usize::try_from(status.succeeded.unwrap_or(0)).unwrap_or(0),
        topology: topology(group)?,
        timeout: spec
            .schedule_timeout_seconds
            .filter(|seconds| *seconds > 0)
            .map(|seconds| SignedDuration::from_secs(i64::from(seconds))),
        groups: None,
    };
    if gang.max.is_some_and(|max| max < gang.min) {
        return Err(format!(
            "metadata.annotations[{}] is lower than {field}, so its pods are never placed",
            marks::MAX_MEMBERS
        ));
    }
    Ok(Policy::Gang(Arc::new(gang)))
}

/// So many pods of each task are placed together: by `minTaskMember`, and by parts of the group as Grove has them, one for each PodClique
/// (grove `operator/internal/scheduler/volcano/backend.go`, `subGroupPoliciesForPodGang`).
fn tasks(spec: &PodGroupSpec) -> Result<BTreeMap<Arc<str>, usize>, String> {
    let mut tasks = BTreeMap::new();
    for (task, least) in spec.min_task_member.iter().flatten() {
        tasks.insert(task.as_str().into(), count(&format!("spec.minTaskMember[{task}]"), *least)?);
    }
    for policy in &spec.sub_group_policy {
        let field = format!("spec.subGroupPolicy[{}]", policy.name);
        let clique = clique(policy).ok_or_else(|| {
            format!(
                "{field} is not served: Berth reads parts that select the pods of one PodClique by the label {}, without HyperNodes",
                marks::POD_CLIQUE
            )
        })?;
        let least = count(&format!("{field}.subGroupSize"), policy.sub_group_size.unwrap_or(1))?;
        tasks.insert(clique.into(), least);
    }
    Ok(tasks)
}

/// The PodClique whose pods the part has; `None`: it is another kind of part.
fn clique(policy: &object::SubGroupPolicy) -> Option<&str> {
    let selector = policy.label_selector.as_ref()?;
    let is_by_clique = selector.match_expressions.is_empty()
        && selector.match_labels.len() == 1
        && policy.match_label_keys.iter().all(|key| key == marks::POD_CLIQUE);
    let is_one = policy.min_sub_groups.unwrap_or(1) <= 1;
    let is_anywhere = policy.network_topology.as_ref().is_none_or(|topology| topology.mode == "soft");
    let clique = selector.match_labels.get(marks::POD_CLIQUE)?;
    (is_by_clique && is_one && is_anywhere).then_some(clique.as_str())
}

fn count(field: &str, count: i32) -> Result<usize, String> {
    usize::try_from(count).map_err(|_| format!("{field} must not be negative, but is {count}"))
}

fn max(text: &str) -> Result<usize, String> {
    let read = text.parse::<usize>().ok().filter(|max| *max > 0);
    let key = marks::MAX_MEMBERS;
    read.ok_or_else(|| format!("metadata.annotations[{key}] must be a whole number above 0, but is {text:?}"))
}

/// Where the pods run, by Berth's annotations or by Kubernetes' constraint.
fn topology(group: &PodGroup) -> Result<Option<SharedTopology>, String> {
    let PodGroup { metadata, spec, .. } = group;
    if spec.network_topology.as_ref().is_some_and(|topology| topology.mode != "soft") {
        return Err(format!(
            "spec.networkTopology needs HyperNodes, which Berth does not read; name a node label in the annotation {} instead",
            marks::REQUIRED_TOPOLOGY
        ));
    }
    let constraints = spec.scheduling_constraints.iter().flat_map(|constraints| &constraints.topology);
    let constraints: Vec<&str> = constraints.map(|constraint| constraint.key.as_str()).collect();
    let annotated = |key| metadata.annotation(key).map(str::trim);
    let (key, strictness) = match (constraints.as_slice(), annotated(marks::REQUIRED_TOPOLOGY)) {
        ([key], _) => (*key, Strictness::Required),
        ([_, ..], _) => return Err("spec.schedulingConstraints.topology has more than one key".to_owned()),
        ([], Some(key)) => (key, Strictness::Required),
        ([], None) => match annotated(marks::PREFERRED_TOPOLOGY) {
            Some(key) => (key, Strictness::Preferred),
            None => return Ok(None),
        },
    };
    if key.is_empty() {
        return Err("the node label that its pods share is empty".to_owned());
    }
    Ok(Some(SharedTopology { key: key.into(), strictness }))
}

/// The kind of PodGroup, or of CompositePodGroup, of this group and version, such as `scheduling.volcano.sh/v1beta1`.
pub fn kind(api_version: &str, kind: &str) -> Option<PodGroupKind> {
    match (api_version.split_once('/')?, kind) {
        (("scheduling.k8s.io", _), "CompositePodGroup") => Some(PodGroupKind::Composite),
        (_, "CompositePodGroup") => None,
        ((marks::GROUPS_API, _), _) => Some(PodGroupKind::Volcano),
        (("scheduling.x-k8s.io", _), _) => Some(PodGroupKind::Coscheduling),
        (("scheduling.k8s.io", "v1alpha2"), _) => Some(PodGroupKind::KubernetesAlpha2),
        (("scheduling.k8s.io", _), _) => Some(PodGroupKind::Kubernetes),
        _ => None,
    }
}
