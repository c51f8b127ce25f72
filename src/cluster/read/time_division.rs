//! Volcano's marks of time division on a pod and on its PodGroup: which revocable zones it may use, how long it runs, and when it may be evicted.
//!
//! Source: Volcano ed72c7c `pkg/scheduler/api/pod_info.go`. The annotation [`marks::EXPECTED_DURATION`] is Berth's own.

use jiff::SignedDuration;

use crate::{
    dialect::marks,
    object::{Metadata, Pod, duration, metadata::Controller},
    scheduling::model::{
        name::full_name,
        pod::Placer,
        tdm::{
            Permission, Revocable,
            job::{DaemonSetName, Evictable, JobBudget, JobMember, JobName, Quantum, Readiness},
        },
    },
};

/// Which revocable zones a pod may use, and how long it runs. A duration that can't be read is none: admission refuses it.
pub(super) fn revocable(pod: &Pod) -> Revocable {
    let expected = pod.metadata.annotation(marks::EXPECTED_DURATION);
    let expected_duration = expected.and_then(duration::parse).filter(SignedDuration::is_positive);
    Revocable { zones: permission(&pod.metadata), expected_duration }
}

/// A pod that must not be preempted may use none, whatever zones it names. The label alone permits none: only the annotation does.
fn permission(metadata: &Metadata) -> Permission {
    if marks::preemptable(metadata) == Some(false) {
        return Permission::Nowhere;
    }
    match metadata.annotation(marks::REVOCABLE_ZONE) {
        Some("") => Permission::Nowhere,
        Some(marks::ANY_ZONE) => Permission::Anywhere,
        Some(zone) => Permission::Zone(zone.into()),
        None if metadata.annotation(marks::PREEMPTABLE).is_some() => Permission::Anywhere,
        None => Permission::Nowhere,
    }
}

/// What evictions read of a pod, which this scheduler or another places.
pub(super) fn member(pod: &Pod, placer: Placer) -> JobMember {
    let metadata = &pod.metadata;
    let group = marks::GROUP_NAMES.iter().find_map(|key| metadata.annotation(key));
    let group = group.filter(|name| !name.is_empty()).map(|name| full_name(&metadata.namespace, name));
    let own = || match &metadata.controller {
        Some(controller) => JobName::Controller(metadata.namespace.as_str().into(), controller.uid().into()),
        None => JobName::Pod(metadata.uid.as_str().into()),
    };
    JobMember {
        job: group.clone().map_or_else(own, JobName::PodGroup),
        group,
        evictable: evictable(pod, placer),
        budget: budget(metadata),
        readiness: readiness(pod),
    }
}

/// Whether a pod may be evicted. Whatever an owner is said to be, a pod that Berth has placed is placed in no closed zone again.
fn evictable(pod: &Pod, placer: Placer) -> Evictable {
    if !marks::leaves_when_closed(&pod.metadata) || is_mirror(pod) {
        return Evictable::No;
    }
    match (placer, daemon_set(&pod.metadata)) {
        (Placer::Another, Some(set)) => Evictable::UnlessOf(set),
        (Placer::Another | Placer::Berth, _) => Evictable::Yes,
    }
}

/// Whether the kubelet runs the pod from a file (kubernetes v1.36 `pkg/kubelet/pod/mirror_client.go`, `CreateMirrorPod`).
fn is_mirror(pod: &Pod) -> bool {
    let of_node = |controller: &Controller| {
        (controller.api_version(), controller.kind()) == ("v1", "Node")
            && pod.spec.node_name.as_deref() == Some(controller.name())
    };
    pod.metadata.annotation(marks::MIRROR).is_some() && pod.metadata.controller.as_ref().is_some_and(of_node)
}

/// The DaemonSet that a pod names as its controller; no DaemonSet controls pods of other namespaces.
fn daemon_set(metadata: &Metadata) -> Option<DaemonSetName> {
    let controller = metadata.controller.as_ref()?;
    let is_daemon_set = controller.api_version().split_once('/').is_some_and(|(group, _)| group == "apps")
        && controller.kind() == "DaemonSet";
    is_daemon_set.then(|| DaemonSetName {
        name: full_name(&metadata.namespace, controller.name()),
        uid: controller.uid().into(),
    })
}

/// The budget that annotations state. Where both are set, that of the least number counts, as in Volcano. One that can't be read is none: it
/// would keep the pods in a closed zone until someone corrects it, and admission refuses it.
pub(super) fn budget(metadata: &Metadata) -> Option<JobBudget> {
    let read = |key: &str, of: fn(Quantum) -> JobBudget| quantum(metadata.annotation(key)?).map(of);
    read(marks::MIN_AVAILABLE, JobBudget::MinAvailable)
        .or_else(|| read(marks::MAX_UNAVAILABLE, JobBudget::MaxUnavailable))
}

/// A whole number above 0 or a percentage, as admission lets it in.
fn quantum(text: &str) -> Option<Quantum> {
    if !marks::is_budget(text) {
        return None;
    }
    match text.strip_suffix('%') {
        Some(percent) => percent.parse().ok().map(Quantum::Percent),
        None => text.parse().ok().map(Quantum::Count),
    }
}

pub(super) fn readiness(pod: &Pod) -> Readiness {
    let is_ready = pod.status.condition("Ready").is_some_and(|condition| condition.status == "True");
    if is_ready { Readiness::Ready } else { Readiness::Unready }
}
