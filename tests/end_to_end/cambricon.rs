//! Cambricon's MLUs, whose plugin is Cambricon's own: another lock, other annotations, cards that are registered nowhere.

#![allow(clippy::disallowed_methods, reason = "a lock says since when it is held")]

use berth::config::Config;
use berth_sandbox::agent::{Answer, Behaviour, plugin::Spelling};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1 as core;
use serde_json::{Value, json};

use crate::{
    machines::cambricon_node,
    support::floor::Floor,
    vendors::settings,
    world::{World, and_container, annotation, node_of, phase, pod},
};

const LOCK: &str = "cambricon.com/dsmlu.lock";
const RECORD: &str = "hami.io/cambricon-mlu-devices-allocated";
const PROFILE: &str = "CAMBRICON_DSMLU_PROFILE";

fn mlu(units: u32, cores: u32) -> Value {
    json!({
        "cambricon.com/vmlu": "1", "cambricon.com/mlu.smlu.vmemory": units.to_string(),
        "cambricon.com/mlu.smlu.vcore": cores.to_string(),
    })
}

async fn world(floor: Floor, cards: u32) -> Option<World> {
    let mut world =
        World::without_berth(floor, vec![cambricon_node("mlu-1", cards, Spelling::Assigned)]).await?;
    world.start_berth_with(&settings());
    Some(world)
}

/// A lock as HAMi's scheduler takes it, so long ago.
fn taken(ago: SignedDuration) -> Value {
    json!((Timestamp::now() - ago).strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

fn is_unlocked(node: &core::Node) -> bool {
    !node.metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(LOCK))
}

pub(crate) async fn parts_and_whole_cards_are_cut_as_the_profile_says(floor: Floor) {
    let nodes =
        vec![cambricon_node("old", 2, Spelling::Assighed), cambricon_node("new", 2, Spelling::Assigned)];
    let Some(mut world) = World::without_berth(floor, nodes).await else { return };
    world.start_berth_with(&settings());
    for (node, served) in [("old", "CAMBRICON_DSMLU_ASSIGHED"), ("new", "CAMBRICON_DSMLU_ASSIGNED")] {
        let here = |name: &str, limits: Value| {
            let mut pod = pod(&format!("{name}-{node}"), &limits);
            pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
            pod["metadata"]["annotations"] = json!({"hami.io/gpu-scheduler-policy": "spread"});
            pod
        };
        for (name, limits, profile, record) in [
            ("part", mlu(16, 20), "1_20_16", "1,MLU,4096,20:;"),
            ("more", mlu(80, 30), "0_30_80", "0,MLU,20480,30:;"),
        ] {
            world.create(here(name, limits)).await;
            let pod = world.running(&format!("{name}-{node}")).await;
            assert_eq!(annotation(&pod, PROFILE), profile);
            assert_eq!(annotation(&pod, RECORD), format!("{node}-cambricon-mlu-{record}"));
            assert_eq!(annotation(&pod, served), "true");
            assert!(!annotation(&pod, "CAMBRICON_DSMLU_PROFILE_INSTANCE").is_empty());
        }
        world.node_when(node, is_unlocked).await;
        world.delete(&format!("part-{node}")).await;
        world.create(here("whole", mlu(96, 100))).await;
        assert_eq!(annotation(&world.running(&format!("whole-{node}")).await, PROFILE), "1_100_96");
    }
    world.create(pod("too-much", &mlu(97, 10))).await;
    assert_eq!(
        world.unschedulable("too-much").await,
        "0/2 nodes are available: 2 Insufficient cambricon.com/mlu.smlu.vmemory."
    );
    world.agents_are_content();
}

/// What Cambricon's plugin would not serve, or be asked for once only, and never free the node.
pub(crate) async fn what_the_plugin_is_not_asked_for_is_refused(floor: Floor) {
    let Some(world) = world(floor, 2).await else { return };
    let mut several = mlu(16, 20);
    several["cambricon.com/vmlu"] = json!("2");
    let twice = and_container(pod("twice", &mlu(16, 20)), &mlu(16, 20));
    let mut early = pod("early", &json!({}));
    early["spec"]["initContainers"] =
        json!([{"name": "i", "image": "train", "resources": {"limits": mlu(16, 20)}}]);
    let without = |name: &str| {
        let mut limits = mlu(16, 20);
        limits.as_object_mut().unwrap().remove(name);
        limits
    };
    for (pod, reason) in [
        (pod("several", &several), "one share of a pod"),
        (twice, "one container of a pod"),
        (early, "no init container"),
        (pod("no-cores", &without("cambricon.com/mlu.smlu.vcore")), "add `cambricon.com/mlu.smlu.vcore`"),
        (
            pod("no-memory", &without("cambricon.com/mlu.smlu.vmemory")),
            "add `cambricon.com/mlu.smlu.vmemory`",
        ),
    ] {
        let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
        world.create(pod).await;
        let told = world.unschedulable(&name).await;
        assert!(told.contains(reason), "{name}: {told}");
    }
    world.create(pod("good", &mlu(16, 20))).await;
    world.running("good").await;
    world.agents_are_content();
}

pub(crate) async fn a_foreign_lock_is_respected_until_it_is_freed(floor: Floor) {
    let Some(world) = world(floor, 1).await else { return };
    world.annotate_node("mlu-1", LOCK, taken(SignedDuration::ZERO)).await;
    world.create(pod("train", &mlu(16, 20))).await;
    let told = world.event_when("train", "WaitingForNode").await.message.unwrap_or_default();
    assert!(told.contains("mlu-1"), "{told}");
    assert_eq!(node_of(&world.pods().get("train").await.unwrap()), "");
    world.annotate_node("mlu-1", LOCK, Value::Null).await;
    world.running("train").await;
    world.agents_are_content();
}

pub(crate) async fn a_lock_that_serves_nobody_is_taken_over(floor: Floor) {
    let nodes = ["old", "broken"].map(|name| cambricon_node(name, 1, Spelling::Assigned)).to_vec();
    let Some(mut world) = World::without_berth(floor, nodes).await else { return };
    // HAMi's scheduler takes one for forgotten after two minutes.
    world.annotate_node("old", LOCK, taken(SignedDuration::from_secs(121))).await;
    world.annotate_node("broken", LOCK, json!("nonsense")).await;
    world.start_berth_with(&settings());
    for name in ["one", "two"] {
        world.create(pod(name, &mlu(60, 60))).await;
    }
    for name in ["one", "two"] {
        world.running(name).await;
    }
    for name in ["old", "broken"] {
        world.node_when(name, is_unlocked).await;
    }
    world.agents_are_content();
}

/// Nobody can tell whose a bare lock is: the one of a binder that died is respected for as long as HAMi's scheduler would.
pub(crate) async fn a_restarted_binder_waits_for_the_lock_of_the_one_that_died(floor: Floor) {
    let Some(mut world) = world(floor, 1).await else { return };
    world.create(pod("before", &mlu(40, 40))).await;
    world.running("before").await;
    world.node_when("mlu-1", is_unlocked).await;
    world.kill_berth().await;
    // As if it had died between lock and Binding.
    world.create(pod("between", &mlu(40, 40))).await;
    let lock = taken(SignedDuration::from_secs(115));
    let since: Timestamp = lock.as_str().unwrap().parse().unwrap();
    world.annotate_node("mlu-1", LOCK, lock).await;
    world.create(pod("too-much", &mlu(40, 40))).await;
    world.start_berth_with(&settings());
    let between = world.running("between").await;
    let bound: i64 = annotation(&between, "hami.io/bind-time").parse().unwrap();
    assert!(bound >= since.as_second() + 120, "bound at {bound} under a lock since {since}");
    assert_eq!(
        world.unschedulable("too-much").await,
        "0/1 nodes are available: 1 Insufficient cambricon.com/mlu.smlu.vcore, 1 Insufficient cambricon.com/mlu.smlu.vmemory."
    );
    world.agents_are_content();
}

/// The plugin neither says that it has failed nor frees the node.
pub(crate) async fn a_failed_allocation_costs_its_pod_only(floor: Floor) {
    let Some(world) = world(floor, 1).await else { return };
    let behaviour = |answer| Behaviour { answer, ..Behaviour::default() };
    // Every pod is two calls: it is the second that fails.
    world.fleet.behave("mlu-1", behaviour(Answer::FailingEvery(2))).unwrap();
    world.create(pod("failing", &mlu(60, 60))).await;
    let failing = world.pod_when("failing", |pod| phase(pod) == "Failed").await;
    assert_eq!(annotation(&failing, "CAMBRICON_DSMLU_ASSIGNED"), "false");
    world.fleet.behave("mlu-1", behaviour(Answer::Promptly)).unwrap();
    world.create(pod("next", &mlu(60, 60))).await;
    world.running("next").await;
    world.node_when("mlu-1", is_unlocked).await;
    world.agents_are_content();
}

pub(crate) async fn a_decision_of_hamis_scheduler_holds_its_cards_and_is_taken_over(floor: Floor) {
    let Some(mut world) =
        World::without_berth(floor, vec![cambricon_node("mlu-1", 2, Spelling::Assighed)]).await
    else {
        return;
    };
    // HAMi's scheduler has written its decision to the pod, locked the node and died.
    let mut left = pod("left", &mlu(60, 60));
    left["spec"]["schedulerName"] = json!("hami-scheduler");
    let devices = "mlu-1-cambricon-mlu-0,MLU,15360,60:;";
    left["metadata"]["labels"] = json!({"hami.io/vgpu-node": "mlu-1"});
    left["metadata"]["annotations"] = json!({
        "hami.io/vgpu-node": "mlu-1", "hami.io/vgpu-time": "1700000000",
        "hami.io/cambricon-mlu-devices-to-allocate": devices, RECORD: devices,
        "CAMBRICON_DSMLU_ASSIGNED": "false", PROFILE: "0_60_60",
    });
    world.create(left).await;
    world.annotate_node("mlu-1", LOCK, taken(SignedDuration::from_secs(121))).await;
    world.start_berth_with(&settings());
    world.create(pod("beside", &mlu(60, 60))).await;
    let beside = world.running("beside").await;
    assert_eq!(annotation(&beside, RECORD), "mlu-1-cambricon-mlu-1,MLU,15360,60:;");
    world.create(pod("waits", &mlu(60, 60))).await;
    assert_eq!(world.unschedulable("waits").await, "0/1 nodes are available: 1 Insufficient GPU memory.");
    world.kill_berth().await;
    world.delete("waits").await;
    let replacing =
        Config::parse("schedulerName: hami-scheduler\ndialects: {hami: {cambricon: {}}}\n", "berth.yaml");
    world.start_berth_with(&replacing.expect("the settings are good").0);
    let left = world.running("left").await;
    assert_eq!(annotation(&left, RECORD), devices);
    world.agents_are_content();
}
