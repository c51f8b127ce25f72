//! Device plugins of vendors that serve one pod at a time, on nodes of Koordinator's.

#![allow(clippy::disallowed_methods, reason = "a lock says since when it is held")]

use berth::config::Config;
use berth_sandbox::agent::{Answer, Behaviour, node::Node, plugin::Spelling};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1 as core;
use serde_json::{Value, json};

use crate::{
    machines::{koordinators_cambricon_node, koordinators_metax_node},
    support::floor::Floor,
    world::{World, annotation, node_of, phase, pod},
};

const MLU_LOCK: &str = "cambricon.com/dsmlu.lock";
const METAX_LOCK: &str = "hami.io/mutex.lock";
const SERVED: &str = "CAMBRICON_DSMLU_ASSIGHED";

/// So many percent and GiB of a card, with resources by which kubelet asks the vendor's plugin.
fn share(percent: u32, memory: u32, plugin: &Value) -> Value {
    let mut limits = json!({
        "koordinator.sh/gpu.shared": "1", "koordinator.sh/gpu-core": percent.to_string(),
        "koordinator.sh/gpu-memory": format!("{memory}Gi"),
    });
    limits.as_object_mut().unwrap().extend(plugin.as_object().unwrap().clone());
    limits
}

fn smlu(percent: u32, memory: u32) -> Value {
    let (cores, units) = (percent.to_string(), (4 * memory).to_string());
    share(
        percent,
        memory,
        &json!({"cambricon.com/mlu.smlu.vcore": cores, "cambricon.com/mlu.smlu.vmemory": units}),
    )
}

fn sgpu(percent: u32, memory: u32) -> Value {
    share(percent, memory, &json!({"metax-tech.com/sgpu": "1"}))
}

/// The vendor's own names are Berth's too, which these pods name beside Koordinator's.
fn settings() -> Config {
    Config::parse("dialects: {hami: {cambricon: {}}}\n", "berth.yaml").expect("the settings are good").0
}

async fn at_work(floor: Floor, nodes: Vec<Node>) -> Option<World> {
    let mut world = World::with_devices(floor, nodes).await?;
    world.start_berth_with(&settings());
    Some(world)
}

fn is_free(lock: &'static str) -> impl Fn(&core::Node) -> bool {
    move |node| !node.metadata.annotations.as_ref().is_some_and(|own| own.contains_key(lock))
}

/// A lock of Koordinator's scheduler, taken so long ago for this pod.
fn taken(pod: &str, ago: SignedDuration) -> Value {
    let since = Timestamp::now() - ago;
    json!(format!("{},default,{pod}", since.strftime("%Y-%m-%dT%H:%M:%SZ")))
}

pub(crate) async fn pods_of_both_vendors_are_served_one_after_the_other(floor: Floor) {
    let nodes = vec![
        koordinators_cambricon_node("mlu-1", 2, Spelling::Assighed),
        koordinators_metax_node("gpu-1", 2),
    ];
    let Some(world) = at_work(floor, nodes).await else { return };
    for number in 0..3 {
        world.create(pod(&format!("mlu-{number}"), &smlu(50, 8))).await;
        world.create(pod(&format!("metax-{number}"), &sgpu(50, 16))).await;
    }
    world.create(pod("wide", &share(10, 1, &json!({})))).await;
    for number in 0..3 {
        let mlu = world.running(&format!("mlu-{number}")).await;
        assert_eq!((node_of(&mlu), annotation(&mlu, SERVED)), ("mlu-1", "true"));
        let profile = annotation(&mlu, "CAMBRICON_DSMLU_PROFILE");
        assert!(["0_50_32", "1_50_32"].contains(&profile), "{profile}");
        let metax = world.running(&format!("metax-{number}")).await;
        assert_eq!(node_of(&metax), "gpu-1");
    }
    world.node_when("mlu-1", is_free(MLU_LOCK)).await;
    world.node_when("gpu-1", is_free(METAX_LOCK)).await;
    world.create(pod("more", &smlu(60, 1))).await;
    let told = world.unschedulable("more").await;
    assert!(told.contains("Insufficient koordinator.sh/gpu-core"), "{told}");
    let told = world.unschedulable("wide").await;
    assert!(told.contains("2 node(s) GPU device plugin is not called for the Pod"), "{told}");
    world.agents_are_content();
}

pub(crate) async fn a_lock_of_koordinators_scheduler_is_respected_until_it_is_freed(floor: Floor) {
    let Some(world) = at_work(floor, vec![koordinators_metax_node("gpu-1", 1)]).await else { return };
    let mut other = pod("other", &sgpu(10, 1));
    other["spec"]["schedulerName"] = json!("koord-scheduler");
    world.create(other).await;
    world.annotate_node("gpu-1", METAX_LOCK, taken("other", SignedDuration::ZERO)).await;
    world.create(pod("train", &sgpu(10, 1))).await;
    let told = world.event_when("train", "WaitingForNode").await.message.unwrap_or_default();
    assert!(told.contains("held by default/other"), "{told}");
    assert_eq!(node_of(&world.pods().get("train").await.unwrap()), "");
    world.annotate_node("gpu-1", METAX_LOCK, Value::Null).await;
    world.running("train").await;
    world.agents_are_content();
}

/// Of a pod that is gone, of one that has had five minutes, and one that names nobody.
pub(crate) async fn a_vendors_lock_that_serves_nobody_is_taken_over(floor: Floor) {
    let nodes = ["gone", "old", "broken"].map(|name| koordinators_metax_node(name, 1)).to_vec();
    let Some(mut world) = World::with_devices(floor, nodes).await else { return };
    let mut other = pod("other", &sgpu(10, 1));
    other["spec"]["schedulerName"] = json!("koord-scheduler");
    world.create(other).await;
    world.annotate_node("gone", METAX_LOCK, taken("nobody", SignedDuration::ZERO)).await;
    world.annotate_node("old", METAX_LOCK, taken("other", SignedDuration::from_secs(301))).await;
    world.annotate_node("broken", METAX_LOCK, json!("nonsense")).await;
    world.start_berth_with(&settings());
    for name in ["one", "two", "three"] {
        world.create(pod(name, &sgpu(60, 40))).await;
    }
    for name in ["one", "two", "three"] {
        world.running(name).await;
    }
    world.agents_are_content();
}

/// Killed while a plugin is at work, with pods in line: the next binder tells by pod and node who is being served.
pub(crate) async fn a_killed_binder_leaves_no_pod_to_the_wrong_plugin_call(floor: Floor) {
    let nodes = vec![
        koordinators_cambricon_node("mlu-1", 2, Spelling::Assighed),
        koordinators_metax_node("gpu-1", 2),
    ];
    let Some(mut world) = at_work(floor, nodes).await else { return };
    let silent = || Behaviour { answer: Answer::Never, ..Behaviour::default() };
    for node in ["mlu-1", "gpu-1"] {
        world.fleet.behave(node, silent()).unwrap();
    }
    let named = |kind: &str, number: usize| format!("{kind}-{number}");
    for number in 0..3 {
        world.create(pod(&named("mlu", number), &smlu(30, 4))).await;
        world.create(pod(&named("metax", number), &sgpu(30, 4))).await;
    }
    let is_bound = |pod: &core::Pod| !node_of(pod).is_empty();
    world.pod_when("mlu-0", is_bound).await;
    world.pod_when("metax-0", is_bound).await;
    world.kill_berth().await;
    world.start_berth_with(&settings());
    // The new binder has seen the cluster once it says why these wait.
    for pod in ["mlu-1", "metax-1"] {
        world.event_when(pod, "WaitingForNode").await;
        assert_eq!(node_of(&world.pods().get(pod).await.unwrap()), "");
    }
    for node in ["mlu-1", "gpu-1"] {
        world.fleet.behave(node, Behaviour::default()).unwrap();
    }
    for number in 0..3 {
        world.running(&named("mlu", number)).await;
        world.running(&named("metax", number)).await;
        world.kill_berth().await;
        world.start_berth_with(&settings());
    }
    world.node_when("mlu-1", is_free(MLU_LOCK)).await;
    world.node_when("gpu-1", is_free(METAX_LOCK)).await;
    world.agents_are_content();
}

/// A plugin that fails frees nothing: the lock is given back as its pod is dead.
pub(crate) async fn a_failed_allocation_of_a_vendors_plugin_costs_its_pod_only(floor: Floor) {
    let Some(world) = at_work(floor, vec![koordinators_metax_node("gpu-1", 1)]).await else { return };
    let behaviour = |answer| Behaviour { answer, ..Behaviour::default() };
    world.fleet.behave("gpu-1", behaviour(Answer::FailingEvery(1))).unwrap();
    world.create(pod("failing", &sgpu(60, 40))).await;
    world.pod_when("failing", |pod| phase(pod) == "Failed").await;
    world.fleet.behave("gpu-1", behaviour(Answer::Promptly)).unwrap();
    world.create(pod("next", &sgpu(60, 40))).await;
    world.running("next").await;
    world.node_when("gpu-1", is_free(METAX_LOCK)).await;
    world.agents_are_content();
}

/// A pod that waits for its plugin and is deleted, with the lock that it had.
pub(crate) async fn a_deleted_pod_frees_its_vendors_node(floor: Floor) {
    let Some(world) = at_work(floor, vec![koordinators_metax_node("gpu-1", 1)]).await else { return };
    world.fleet.behave("gpu-1", Behaviour { answer: Answer::Never, ..Behaviour::default() }).unwrap();
    world.create(pod("unlucky", &sgpu(60, 40))).await;
    world.pod_when("unlucky", |pod| !node_of(pod).is_empty()).await;
    world.node_when("gpu-1", |node| !is_free(METAX_LOCK)(node)).await;
    world.delete("unlucky").await;
    world.fleet.behave("gpu-1", Behaviour::default()).unwrap();
    world.node_when("gpu-1", is_free(METAX_LOCK)).await;
    world.create(pod("next", &sgpu(60, 40))).await;
    world.running("next").await;
    world.agents_are_content();
}
