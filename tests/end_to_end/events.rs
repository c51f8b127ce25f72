//! What people read in `kubectl get events` of a node that serves nobody: for whom a pod waits there, and whose plugin is silent.
//!
//! It must not repeat what a pod's condition says.

#![allow(clippy::disallowed_methods, reason = "a lock says since when it is held")]

use berth::config::Config;
use berth_sandbox::agent::{Answer, Behaviour};
use jiff::Timestamp;
use k8s_openapi::api::core::v1 as core;
use serde_json::{Value, json};

use crate::{
    machines::hami_node,
    support::floor::Floor,
    world::{World, node_of, pod, without_nearest},
};

/// Conditions that kubelet writes.
const KUBELETS: [&str; 4] = ["PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"];
const LOCK: &str = "hami.io/mutex.lock";

/// The words of `kubectl get events` after the age.
fn line(event: &core::Event) -> String {
    let word = |word: &Option<String>| word.clone().unwrap_or_default();
    let of = &event.involved_object;
    let object = format!("{}/{}", word(&of.kind).to_lowercase(), word(&of.name));
    [word(&event.type_), word(&event.reason), object, word(&event.message)].join(" ")
}

fn share(name: &str) -> Value {
    pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}))
}

fn on(node: &str, mut pod: Value) -> Value {
    pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
    pod
}

fn answering(answer: Answer) -> Behaviour {
    Behaviour { answer, ..Behaviour::default() }
}

/// Two nodes of one card each; the plugin of `silent` answers nobody for now, and Berth is yet to start.
async fn beside_a_silent_node(floor: Floor, other: &str) -> Option<World> {
    let nodes = vec![hami_node("silent", 1), hami_node(other, 1)];
    let world = World::without_berth(floor, nodes).await?;
    world.fleet.behave("silent", answering(Answer::Never)).unwrap();
    Some(world)
}

pub(crate) async fn who_waits_for_a_node_is_told_for_whom(floor: Floor) {
    let Some(mut world) = beside_a_silent_node(floor, "locked").await else { return };
    let mut theirs = on("locked", share("theirs"));
    theirs["spec"]["schedulerName"] = json!("another");
    world.create(theirs).await;
    let since = format!("{:.0}", Timestamp::now());
    world.annotate_node("locked", LOCK, json!(format!("{since},default,theirs"))).await;
    world.start_berth();
    world.create(on("silent", share("first"))).await;
    world.pod_when("first", |pod| node_of(pod) == "silent").await;
    world.create(on("silent", share("second"))).await;
    world.create(on("locked", share("third"))).await;
    let told = line(&world.event_when("second", "WaitingForNode").await);
    let words = "Normal WaitingForNode pod/second Waiting for the device plugin of node silent, which has been allocating for default/first since ";
    let since_then = told.strip_prefix(words).unwrap_or_else(|| panic!("{told}"));
    assert!(!since_then.contains('.') && since_then.parse::<Timestamp>().is_ok(), "to the second: {told}");
    let told = line(&world.event_when("third", "WaitingForNode").await);
    let words =
        "Normal WaitingForNode pod/third Waiting for the lock of node locked, held by default/theirs since";
    assert_eq!(told, format!("{words} {since}"));
    world.fleet.behave("silent", answering(Answer::Promptly)).unwrap();
    world.annotate_node("locked", LOCK, Value::Null).await;
    for name in ["first", "second", "third"] {
        world.running(name).await;
    }
    world.agents_are_content();
}

pub(crate) async fn a_plugin_that_never_answers_is_told_and_gets_no_further_pod_until_it_does(floor: Floor) {
    let Some(mut world) = beside_a_silent_node(floor, "good").await else { return };
    let settings = "dialects: {hami: {nodeLockExpire: 1s}}\n";
    world.start_berth_with(&Config::parse(settings, "berth.yaml").expect("the settings are good").0);
    world.create(on("silent", share("first"))).await;
    let told = line(&world.event_when("first", "DevicePluginSilent").await);
    let words = "The device plugin of node silent has not answered for default/first; \
                 meanwhile Berth places no further pods on the node";
    assert_eq!(told, format!("Warning DevicePluginSilent pod/first {words}"));
    world.create(on("silent", share("second"))).await;
    let waits = "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, \
                 1 node(s) had a device plugin that does not answer.";
    assert_eq!(world.unschedulable("second").await, waits);
    let told = line(&world.event_when("second", "FailedScheduling").await);
    assert_eq!(without_nearest(&told), format!("Warning FailedScheduling pod/second {waits}"));
    world.create(share("third")).await;
    assert_eq!(node_of(&world.running("third").await), "good");
    world.fleet.behave("silent", answering(Answer::Promptly)).unwrap();
    for name in ["first", "second"] {
        assert_eq!(node_of(&world.running(name).await), "silent");
    }
    world.agents_are_content();
}

pub(crate) async fn a_pod_that_is_bound_at_first_sight_gets_one_event_and_no_condition_of_berths(
    floor: Floor,
) {
    let Some(world) = World::start(floor, vec![hami_node("n", 1)]).await else { return };
    world.create(share("first")).await;
    let told = line(&world.event_when("first", "Scheduled").await);
    assert_eq!(told, "Normal Scheduled pod/first Successfully assigned default/first to n");
    world.running("first").await;
    // What was written for the first comes before what is written for the second.
    world.create(share("second")).await;
    world.event_when("second", "Scheduled").await;
    world.running("second").await;
    for name in ["first", "second"] {
        assert_eq!(world.reasons(name).await, ["Scheduled"], "{name}");
        let pod = world.pods().get(name).await.unwrap();
        let conditions = pod.status.unwrap_or_default().conditions.unwrap_or_default();
        let others = conditions
            .iter()
            .filter(|one| (one.type_.as_str(), one.status.as_str()) != ("PodScheduled", "True"));
        let others: Vec<_> = others.filter(|one| !KUBELETS.contains(&one.type_.as_str())).collect();
        assert!(others.is_empty(), "{name}: {others:?}");
    }
}
