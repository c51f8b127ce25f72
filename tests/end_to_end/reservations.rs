//! Koordinator's Reservations: what one holds is kept for the pods that it is for.

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::{
    koordinator::{ALLOCATED, minors, whole},
    machines::koordinator_node,
    support::floor::Floor,
    world::{World, annotation, node_of, pod},
};

/// A Reservation of one GPU on this node for pods with the label `app: mine`.
fn reservation(name: &str, node: &str, closed: bool) -> DynamicObject {
    let resources = json!({"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": "80Gi", "koordinator.sh/gpu-memory-ratio": "100"});
    let devices = json!({"gpu": [{"minor": 0, "resources": resources}]}).to_string();
    let object = json!({
        "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Reservation",
        "metadata": {"name": name, "annotations": {ALLOCATED: devices}},
        "spec": {
            "template": {}, "allocateOnce": false, "unschedulable": closed,
            "owners": [{"labelSelector": {"matchLabels": {"app": "mine"}}}],
        },
        "status": {"phase": "Available", "nodeName": node, "allocatable": {"koordinator.sh/gpu": "100"}},
    });
    serde_json::from_value(object).unwrap()
}

pub(crate) async fn what_is_reserved_is_kept_for_its_owners(floor: Floor) {
    let nodes = vec![koordinator_node("gpu-1", 2, 0), koordinator_node("gpu-2", 1, 0)];
    let Some(mut world) = World::with_devices(floor, nodes).await else { return };
    let reservations = world.reservations(floor).await;
    let params = PostParams::default();
    let first = reservations.create(&params, &reservation("first", "gpu-1", false)).await.unwrap();
    reservations.create(&params, &reservation("second", "gpu-2", true)).await.unwrap();
    world.start_berth();
    let owner = |name: &str| {
        let mut pod = pod(name, &whole());
        pod["metadata"]["labels"]["app"] = "mine".into();
        pod
    };
    let used = |pod: &k8s_openapi::api::core::v1::Pod| -> Value {
        let key = "scheduling.koordinator.sh/reservation-allocated";
        serde_json::from_str(annotation(pod, key)).unwrap()
    };
    world.create(pod("other", &whole())).await;
    let other = world.running("other").await;
    assert_eq!((node_of(&other), minors(&other, "gpu")), ("gpu-1", vec![1]));
    world.create(pod("late", &whole())).await;
    world.unschedulable("late").await;
    world.create(owner("mine")).await;
    let mine = world.running("mine").await;
    assert_eq!((node_of(&mine), minors(&mine, "gpu")), ("gpu-1", vec![0]));
    assert_eq!(used(&mine), json!({"name": "first", "uid": first.metadata.uid}));

    // A pod that wants one Reservation waits until that takes pods.
    let mut wanting = owner("wanting");
    wanting["metadata"]["annotations"]["scheduling.koordinator.sh/reservation-affinity"] =
        json!({"name": "second"}).to_string().into();
    world.create(wanting).await;
    world.unschedulable("wanting").await;
    let open = Patch::Merge(json!({"spec": {"unschedulable": false}}));
    reservations.patch("second", &PatchParams::default(), &open).await.unwrap();
    let wanting = world.running("wanting").await;
    assert_eq!((node_of(&wanting), &used(&wanting)["name"]), ("gpu-2", &json!("second")));

    // What a pod leaves is the Reservation's again; what a Reservation leaves is the node's.
    world.delete_and_await(&["mine"]).await;
    world.create(owner("next")).await;
    assert_eq!(minors(&world.running("next").await, "gpu"), [0]);
    world.delete_and_await(&["next"]).await;
    reservations.delete("first", &DeleteParams::default()).await.unwrap();
    let late = world.running("late").await;
    assert_eq!((node_of(&late), minors(&late, "gpu")), ("gpu-1", vec![0]));
    world.agents_are_content();
}
