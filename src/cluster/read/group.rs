//! Groups of pods: which one a pod belongs to, and what its PodGroup says.
//!
//! Sources: Volcano ed72c7c `staging/src/volcano.sh/apis/pkg/apis/scheduling/v1beta1/types.go`; scheduler-plugins v0.32
//! `apis/scheduling/v1alpha1/types.go`; k8s.io/api v0.36 `scheduling/v1alpha2/types.go` and v0.37 `scheduling/v1beta1/types.go`. The annotations
//! of [`marks`] that begin with `berth.dev/` are Berth's own, on a PodGroup of any API.

use std::{collections::BTreeMap, sync::Arc};

use jiff::SignedDuration;

use super::time_division::budget;
use crate::{
    dialect::marks,
    object::{Pod, PodGroup},
    scheduling::{
        model::{
            gang::{Gang, GangName, Group, GroupApi, Member, Policy, SharedTopology, Strictness},
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
    let task = metadata.annotation(marks::TASK).filter(|_| api == GroupApi::Volcano).map(Arc::from);
    Some(Member { gang: GangName { api, group: full_name(&metadata.namespace, name) }, task })
}

/// A PodGroup of this kind.
pub fn pod_group(kind: PodGroupKind, group: &PodGroup) -> Object {
    let metadata = &group.metadata;
    let said = Group {
        budget: budget(metadata),
        policy: policy(kind, group).unwrap_or_else(|why| Policy::Unserved(why.into())),
    };
    Object::PodGroup(kind, full_name(&metadata.namespace, &metadata.name), Arc::new(said))
}

fn policy(kind: PodGroupKind, group: &PodGroup) -> Result<Policy, String> {
    let PodGroup { metadata, spec, status } = group;
    let least = if kind.api() == GroupApi::Kubernetes {
        match &spec.scheduling_policy.gang {
            Some(gang) => ("spec.schedulingPolicy.gang.minCount", Some(gang.min_count)),
            None => return Ok(Policy::Alone),
        }
    } else {
        ("spec.minMember", spec.min_member)
    };
    let (field, least) = least;
    let tasks = spec.min_task_member.iter().flatten();
    let gang = Gang {
        min: count(field, least.unwrap_or(1))?,
        max: metadata.annotation(marks::MAX_MEMBERS).map(max).transpose()?,
        tasks: tasks
            .map(|(task, least)| {
                Ok((task.as_str().into(), count(&format!("spec.minTaskMember[{task}]"), *least)?))
            })
            .collect::<Result<BTreeMap<_, _>, String>>()?,
        succeeded: usize::try_from(status.succeeded.unwrap_or(0)).unwrap_or(0),
        topology: topology(group)?,
        timeout: spec
            .schedule_timeout_seconds
            .filter(|seconds| *seconds > 0)
            .map(|seconds| SignedDuration::from_secs(i64::from(seconds))),
    };
    if gang.max.is_some_and(|max| max < gang.min) {
        return Err(format!(
            "metadata.annotations[{}] is lower than {field}, so its pods are never placed",
            marks::MAX_MEMBERS
        ));
    }
    Ok(Policy::Gang(Arc::new(gang)))
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

/// The kind of PodGroup of this group and version, such as `scheduling.volcano.sh/v1beta1`.
pub fn kind(api_version: &str) -> Option<PodGroupKind> {
    match api_version.split_once('/')? {
        (marks::GROUPS_API, _) => Some(PodGroupKind::Volcano),
        ("scheduling.x-k8s.io", _) => Some(PodGroupKind::Coscheduling),
        ("scheduling.k8s.io", "v1alpha2") => Some(PodGroupKind::KubernetesAlpha),
        ("scheduling.k8s.io", _) => Some(PodGroupKind::Kubernetes),
        _ => None,
    }
}
