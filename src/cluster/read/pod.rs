//! What of a pod is read without a dialect: how far it is, what it was told, and what it demands of a node beside cards.

use std::sync::Arc;

use super::time_division::revocable;
use crate::{
    dialect::marks,
    object::{Affinity, Pod, Toleration, constraints::TooManyConstraints},
    scheduling::{
        Claim, Constraints, Importance, PreemptionPolicy, ResourceAmounts, Stage,
        model::{
            feature::Feature,
            footprint::Footprint,
            kept_room::{RoomCourse, RoomStatus},
            name::NodeName,
            node_affinity::NodeAffinityTerms,
            pod::Deletion,
        },
    },
};

/// The reason of the condition `DisruptionTarget` of a pod that a scheduler deletes to make room (k8s.io/api `core/v1/types.go`,
/// `PodReasonPreemptionByScheduler`).
pub(in crate::cluster) const PREEMPTION_BY_SCHEDULER: &str = "PreemptionByScheduler";

/// The condition that says what became of the room that was kept for a pod because it waits long.
pub(in crate::cluster) const ROOM_KEPT: &str = "berth.dev/RoomKept";

const ROOM_COURSES: [RoomCourse; 3] = [RoomCourse::Kept, RoomCourse::GivenUp, RoomCourse::Lost];

/// The reason of that condition.
pub(in crate::cluster) fn room_reason(course: RoomCourse) -> &'static str {
    match course {
        RoomCourse::Kept => "WaitsLong",
        RoomCourse::GivenUp => "TimeOver",
        RoomCourse::Lost => "NodeLost",
    }
}

/// What became of the room that was kept for a pod; `None`: none was, or what its status says of it can't be read.
pub(in crate::cluster) fn stated_room(pod: &Pod) -> Option<RoomStatus> {
    let condition = pod.status.condition(ROOM_KEPT)?;
    let course = ROOM_COURSES.into_iter().find(|course| room_reason(*course) == condition.reason)?;
    Some(RoomStatus { course, since: condition.last_transition_time? })
}

/// The node that is kept for a pod that has not ended and is not being deleted.
pub(super) fn nominated(pod: &Pod) -> Option<NodeName> {
    let node = pod.status.nominated_node_name.as_deref().filter(|node| !node.is_empty())?;
    (!pod.is_terminal() && pod.metadata.deletion_timestamp.is_none()).then(|| node.into())
}

fn preemption_policy(pod: &Pod) -> PreemptionPolicy {
    match pod.spec.preemption_policy.as_deref() {
        Some("Never") => PreemptionPolicy::Never,
        _ => PreemptionPolicy::PreemptLowerPriority,
    }
}

/// What decides whether, and in which order, the pod is a victim of preemption; `group` is the full name of its PodGroup of Kubernetes.
pub(super) fn importance(pod: &Pod, group: Option<Arc<str>>) -> Importance {
    let disruption = pod.status.condition("DisruptionTarget");
    let preempted = disruption
        .is_some_and(|condition| condition.status == "True" && condition.reason == PREEMPTION_BY_SCHEDULER);
    Importance {
        priority: pod.spec.priority.unwrap_or(0),
        started: pod.status.start_time,
        preemptable: marks::preemptable(&pod.metadata) == Some(true),
        deletion: match pod.metadata.deletion_timestamp {
            None => Deletion::None,
            Some(_) if preempted => Deletion::Preempted,
            Some(_) => Deletion::Requested,
        },
        preemption_policy: preemption_policy(pod),
        group,
    }
}

pub(super) fn stage(pod: &Pod) -> Stage {
    match pod.status.phase.as_str() {
        "Succeeded" | "Failed" => Stage::Ended,
        "" | "Pending" => Stage::Pending,
        _ => Stage::Running,
    }
}

pub(super) fn told(pod: &Pod) -> Option<String> {
    let scheduled = pod.status.condition("PodScheduled");
    let unschedulable =
        scheduled.filter(|condition| condition.status == "False" && condition.reason == "Unschedulable");
    unschedulable.map(|condition| condition.message.clone())
}

/// What the pod is to plugins. Too many demands on other pods are not kept: Berth does not place such a pod, and those of another scheduler's pod are
/// compared with no pod.
pub(super) fn footprint(
    pod: &Pod,
    resources: ResourceAmounts,
    too_many: Option<TooManyConstraints>,
) -> Footprint {
    if too_many.is_none() {
        return Footprint::of_pod(pod, resources);
    }
    let mut pod = pod.clone();
    pod.spec.affinity = Affinity::default();
    pod.spec.topology_spread_constraints = Vec::new();
    Footprint::of_pod(&pod, resources)
}

/// A pod with too many demands can't be placed.
pub(super) fn unless_too_many(claim: Claim, too_many: Option<TooManyConstraints>) -> Claim {
    match (claim, too_many) {
        (Claim::Place(_), Some(error)) => {
            Claim::unreadable(format!("Pod can't be placed: {}: {error}", error.field))
        }
        (claim, _) => claim,
    }
}

/// No constraint beside the cards and revocable zones, which kube-scheduler does not know: every taint is tolerated.
pub(super) fn unconstrained(pod: &Pod) -> Constraints {
    let any = Toleration { operator: Some("Exists".into()), ..Toleration::default() };
    Constraints { tolerations: vec![any], revocable: revocable(pod), ..Constraints::default() }
}

pub(super) fn constraints(pod: &Pod, footprint: &Footprint) -> Constraints {
    let affinity = pod.spec.affinity.node_affinity.clone().unwrap_or_default();
    Constraints {
        affinity: NodeAffinityTerms {
            selector: pod.spec.node_selector.clone().unwrap_or_default(),
            required: affinity.required,
            preferred: affinity.preferred,
        },
        tolerations: pod.spec.tolerations.clone(),
        exclusive: footprint.exclusive.clone(),
        features: Feature::needed(pod),
        revocable: revocable(pod),
        declared: None,
    }
}
