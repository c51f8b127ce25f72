//! Share pods without a scheduler that keeps the books of cards.

use kube::api::PostParams;
use serde_json::json;

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
