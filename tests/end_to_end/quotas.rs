//! Quotas of shares and groups of pods: what admission denies for them, and what the binder lets wait.

use std::time::Duration;

use k8s_openapi::api::core::v1 as core;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    groups::VOLCANO,
    machines::hami_node,
    support::floor::Floor,
    world::{World, phase, pod},
};

/// After this time what should have become known has not.
const LIMIT: Duration = Duration::from_mins(1);

fn share(name: &str, memory: &str) -> Value {
    pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory}))
}

pub(crate) async fn bound(world: &World, name: &str, hard: Value) {
    let quotas: Api<core::ResourceQuota> = Api::default_namespaced(world.cluster.client.clone());
    let quota = json!({"metadata": {"name": name}, "spec": {"hard": hard}});
    quotas.create(&PostParams::default(), &serde_json::from_value(quota).unwrap()).await.unwrap();
}

async fn change(world: &World, name: &str, hard: Value) {
    let quotas: Api<core::ResourceQuota> = Api::default_namespaced(world.cluster.client.clone());
    let patch = Patch::Merge(json!({"spec": {"hard": hard}}));
    quotas.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

/// The denial of this pod, once it is denied: what the rules read is followed by a watch of its own.
async fn denial(world: &World, pod: Value) -> String {
    let pod: core::Pod = serde_json::from_value(pod).unwrap();
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let mut again = tokio::time::interval(Duration::from_millis(50));
    let denied = async {
        loop {
            again.tick().await;
            match world.pods().create(&dry_run, &pod).await {
                Err(kube::Error::Api(status)) => return status.message.clone(),
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    tokio::time::timeout(LIMIT, denied).await.expect("the pod is denied in time")
}

pub(crate) async fn a_pod_beyond_the_quota_waits_and_goes_when_another_ends(floor: Floor) {
    let Some(mut world) = World::without_berth(floor, vec![hami_node("gpu-1", 2)]).await else { return };
    bound(&world, "gpus", json!({"limits.nvidia.com/gpumem": "10k"})).await;
    world.start_berth();
    world.create(share("first", "6000")).await;
    world.running("first").await;
    world.create(share("second", "6000")).await;
    let over = "exceeded quota: gpus, requested: limits.nvidia.com/gpumem=6000, used: \
                limits.nvidia.com/gpumem=6000, limited: limits.nvidia.com/gpumem=10000";
    assert_eq!(world.unschedulable("second").await, over);
    world.create(share("small", "4000")).await;
    world.running("small").await;
    world.delete("small").await;
    world.delete("first").await;
    world.running("second").await;
    // A quota that shrinks takes nothing away, and one that grows lets in who waited.
    change(&world, "gpus", json!({"limits.nvidia.com/gpumem": "1k"})).await;
    world.create(share("third", "1000")).await;
    assert!(world.unschedulable("third").await.contains("limited: limits.nvidia.com/gpumem=1000"));
    assert_eq!(phase(&world.running("second").await), "Running");
    change(&world, "gpus", json!({"limits.nvidia.com/gpumem": "7000"})).await;
    world.running("third").await;
    world.agents_are_content();
}

pub(crate) async fn what_exceeds_the_quota_is_denied_before_a_pod_exists(floor: Floor) {
    let Some(world) = World::with_webhook(floor, vec![hami_node("gpu-1", 2)], json!({})).await else {
        return;
    };
    bound(&world, "gpus", json!({"limits.nvidia.com/gpumem": "10000"})).await;
    let never = denial(&world, share("never", "12000")).await;
    assert!(never.contains("needs 12000 of nvidia.com/gpumem"), "{never}");
    assert!(never.contains("allows 10000, of which 0 are used"), "{never}");
    world.create(share("first", "6000")).await;
    world.running("first").await;
    let second = denial(&world, share("second", "6000")).await;
    // Who holds it is named once the binder has found it out.
    let left = ["", "; held by first (6000)"]
        .map(|held| format!("of which 6000 are used: 4000 are left{held} (quota)"));
    assert!(left.iter().any(|left| second.contains(left)), "{second}");
    world.create(share("small", "4000")).await;
    world.running("small").await;
    world.agents_are_content();
}

/// What the quota's annotation says is used, once that is so.
async fn stated(world: &World, name: &str, wanted: &str) {
    let quotas: Api<core::ResourceQuota> = Api::default_namespaced(world.cluster.client.clone());
    let mut again = tokio::time::interval(Duration::from_millis(50));
    let mut last = None;
    let found = async {
        loop {
            again.tick().await;
            let quota = quotas.get(name).await.unwrap();
            last = quota.metadata.annotations.and_then(|mut all| all.remove("berth.dev/used"));
            if last.as_deref() == Some(wanted) {
                return;
            }
        }
    };
    let in_time = tokio::time::timeout(LIMIT, found).await.is_ok();
    assert!(in_time, "the annotation of {name} is {last:?} instead of {wanted}");
}

pub(crate) async fn what_is_used_of_a_quota_stands_in_it_and_a_denial_names_who_holds_it(floor: Floor) {
    let Some(world) = World::with_webhook(floor, vec![hami_node("gpu-1", 2)], json!({})).await else {
        return;
    };
    bound(&world, "gpus", json!({"limits.nvidia.com/gpumem": "10000", "requests.cpu": "100"})).await;
    stated(&world, "gpus", r#"{"limits.nvidia.com/gpumem":"0"}"#).await;
    world.create(share("large", "6000")).await;
    world.running("large").await;
    world.create(share("small", "1000")).await;
    world.running("small").await;
    stated(&world, "gpus", r#"{"limits.nvidia.com/gpumem":"7000"}"#).await;
    let held = "of which 7000 are used: 3000 are left; held by large (6000), small (1000) (quota)";
    let mut message = denial(&world, share("next", "6000")).await;
    let mut again = tokio::time::interval(Duration::from_millis(50));
    let named = async {
        while !message.contains(held) {
            again.tick().await;
            message = denial(&world, share("next", "6000")).await;
        }
    };
    let in_time = tokio::time::timeout(LIMIT, named).await.is_ok();
    assert!(in_time, "{message}");
    // What Berth has written wakes no pod and changes no limit.
    world.delete("large").await;
    stated(&world, "gpus", r#"{"limits.nvidia.com/gpumem":"1000"}"#).await;
    world.create(share("next", "6000")).await;
    world.running("next").await;
    world.agents_are_content();
}

pub(crate) async fn a_pod_and_its_group_must_not_contradict_each_other(floor: Floor) {
    let Some(world) = World::with_webhook(floor, vec![hami_node("gpu-1", 1)], json!({})).await else {
        return;
    };
    let api = world.serve_groups(floor, VOLCANO).await;
    let group = json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "gang", "annotations": {"volcano.sh/preemptable": "true"}},
    });
    api.create(&PostParams::default(), &serde_json::from_value(group).unwrap()).await.unwrap();
    let mut member = share("member", "1000");
    member["metadata"]["annotations"] =
        json!({"volcano.sh/preemptable": "false", "scheduling.k8s.io/group-name": "gang"});
    let message = denial(&world, member.clone()).await;
    assert!(message.contains("the pod says false and its PodGroup gang says true"), "{message}");
    member["metadata"]["annotations"]["volcano.sh/preemptable"] = json!("true");
    world.create(member).await;
    world.running("member").await;
    world.agents_are_content();
}
