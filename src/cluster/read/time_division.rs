//! Volcano's marks of time division on a pod and on its PodGroup: which revocable zones it may use, how long it runs, and when it may be evicted.
//!
//! Source: Volcano ed72c7c `pkg/scheduler/api/pod_info.go`. The annotation [`marks::EXPECTED_DURATION`] is Berth's own.

use jiff::SignedDuration;

use crate::{
    dialect::{duration, marks},
    object::{Metadata, Pod},
    scheduling::{
        object::full_name,
        tdm::{
            Permission, Revocable,
            job::{Evictable, JobBudget, JobMember, Quantum, Readiness},
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

/// What evictions read of a pod.
pub(super) fn member(pod: &Pod) -> JobMember {
    let metadata = &pod.metadata;
    let group = marks::GROUP_NAMES.iter().find_map(|key| metadata.annotation(key));
    let group = group.filter(|name| !name.is_empty()).map(|name| full_name(&metadata.namespace, name));
    let controller = metadata.controller.as_ref();
    let own = || controller.map_or(metadata.uid.as_str(), |controller| controller.uid()).into();
    JobMember {
        job: group.clone().unwrap_or_else(own),
        group,
        evictable: evictable(metadata),
        budget: budget(metadata),
        readiness: readiness(pod),
    }
}

/// A pod that says nothing of preemption may be one that an operator of the cluster runs on every node: it stays, although Volcano takes it
/// to be preemptable.
fn evictable(metadata: &Metadata) -> Evictable {
    let preemptable =
        marks::preemptable(metadata).unwrap_or_else(|| permission(metadata) != Permission::Nowhere);
    let bound_to_node = metadata
        .controller
        .as_ref()
        .is_some_and(|controller| matches!(controller.kind(), "DaemonSet" | "Node"));
    if preemptable && !bound_to_node { Evictable::Yes } else { Evictable::No }
}

/// The budget that annotations state. Where both are set, that of the least number counts, as in Volcano.
pub(super) fn budget(metadata: &Metadata) -> Option<JobBudget> {
    let read = |key: &str, of: fn(Quantum) -> JobBudget| {
        Some(quantum(metadata.annotation(key)?).map_or(JobBudget::Unreadable, of))
    };
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

fn readiness(pod: &Pod) -> Readiness {
    let ready =
        |condition: &&crate::object::pod::Condition| condition.kind == "Ready" && condition.status == "True";
    if pod.status.conditions.iter().any(|condition| ready(&condition)) {
        Readiness::Ready
    } else {
        Readiness::Unready
    }
}
