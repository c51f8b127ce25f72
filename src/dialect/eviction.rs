//! What a pod's annotations say of being moved: Berth's own, and those of the autoscalers that move pods too.
//!
//! Sources: cluster-autoscaler 1.34 `utils/drain/drain.go`, `simulator/drainability/rules/localstorage`; Karpenter v1 `pkg/apis/v1/labels.go`.

use crate::object::{Pod, Volume, volume::Medium};

/// Whether Berth may move the pod: `true` or `false`. Berth's own.
pub const MOVABLE: &str = "berth.dev/movable";
/// The same for the cluster-autoscaler.
pub const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";
/// The volumes whose data may be lost, with commas between their names.
pub const SAFE_VOLUMES: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes";
/// `true`: Karpenter keeps the pod where it is.
pub const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";

/// Whether the pod says that it may be moved, or that it must not; `None`: it says nothing. What can't be read is taken for a no.
pub fn is_movable(pod: &Pod) -> Option<bool> {
    let said = |key| pod.metadata.annotation(key);
    if let Some(own) = said(MOVABLE) {
        return Some(own == "true");
    }
    if said(DO_NOT_DISRUPT) == Some("true") {
        return Some(false);
    }
    match said(SAFE_TO_EVICT)? {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Whether the pod has data on its node that would be lost with it, as the cluster-autoscaler means it: a directory of the node, or one that lives as
/// long as the pod and is not in memory. A claim of volume that lives as long as the pod counts too.
pub fn has_local_data(pod: &Pod) -> bool {
    let safe = pod.metadata.annotation(SAFE_VOLUMES).unwrap_or_default();
    let is_safe = |volume: &Volume| safe.split(',').any(|name| name.trim() == volume.name);
    let is_local = |volume: &&Volume| {
        let directory = volume.empty_dir.as_ref().is_some_and(|directory| directory.medium == Medium::Node);
        directory || volume.host_path.is_some() || volume.ephemeral.is_some()
    };
    pod.spec.volumes.iter().filter(is_local).any(|volume| !is_safe(volume))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(annotations: &serde_json::Value, volumes: &serde_json::Value) -> Pod {
        serde_json::from_value(
            json!({"metadata": {"annotations": annotations}, "spec": {"volumes": volumes}}),
        )
        .unwrap()
    }

    #[test]
    fn berths_own_annotation_comes_before_those_of_autoscalers() {
        for (annotations, expected) in [
            (json!({}), None),
            (json!({MOVABLE: "false"}), Some(false)),
            (json!({MOVABLE: "true", SAFE_TO_EVICT: "false"}), Some(true)),
            (json!({MOVABLE: "no"}), Some(false)),
            (json!({SAFE_TO_EVICT: "true"}), Some(true)),
            (json!({SAFE_TO_EVICT: "false"}), Some(false)),
            (json!({SAFE_TO_EVICT: "maybe"}), None),
            (json!({DO_NOT_DISRUPT: "true", SAFE_TO_EVICT: "true"}), Some(false)),
            (json!({DO_NOT_DISRUPT: "false"}), None),
        ] {
            assert_eq!(is_movable(&pod(&annotations, &json!([]))), expected, "{annotations}");
        }
    }

    #[test]
    fn data_on_the_node_counts_unless_its_volume_is_said_to_be_safe() {
        let safe = json!({SAFE_VOLUMES: "scratch, cache"});
        for (annotations, volume, expected) in [
            (json!({}), json!({"name": "v", "emptyDir": {}}), true),
            (json!({}), json!({"name": "v", "emptyDir": {"medium": ""}}), true),
            (json!({}), json!({"name": "v", "emptyDir": {"medium": "Memory"}}), false),
            (json!({}), json!({"name": "v", "hostPath": {"path": "/data"}}), true),
            (json!({}), json!({"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}), true),
            (json!({}), json!({"name": "v", "persistentVolumeClaim": {"claimName": "c"}}), false),
            (safe.clone(), json!({"name": "cache", "emptyDir": {}}), false),
            (safe, json!({"name": "data", "emptyDir": {}}), true),
        ] {
            let volumes = json!([{"name": "token"}, volume]);
            assert_eq!(has_local_data(&pod(&annotations, &volumes)), expected, "{volumes}");
        }
    }
}
