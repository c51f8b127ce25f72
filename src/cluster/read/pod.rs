//! What of a pod is read without a dialect: how far it is, what it was told, and what it demands of a node beside cards.

use super::time_division::revocable;
use crate::{
    object::{Pod, Toleration},
    scheduling::{
        Constraints, Stage,
        footprint::Footprint,
        node::NodeName,
        plugin::{node_affinity::NodeAffinity, node_declared_features::Feature},
    },
};

/// The node that is kept for a pod that has not ended.
pub(super) fn nominated(pod: &Pod) -> Option<NodeName> {
    let node = pod.status.nominated_node_name.as_deref().filter(|node| !node.is_empty())?;
    (!pod.is_terminal()).then(|| node.into())
}

pub(super) fn stage(pod: &Pod) -> Stage {
    match pod.status.phase.as_str() {
        "Succeeded" | "Failed" => Stage::Ended,
        "" | "Pending" => Stage::Pending,
        _ => Stage::Running,
    }
}

pub(super) fn told(pod: &Pod) -> Option<String> {
    let scheduled = pod.status.conditions.iter().find(|condition| condition.kind == "PodScheduled");
    let unschedulable =
        scheduled.filter(|condition| condition.status == "False" && condition.reason == "Unschedulable");
    unschedulable.map(|condition| condition.message.clone())
}

/// No constraint beside the cards and revocable zones, which kube-scheduler does not know: every taint is tolerated.
pub(super) fn unconstrained(pod: &Pod) -> Constraints {
    let any = Toleration { operator: Some("Exists".into()), ..Toleration::default() };
    Constraints { tolerations: vec![any], revocable: revocable(pod), ..Constraints::default() }
}

pub(super) fn constraints(pod: &Pod, footprint: &Footprint) -> Constraints {
    let affinity = pod.spec.affinity.node_affinity.clone().unwrap_or_default();
    Constraints {
        affinity: NodeAffinity {
            selector: pod.spec.node_selector.clone().unwrap_or_default(),
            required: affinity.required,
            preferred: affinity.preferred,
        },
        tolerations: pod.spec.tolerations.clone(),
        exclusive: footprint.exclusive.clone(),
        features: Feature::needed(pod),
        revocable: revocable(pod),
        unserved: pod.spec.unserved_constraints().map(str::to_owned).collect(),
    }
}
