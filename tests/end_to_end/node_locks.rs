//! Node locks that are left out while no other scheduler takes them.

use berth::config::Config;
use berth_sandbox::agent::{Answer, Behaviour};
use k8s_openapi::api::core::v1 as core;
use kube::{
    ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    machines::hami_node,
    support::floor::Floor,
    world::{World, node_of, pod},
};

const LOCK: &str = "hami.io/mutex.lock";

fn share(name: &str) -> Value {
    pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}))
}

fn is_locked_for(node: &core::Node, pod: &str) -> bool {
    node.annotations().get(LOCK).is_some_and(|lock| lock.ends_with(&format!(",default,{pod}")))
}

/// How many locks were taken.
fn locks(world: &World) -> String {
    let counts = world.counts();
    let line =
        counts.lines().find(|line| line.starts_with("berth_scheduler_node_locks_total{outcome=\"success\"}"));
    line.expect("locks are counted").rsplit(' ').next().unwrap().to_owned()
}

/// HAMi's scheduler appears, as its chart makes its pod, while the device plugin has yet to answer for a pod that was bound without a lock.
pub(crate) async fn a_lock_is_left_out_until_another_scheduler_appears_and_then_taken_for_the_pod_in_flight(
    floor: Floor,
) {
    let Some(mut world) = World::without_berth(floor, vec![hami_node("n", 2)]).await else { return };
    let settings = "dialects: {hami: {nodeLock: auto}}\n";
    world.start_berth_with(&Config::parse(settings, "berth.yaml").expect("the settings are good").0);
    world.create(share("first")).await;
    world.running("first").await;
    assert_eq!(locks(&world), "0");

    world.fleet.behave("n", Behaviour { answer: Answer::Never, ..Behaviour::default() }).unwrap();
    world.create(share("second")).await;
    world.pod_when("second", |pod| node_of(pod) == "n").await;
    let node = world.nodes().get("n").await.unwrap();
    assert_eq!(node.annotations().get(LOCK), None, "no other scheduler runs");

    let labels = json!({"app.kubernetes.io/component": "hami-scheduler"});
    let scheduler = json!({"metadata": {"name": "hami-scheduler-0", "labels": labels},
        "spec": {"schedulerName": "default-scheduler", "containers": [{"name": "scheduler", "image": "none"}]}});
    world.create(scheduler).await;
    world.node_when("n", |node| is_locked_for(node, "second")).await;

    world.create(share("third")).await;
    world.fleet.behave("n", Behaviour::default()).unwrap();
    world.running("second").await;
    world.running("third").await;
    world.node_when("n", |node| !node.annotations().contains_key(LOCK)).await;
    assert_eq!(locks(&world), "2", "one for the pod in flight, one for the next");
    world.pods().delete("hami-scheduler-0", &DeleteParams::default().grace_period(0)).await.unwrap();
    world.agents_are_content();
}

/// The plugin would take a pod that it has served and that has not started yet for the next one.
pub(crate) async fn a_lock_is_taken_beside_a_pod_that_has_not_started(floor: Floor) {
    let Some(mut world) = World::without_berth(floor, vec![hami_node("n", 2)]).await else { return };
    let settings = "dialects: {hami: {nodeLock: auto}}\n";
    world.start_berth_with(&Config::parse(settings, "berth.yaml").expect("the settings are good").0);
    world.create(share("first")).await;
    world.running("first").await;
    // As one whose image is being pulled.
    let pulling = json!({"status": {"phase": "Pending"}});
    world.pods().patch_status("first", &PatchParams::default(), &Patch::Merge(&pulling)).await.unwrap();
    world.pod_when("first", |pod| crate::world::phase(pod) == "Pending").await;
    world.create(share("second")).await;
    world.running("second").await;
    world.agents_are_content();
}
