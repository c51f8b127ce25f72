//! Assignments, locks and lists of cards: who may write them, on each path, and what nobody is kept from.

use k8s_openapi::api::core::v1::Node;
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

use super::world::{
    AGENT, BINDER, Changes, KUBELET, NAMESPACE_ADMIN, USER, World, annotate, parsed, patching, plain_pod,
    refused,
};

const ASSIGNMENT_KEYS: [&str; 12] = [
    "hami.io/vgpu-devices-allocated",
    "hami.io/bind-phase",
    "volcano.sh/vgpu-ids-new",
    "volcano.sh/gpu-index",
    "predicate-time",
    "hami.io/dcu-devices-to-allocate",
    "hami.io/Ascend910B3-devices-allocated",
    "CAMBRICON_DSMLU_PROFILE",
    "assigned.berth.dev/mig",
    "scheduling.koordinator.sh/device-allocated",
    "scheduling.koordinator.sh/reservation-allocated",
    "scheduling.koordinator.sh/gpu-minors",
];

const NODE_KEYS: [&str; 9] = [
    "hami.io/mutex.lock",
    "hami.io/node-nvidia-register",
    "hami.io/node-dcu-register",
    "hami-vnpu-core",
    "cambricon.com/dsmlu.lock",
    "hamivgpu",
    "gpu",
    "volcano.sh/node-vgpu-register",
    "assigned.berth.dev/node",
];

const WORDS: &str = "may not write ";

fn binding(pod: &str, annotations: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": pod, "annotations": annotations},
        "target": {"kind": "Node", "name": "n1"},
    })
}

async fn world() -> Option<World> {
    let world = World::start().await?;
    let deny = Changes { settings: Some("protection: deny"), ..Changes::default() };
    world.install(&deny, |kind| !kind.ends_with("WebhookConfiguration")).await;
    world.enforced().await;
    let nodes: Api<Node> = Api::all(world.cluster.client.clone());
    nodes.create(&PostParams::default(), &parsed(json!({"metadata": {"name": "n1"}}))).await.unwrap();
    Some(world)
}

#[tokio::test]
async fn assignments_are_written_by_writers_alone_on_every_path() {
    let Some(world) = world().await else { return };
    let admin = world.pods("admin", "other");
    for name in ["p", "q", "r"] {
        let pod = plain_pod(name, json!({"kept": "1"}));
        admin.create(&PostParams::default(), &parsed(pod)).await.unwrap();
    }
    for user in [USER, NAMESPACE_ADMIN, KUBELET] {
        let pods = world.pods(user, "other");
        for key in ASSIGNMENT_KEYS {
            let forged = plain_pod("forged", json!({key: "x"}));
            let words = refused(pods.create(&PostParams::default(), &parsed(forged)).await);
            assert!(words.contains(&format!("{WORDS}{key}")), "{user}: {words}");
            let words = refused(pods.patch("p", &patching(), &annotate(key, json!("x"))).await);
            assert!(words.contains(&format!("{WORDS}{key}")), "{user}: {words}");
            let words = refused(pods.patch_status("p", &patching(), &annotate(key, json!("x"))).await);
            assert!(words.contains(&format!("{WORDS}{key}")), "{user} by status: {words}");
        }
        let label = kube::api::Patch::Merge(json!({"metadata": {"labels": {"hami.io/vgpu-node": "n1"}}}));
        assert!(refused(pods.patch("p", &patching(), &label).await).contains("hami.io/vgpu-node"));
    }
    bindings(&world).await;
    // What a writer wrote is not taken away either.
    let agent = world.pods(AGENT, "other");
    agent.patch("p", &patching(), &annotate("hami.io/bind-phase", json!("success"))).await.unwrap();
    let words = refused(
        world.pods(USER, "other").patch("p", &patching(), &annotate("hami.io/bind-phase", Value::Null)).await,
    );
    assert!(words.contains("hami.io/bind-phase"), "{words}");
}

/// A namespace's admin may bind, and not with an assignment; the binder with one.
async fn bindings(world: &World) {
    let forged = json!({"volcano.sh/vgpu-ids-new": "x"});
    let boss = world.pods(NAMESPACE_ADMIN, "other");
    let body = binding("p", &forged);
    let words = refused(bind(&boss, "p", &body).await);
    assert!(words.contains("volcano.sh/vgpu-ids-new"), "{words}");
    let legacy = http::Request::post("/api/v1/namespaces/other/bindings")
        .header("content-type", "application/json")
        .body(serde_json::to_vec(&body).unwrap())
        .unwrap();
    let words = refused(world.cluster.client_of(NAMESPACE_ADMIN).request_text(legacy).await);
    assert!(words.contains("volcano.sh/vgpu-ids-new"), "{words}");
    bind(&boss, "q", &binding("q", &json!({"note": "mine"}))).await.unwrap();
    bind(&world.pods(BINDER, "other"), "r", &binding("r", &forged)).await.unwrap();
    let bound = world.pods("admin", "other").get("r").await.unwrap();
    assert_eq!(bound.metadata.annotations.unwrap()["volcano.sh/vgpu-ids-new"], "x");
}

async fn bind(
    pods: &Api<k8s_openapi::api::core::v1::Pod>,
    name: &str,
    binding: &Value,
) -> kube::Result<kube::core::Status> {
    pods.create_subresource("binding", name, &PostParams::default(), binding).await
}

#[tokio::test]
async fn locks_and_lists_of_cards_are_written_by_writers_alone() {
    let Some(world) = world().await else { return };
    for key in NODE_KEYS {
        let nodes = world.nodes(KUBELET);
        let words = refused(nodes.patch("n1", &patching(), &annotate(key, json!("x"))).await);
        assert!(words.contains(&format!("{WORDS}{key}")), "{words}");
        let words = refused(nodes.patch_status("n1", &patching(), &annotate(key, json!("x"))).await);
        assert!(words.contains(&format!("{WORDS}{key}")), "by status: {words}");
        world.nodes(AGENT).patch("n1", &patching(), &annotate(key, json!("x"))).await.unwrap();
        let words = refused(nodes.patch("n1", &patching(), &annotate(key, Value::Null)).await);
        assert!(words.contains(key), "{words}");
        world.nodes(BINDER).patch("n1", &patching(), &annotate(key, Value::Null)).await.unwrap();
    }
}

#[tokio::test]
async fn what_is_not_protected_goes_its_way() {
    let Some(world) = world().await else { return };
    let kubelet = world.nodes(KUBELET);
    world
        .nodes(AGENT)
        .patch("n1", &patching(), &annotate("hami.io/mutex.lock", json!("held")))
        .await
        .unwrap();
    let heartbeat = kube::api::Patch::Merge(json!({"status": {"capacity": {"cpu": "8"}}}));
    kubelet.patch_status("n1", &patching(), &heartbeat).await.unwrap();
    kubelet.patch("n1", &patching(), &annotate("hami.io/device-cordon", json!("GPU-1"))).await.unwrap();
    let pods = world.pods(USER, "other");
    let assigned = plain_pod("p", json!({"hami.io/vgpu-node": "n1", "mine": "1"}));
    world.pods(AGENT, "other").create(&PostParams::default(), &parsed(assigned)).await.unwrap();
    // An assigned pod's other fields stay its owner's.
    pods.patch("p", &patching(), &annotate("mine", json!("2"))).await.unwrap();
    let finalizers = |list: Value| kube::api::Patch::Merge(json!({"metadata": {"finalizers": list}}));
    pods.patch("p", &patching(), &finalizers(json!(["example.com/wait"]))).await.unwrap();
    pods.patch("p", &patching(), &finalizers(json!([]))).await.unwrap();
    let phase = kube::api::Patch::Merge(json!({"status": {"phase": "Running"}}));
    world.pods(KUBELET, "other").patch_status("p", &patching(), &phase).await.unwrap();
    pods.create(
        &PostParams::default(),
        &parsed(plain_pod("ordinary", json!({"volcano.sh/vgpu-mode": "mig"}))),
    )
    .await
    .unwrap();
    let now = kube::api::DeleteParams::default().grace_period(0);
    pods.delete("p", &now).await.unwrap();
}
