//! Share pods without a scheduler that keeps the books of cards.

use kube::api::PostParams;
use serde_json::{Value, json};

use super::world::{Changes, USER, World, parsed, plain_pod, refused, share_pod};

#[tokio::test]
async fn a_share_pod_that_came_past_the_webhook_is_refused_in_opted_in_namespaces() {
    let Some(world) = World::start().await else { return };
    world.install(&Changes::default(), |kind| !kind.ends_with("WebhookConfiguration")).await;
    world.enforced().await;
    let opted_in = world.pods(USER, "train");
    let create = async |pod| opted_in.create(&PostParams::default(), &parsed(pod)).await;
    for scheduler in [None, Some("default-scheduler"), Some("unheard-of")] {
        let words = refused(create(share_pod("p", scheduler)).await);
        assert!(words.contains("the webhook has not set its scheduler"), "{words}");
    }
    let mut opted_out = share_pod("p", None);
    opted_out["metadata"]["labels"] = json!({"berth.dev/admission": "ignore"});
    assert!(refused(create(opted_out).await).contains("do not opt out"), "protection has no opt-out");
    for scheduler in ["berth", "hami-scheduler", "volcano"] {
        create(share_pod(&format!("of-{scheduler}"), Some(scheduler))).await.unwrap();
    }
    create(plain_pod("ordinary", json!({}))).await.unwrap();
    let mut nothing = plain_pod("nothing", json!({}));
    let none = json!({"nvidia.com/gpu": "0Ki", "volcano.sh/vgpu-number": "0"});
    nothing["spec"]["containers"][0]["resources"] = json!({"limits": none});
    create(nothing).await.expect("an amount of 0 requests no share");
    // Elsewhere it is a matter of `unmanagedPods`, which warns.
    let elsewhere = world.pods(USER, "other");
    elsewhere.create(&PostParams::default(), &parsed(share_pod("p", None))).await.unwrap();
}

#[tokio::test]
async fn unmanaged_share_pods_are_refused_everywhere_where_that_is_set() {
    let Some(world) = World::start().await else { return };
    let changes = Changes { settings: Some("unmanagedPods: deny"), ..Changes::default() };
    world.install(&changes, |kind| !kind.ends_with("WebhookConfiguration")).await;
    world.enforced().await;
    let pods = world.pods(USER, "other");
    let words = refused(pods.create(&PostParams::default(), &parsed(share_pod("p", None))).await);
    assert!(words.contains("no known scheduler of shares"), "{words}");
    pods.create(&PostParams::default(), &parsed(share_pod("p", Some("volcano")))).await.unwrap();
    pods.create(&PostParams::default(), &parsed(plain_pod("ordinary", json!({})))).await.unwrap();
}

/// A pod that asks for these amounts, with this scheduler.
fn asking(name: &str, limits: &Value, scheduler: &str) -> Value {
    let mut pod = plain_pod(name, json!({}));
    pod["spec"]["schedulerName"] = scheduler.into();
    pod["spec"]["containers"][0]["resources"] = json!({"limits": limits});
    pod
}

#[tokio::test]
async fn devices_by_koordinators_names_need_berths_or_koordinators_scheduler() {
    let Some(world) = World::start().await else { return };
    let changes = Changes { settings: Some("unmanagedPods: deny"), ..Changes::default() };
    world.install(&changes, |kind| !kind.ends_with("WebhookConfiguration")).await;
    world.enforced().await;
    let both = json!({"koordinator.sh/gpu": "1", "nvidia.com/gpu": "1"});
    for namespace in ["train", "other"] {
        let pods = world.pods(USER, namespace);
        let create = async |pod| pods.create(&PostParams::default(), &parsed(pod)).await;
        for (at, resource) in ["gpu", "gpu-core", "gpu.shared", "rdma", "fpga"].iter().enumerate() {
            let limits = json!({format!("koordinator.sh/{resource}"): "1"});
            for scheduler in ["default-scheduler", "unheard-of"] {
                refused(create(asking("p", &limits, scheduler)).await);
            }
            for scheduler in ["berth", "koord-scheduler"] {
                create(asking(&format!("{scheduler}-{at}"), &limits, scheduler)).await.unwrap();
            }
        }
        // Koordinator's scheduler keeps no account of other plugins' cards.
        refused(create(asking("p", &both, "koord-scheduler")).await);
        refused(create(share_pod("p", Some("koord-scheduler"))).await);
        create(asking("nothing", &json!({"koordinator.sh/gpu": "0"}), "default-scheduler")).await.unwrap();
    }
}

#[tokio::test]
async fn without_koordinators_dialect_its_pods_are_none_of_the_policies_business() {
    let Some(world) = World::start().await else { return };
    let settings = "{unmanagedPods: deny, dialects: {koordinator: {enabled: false}}}";
    let changes = Changes { settings: Some(settings), ..Changes::default() };
    world.install(&changes, |kind| !kind.ends_with("WebhookConfiguration")).await;
    world.enforced().await;
    for namespace in ["train", "other"] {
        let pods = world.pods(USER, namespace);
        let pod = asking("p", &json!({"koordinator.sh/gpu": "1"}), "default-scheduler");
        pods.create(&PostParams::default(), &parsed(pod)).await.unwrap();
        refused(pods.create(&PostParams::default(), &parsed(share_pod("q", None))).await);
    }
}
