//! Changes to pods that are there: resizing, debugging, notes; with the webhook up and down.

use kube::api::{Patch, PostParams};
use serde_json::{Value, json};

use super::{
    webhooks::{Serving, world},
    world::{USER, World, annotate, parsed, patching, plain_pod, refused, share_pod},
};

fn sized(mut pod: Value) -> Value {
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "100m".into();
    pod
}

fn resources(section: &str, name: &str, amount: &str) -> Patch<Value> {
    let container = json!({"name": "main", "resources": {section: {name: amount}}});
    Patch::Strategic(json!({"spec": {"containers": [container]}}))
}

fn debug(container: &Value) -> Patch<Value> {
    let mut debug = json!({"name": "debug", "image": "none"});
    debug.as_object_mut().unwrap().extend(container.as_object().unwrap().clone());
    Patch::Strategic(json!({"spec": {"ephemeralContainers": [debug]}}))
}

async fn change(world: &World, part: &str, pod: &str, patch: &Patch<Value>) -> kube::Result<Value> {
    let changed = world.pods(USER, "train").patch_subresource(part, pod, &patching(), patch).await?;
    Ok(serde_json::to_value(changed).unwrap())
}

fn amount<'a>(pod: &'a Value, section: &str, name: &str) -> &'a Value {
    &pod["spec"]["containers"][0]["resources"][section][name]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resizing_and_debugging_never_change_a_share() {
    let serving = Serving::start().await;
    let Some(world) = world(&serving).await else { return };
    let pods = world.pods(USER, "train");
    pods.create(&PostParams::default(), &parsed(sized(share_pod("share", None)))).await.unwrap();
    pods.create(&PostParams::default(), &parsed(sized(plain_pod("plain", json!({}))))).await.unwrap();

    let resized = change(&world, "resize", "share", &resources("requests", "cpu", "200m")).await.unwrap();
    assert_eq!(amount(&resized, "requests", "cpu"), "200m");
    for (section, name) in
        [("limits", "nvidia.com/gpu"), ("limits", "nvidia.com/gpumem"), ("requests", "nvidia.com/gpu")]
    {
        for pod in ["share", "plain"] {
            let words = refused(change(&world, "resize", pod, &resources(section, name, "2")).await);
            assert!(words.contains("is invalid"), "the API server itself: {words}");
        }
    }
    let share = serde_json::to_value(pods.get("share").await.unwrap()).unwrap();
    assert_eq!(amount(&share, "limits", "nvidia.com/gpu"), "1");

    // An ephemeral container may have no resources at all; what it may have is judged.
    let share = json!({"resources": {"limits": {"nvidia.com/gpu": "1"}}});
    let words = refused(change(&world, "ephemeralcontainers", "share", &debug(&share)).await);
    assert!(words.contains("ephemeralContainers[0].resources"), "{words}");
    let privileged = json!({"securityContext": {"privileged": true}});
    let words = refused(change(&world, "ephemeralcontainers", "share", &debug(&privileged)).await);
    assert!(words.contains("spec.ephemeralContainers[0]") && words.contains("(privileged)"), "{words}");
    let sees_all = json!({"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]});
    let words = refused(change(&world, "ephemeralcontainers", "share", &debug(&sees_all)).await);
    assert!(words.contains("spec.ephemeralContainers[0]") && words.contains("(visible-devices)"), "{words}");
    change(&world, "ephemeralcontainers", "share", &debug(&json!({}))).await.unwrap();
    change(&world, "ephemeralcontainers", "plain", &debug(&privileged)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_webhook_down_only_what_rules_read_of_a_share_pod_waits() {
    let serving = Serving::start().await;
    let Some(world) = world(&serving).await else { return };
    let pods = world.pods(USER, "train");
    pods.create(&PostParams::default(), &parsed(sized(share_pod("share", None)))).await.unwrap();
    pods.create(&PostParams::default(), &parsed(sized(plain_pod("plain", json!({}))))).await.unwrap();
    let mut placed = sized(plain_pod("placed", json!({})));
    placed["spec"]["schedulerName"] = "berth".into();
    pods.create(&PostParams::default(), &parsed(placed)).await.unwrap();
    drop(serving);

    let down = "failed calling webhook \"update.berth.dev\"";
    let marks =
        json!({"volcano.sh/preemptable": "true", "hami.io/device-scoring-weights": "slot=1,core=1,memory=1"});
    for (key, value) in marks.as_object().unwrap() {
        let words = refused(pods.patch("share", &patching(), &annotate(key, value.clone())).await);
        assert!(words.contains(down), "{words}");
    }
    let words = refused(change(&world, "ephemeralcontainers", "share", &debug(&json!({}))).await);
    assert!(words.contains(down), "{words}");

    // What rules do not read, of any pod; and everything of a pod that Berth has no say in.
    for pod in ["share", "plain"] {
        pods.patch(pod, &patching(), &annotate("note", json!("x"))).await.unwrap();
        let label = Patch::Merge(json!({"metadata": {"labels": {"app": "x"}}}));
        pods.patch(pod, &patching(), &label).await.unwrap();
        let image = Patch::Strategic(json!({"spec": {"containers": [{"name": "main", "image": "other"}]}}));
        pods.patch(pod, &patching(), &image).await.unwrap();
    }
    let weights = annotate("hami.io/device-scoring-weights", json!("nonsense"));
    pods.patch("plain", &patching(), &weights).await.unwrap();
    change(&world, "resize", "plain", &resources("requests", "cpu", "200m")).await.unwrap();
    for pod in ["plain", "placed"] {
        change(&world, "ephemeralcontainers", pod, &debug(&json!({}))).await.unwrap();
    }
    // A share does not change by a resize, which the API server sees to.
    change(&world, "resize", "share", &resources("requests", "cpu", "200m")).await.unwrap();
}
