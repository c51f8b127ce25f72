//! What is installed for a site's own names and scope: the webhook is called for them, and the policies act on them.

use berth::object;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::{
    webhooks::{Serving, world_with},
    world::{Changes, USER, World, parsed, plain_pod, refused},
};

const SETTINGS: &str = "\
schedulerName: gpu-scheduler
adoptSchedulers: [batch]
scope: opt-out
unmanagedPods: deny
dialects:
  hami:
    resourceCountName: example.com/share
    resourceMemoryName: example.com/memory
";

fn asking(name: &str, resource: &str, scheduler: Option<&str>) -> Value {
    let limits = json!({resource: "1"});
    let mut pod = plain_pod(name, json!({}));
    pod["spec"]["containers"][0]["resources"]["limits"] = limits;
    if let Some(scheduler) = scheduler {
        pod["spec"]["schedulerName"] = scheduler.into();
    }
    pod
}

async fn made(world: &World, namespace: &str, pod: Value) -> kube::Result<object::Pod> {
    let pod = world.pods(USER, namespace).create(&PostParams::default(), &parsed(pod)).await?;
    Ok(parsed(serde_json::to_value(pod).unwrap()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn own_names_and_everybody_in_unless_labelled() {
    let serving = Serving::with(SETTINGS).await;
    let probe = asking("probe", "example.com/share", None);
    let Some(world) = world_with(&serving, &probe, "gpu-scheduler").await else { return };

    // Every namespace comes in, for the resource of this name and for no other.
    for namespace in ["train", "other"] {
        let pod = made(&world, namespace, asking("share", "example.com/share", None)).await.unwrap();
        assert_eq!(pod.spec.scheduler_name.as_deref(), Some("gpu-scheduler"), "{namespace}");
        let pod =
            made(&world, namespace, asking("adopted", "example.com/share", Some("batch"))).await.unwrap();
        assert_eq!(pod.spec.scheduler_name.as_deref(), Some("gpu-scheduler"), "{namespace}");
        let pod = made(&world, namespace, asking("built-in", "nvidia.com/gpu", None)).await.unwrap();
        assert_eq!(pod.spec.scheduler_name.as_deref(), Some("default-scheduler"), "no share of ours");
    }
    // Memory alone is given its count under the site's name.
    let pod = made(&world, "other", asking("memory", "example.com/memory", None)).await.unwrap();
    assert!(pod.spec.containers[0].resources.limit("example.com/share").is_some(), "{pod:?}");

    // A labelled namespace and kube-system stay out: the webhook is not asked, `unmanagedPods` denies all the same.
    for namespace in ["quiet", "kube-system"] {
        let words = refused(made(&world, namespace, asking("share", "example.com/share", None)).await);
        let known =
            "no known scheduler of shares (gpu-scheduler, hami-scheduler, volcano, batch) will serve it";
        assert!(words.contains(known) && !words.contains("the webhook has not set its scheduler"), "{words}");
        made(&world, namespace, asking("known", "example.com/share", Some("batch"))).await.unwrap();
        made(&world, namespace, asking("built-in", "nvidia.com/gpu", None)).await.unwrap();
    }

    // With the webhook down only what names a share waits for it, and the backstop holds in every namespace.
    drop(serving);
    let words = refused(made(&world, "other", asking("late", "example.com/memory", None)).await);
    assert!(words.contains("failed calling webhook \"mutate.berth.dev\""), "{words}");
    made(&world, "other", asking("late", "nvidia.com/gpu", None)).await.unwrap();
    made(&world, "quiet", asking("late", "example.com/share", Some("gpu-scheduler"))).await.unwrap();
    made(&world, "kube-system", plain_pod("late", json!({}))).await.unwrap();
}

#[tokio::test]
async fn the_backstop_names_our_scheduler_and_holds_wherever_namespaces_come_in() {
    let Some(world) = World::start().await else { return };
    let settings = "schedulerName: gpu-scheduler\nscope: opt-out\ndialects: {hami: {resourceCountName: example.com/share}}\n";
    let changes = Changes { settings: Some(settings), ..Changes::default() };
    world.install(&changes, |kind| !kind.ends_with("WebhookConfiguration")).await;
    world.enforced().await;
    let words = refused(made(&world, "other", asking("p", "example.com/share", Some("unheard-of"))).await);
    assert!(words.contains("set spec.schedulerName to gpu-scheduler"), "{words}");
    let pod = asking("p", "example.com/share", Some("unheard-of"));
    made(&world, "quiet", pod).await.unwrap();
}

const VENDORS: &str = "\
unmanagedPods: deny
dialects:
  hami:
    enable-ascend: true
    enable-iluvatar: true
    cambricon: {}
    amd: {}
    biren: {}
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_vendor_that_is_served_by_settings_comes_in() {
    let serving = Serving::with(VENDORS).await;
    let probe = asking("probe", "birentech.com/gpu", None);
    let Some(world) = world_with(&serving, &probe, "berth").await else { return };
    for (at, resource) in [
        "hygon.com/dcunum",
        "amd.com/gpu",
        "cambricon.com/vmlu",
        "iluvatar.ai/BI-V100-vgpu",
        "huawei.com/Ascend310P",
    ]
    .into_iter()
    .enumerate()
    {
        let mut pod = asking(&format!("share-{at}"), resource, None);
        if resource == "cambricon.com/vmlu" {
            let limits = &mut pod["spec"]["containers"][0]["resources"]["limits"];
            limits["cambricon.com/mlu.smlu.vcore"] = "10".into();
            limits["cambricon.com/mlu.smlu.vmemory"] = "8".into();
        }
        let pod = made(&world, "train", pod).await.unwrap();
        assert_eq!(pod.spec.scheduler_name.as_deref(), Some("berth"), "{resource}");
        let words = refused(made(&world, "kube-system", asking("past", resource, None)).await);
        assert!(words.contains("no known scheduler of shares"), "{resource}: {words}");
    }
    let left = made(&world, "train", asking("left", "kunlunxin.com/vxpu", None)).await.unwrap();
    assert_eq!(left.spec.scheduler_name.as_deref(), Some("default-scheduler"));
}
