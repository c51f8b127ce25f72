//! Which pods may be moved, and what the pods ask for that their controllers create in their place.

use super::{Reader, time_division::readiness};
use crate::{
    dialect::{eviction, hami},
    object::{Pod, PodStatus, metadata::Controller},
    scheduling::{
        PodInfo, Stage,
        model::pod::{Binding, Placer},
        plan::moves::{MovablePod, MovablePods, Unmovable},
    },
};

/// The namespace of the system, whose pods the cluster-autoscaler keeps too.
const SYSTEM: &str = "kube-system";

impl Reader {
    /// The pods that hold cards, by whether they may be moved.
    pub fn movable_pods<'a>(&self, pods: impl IntoIterator<Item = &'a Pod>) -> MovablePods {
        let mut found = MovablePods::default();
        for pod in pods {
            let (info, _) = self.pod(pod);
            if !holds_cards(&info) {
                continue;
            }
            let uid = info.key.uid.clone();
            match self.movable(pod, info) {
                Ok(movable) => drop(found.movable.insert(uid, movable)),
                Err(reason) => drop(found.unmovable.insert(uid, reason)),
            }
        }
        found
    }

    fn movable(&self, pod: &Pod, info: PodInfo) -> Result<MovablePod, Unmovable> {
        if info.placer != Placer::Berth {
            return Err(Unmovable::OtherScheduler);
        }
        let said = eviction::is_movable(pod);
        if said == Some(false) || pod.metadata.namespace == SYSTEM {
            return Err(Unmovable::Refused);
        }
        let controller = pod.metadata.controller.as_ref().ok_or(Unmovable::NoController)?;
        if !creates_again(controller, said == Some(true)) {
            return Err(Unmovable::Controller);
        }
        if said != Some(true) && eviction::has_local_data(pod) {
            return Err(Unmovable::LocalData);
        }
        if !pod.spec.resource_claims.is_empty() || pod.status.extended_resource_claim_status.is_some() {
            return Err(Unmovable::Claims);
        }
        if info.footprint.reservation.is_some() {
            return Err(Unmovable::Reservation);
        }
        let demand = self.pod(&successor(pod)).0.demand().ok_or(Unmovable::Unreadable)?;
        Ok(MovablePod { info, demand, readiness: readiness(pod) })
    }
}

fn holds_cards(info: &PodInfo) -> bool {
    let bound = info.holding.as_ref().filter(|holding| holding.binding == Binding::Bound);
    info.stage != Stage::Ended && bound.is_some_and(|holding| !holding.allocations.is_empty())
}

/// Whether the controller creates an evicted pod again, with the same spec and for any node. Those of other kinds may: if the pod says that it may be
/// moved, it knows. A pod that a kubelet or a DaemonSet runs is for its node alone.
fn creates_again(controller: &Controller, is_said: bool) -> bool {
    let group = controller.api_version().split_once('/').map_or("", |(group, _)| group);
    match (group, controller.kind()) {
        ("apps", "ReplicaSet" | "StatefulSet") | ("", "ReplicationController") => true,
        ("apps", "DaemonSet") | ("", "Node") => false,
        _ => is_said,
    }
}

/// The pod as its controller would create it in its place: without a node, and without what was written to it since.
fn successor(pod: &Pod) -> Pod {
    let mut successor = pod.clone();
    successor.spec.node_name = None;
    successor.status = PodStatus::default();
    successor.metadata.deletion_timestamp = None;
    if let Some(labels) = &mut successor.metadata.labels {
        labels.remove(hami::names::NODE);
    }
    successor
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::dialect::{
        Dialects,
        hami::{Hami, HamiSettings},
    };

    /// A running pod of a ReplicaSet with half of a card, with these fields in place of its own.
    fn pod(change: &[(&str, Value)]) -> Pod {
        let mut pod = json!({
            "metadata": {
                "name": "p", "namespace": "team", "uid": "uid",
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": true}],
                "labels": {"app": "web", "hami.io/vgpu-node": "n1"},
                "annotations": {
                    "hami.io/vgpu-node": "n1", "hami.io/vgpu-time": "1", "hami.io/bind-phase": "success",
                    "hami.io/vgpu-devices-allocated": "GPU-1,NVIDIA,1000,50:;",
                },
            },
            "spec": {
                "nodeName": "n1", "schedulerName": "berth", "volumes": [],
                "containers": [{"name": "main", "resources": {"limits": {
                    "nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000", "nvidia.com/gpucores": "50",
                }}}],
            },
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        });
        for (pointer, value) in change {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            pod.pointer_mut(parent).unwrap()[key] = value.clone();
        }
        serde_json::from_value(pod).unwrap()
    }

    fn reader() -> Reader {
        let hami = Hami::new(HamiSettings::upstream());
        Reader::new(Dialects::new(vec![Arc::new(hami)]), "berth".to_owned())
    }

    fn read(pod: &Pod) -> MovablePods {
        reader().movable_pods([pod])
    }

    fn reason(change: &[(&str, Value)]) -> Option<Unmovable> {
        read(&pod(change)).unmovable.into_values().next()
    }

    fn owner(api_version: &str, kind: &str) -> (&'static str, Value) {
        let owner =
            json!([{"apiVersion": api_version, "kind": kind, "name": "n1", "uid": "o", "controller": true}]);
        ("/metadata/ownerReferences", owner)
    }

    #[test]
    fn the_successor_asks_for_what_the_pod_asked_for() {
        let mut waiting = pod(&[("/spec/nodeName", Value::Null), ("/metadata/annotations", json!({}))]);
        waiting.status = PodStatus::default();
        waiting.metadata.labels.as_mut().unwrap().remove("hami.io/vgpu-node");
        let asked = reader().pod(&waiting).0.demand().unwrap();
        let movable = read(&pod(&[])).movable.into_values().next().unwrap();
        assert_eq!((&movable.demand.ask, &movable.demand.footprint), (&asked.ask, &asked.footprint));
        assert_eq!(movable.demand.nominated, None);
    }

    #[test]
    fn pods_stay_that_nothing_would_create_again_elsewhere() {
        let with = |change: &[(&str, Value)]| {
            let mut said = change.to_vec();
            said.push(("/metadata/annotations", json!({"berth.dev/movable": "true", "hami.io/vgpu-devices-allocated": "GPU-1,NVIDIA,1000,50:;"})));
            reason(&said)
        };
        assert_eq!(reason(&[]), None);
        assert_eq!(reason(&[("/metadata/ownerReferences", json!([]))]), Some(Unmovable::NoController));
        assert_eq!(with(&[("/metadata/ownerReferences", json!([]))]), Some(Unmovable::NoController));
        for kept in [owner("apps/v1", "DaemonSet"), owner("v1", "Node")] {
            assert_eq!(
                (reason(std::slice::from_ref(&kept)), with(std::slice::from_ref(&kept))),
                (Some(Unmovable::Controller), Some(Unmovable::Controller))
            );
        }
        for other in [owner("batch/v1", "Job"), owner("ray.io/v1", "RayCluster")] {
            let other = std::slice::from_ref(&other);
            assert_eq!((reason(other), with(other)), (Some(Unmovable::Controller), None));
        }
        assert_eq!(reason(&[owner("apps/v1", "StatefulSet")]), None);
    }

    #[test]
    fn pods_stay_by_their_data_their_scheduler_and_their_word() {
        let scratch = ("/spec/volumes", json!([{"name": "scratch", "emptyDir": {}}]));
        assert_eq!(reason(&[scratch]), Some(Unmovable::LocalData));
        assert_eq!(reason(&[("/spec/schedulerName", json!("volcano"))]), Some(Unmovable::OtherScheduler));
        assert_eq!(reason(&[("/metadata/namespace", json!("kube-system"))]), Some(Unmovable::Refused));
        let claims = ("/spec/resourceClaims", json!([{"name": "c", "resourceClaimName": "c"}]));
        assert_eq!(reason(&[claims]), Some(Unmovable::Claims));
        let mut kept = pod(&[]);
        kept.metadata
            .annotations
            .as_mut()
            .unwrap()
            .insert("berth.dev/movable".to_owned(), "false".to_owned());
        assert_eq!(read(&kept).unmovable.into_values().next(), Some(Unmovable::Refused));
    }

    #[test]
    fn pods_without_cards_and_pods_that_wait_are_neither() {
        for change in [
            ("/spec/nodeName", Value::Null),
            ("/metadata/annotations", json!({})),
            ("/status/phase", json!("Succeeded")),
        ] {
            let found = read(&pod(&[change]));
            assert!(found.movable.is_empty() && found.unmovable.is_empty(), "{found:?}");
        }
    }
}
