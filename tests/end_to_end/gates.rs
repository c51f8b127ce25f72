//! Pods that are held back by a scheduling gate, as Kueue holds pods of its queues back until it admits them.

use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::{
    machines::hami_node,
    support::floor::Floor,
    world::{World, annotation, node_of, pod},
};

/// The gate that Kueue's webhook gives a plain pod of a queue (kueue `pkg/controller/jobs/pod/constants/constants.go`).
const GATE: &str = "kueue.x-k8s.io/admission";

pub(crate) async fn a_gated_pod_holds_nothing_and_is_placed_once_its_gate_is_removed(floor: Floor) {
    let Some(world) = World::start(floor, vec![hami_node("gpu-1", 1)]).await else { return };
    let whole_card = json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "100"});
    let mut gated = pod("gated", &whole_card);
    gated["metadata"]["labels"] = json!({"kueue.x-k8s.io/queue-name": "gpu"});
    gated["spec"]["schedulingGates"] = json!([{"name": GATE}]);
    world.create(gated).await;
    // Created later, it has the card: the gated pod does not stand before it.
    world.create(pod("next", &whole_card)).await;
    world.running("next").await;
    let waiting = world.pods().get("gated").await.unwrap();
    assert_eq!(waiting.spec.as_ref().unwrap().node_name, None);
    assert_eq!(waiting.metadata.annotations, None, "a gated pod is given no cards");
    world.delete("next").await;

    let admitted = Patch::Merge(json!({"spec": {"schedulingGates": []}}));
    world.pods().patch("gated", &PatchParams::default(), &admitted).await.unwrap();
    let placed = world.running("gated").await;
    assert_eq!(node_of(&placed), "gpu-1");
    assert!(annotation(&placed, "hami.io/vgpu-devices-allocated").contains("GPU-gpu-1-0"));
    world.agents_are_content();
}
