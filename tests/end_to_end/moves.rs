//! Moves of pods by `berth moves --apply`: what is evicted, where it stands again, and that no card stays cordoned.

use std::collections::BTreeSet;

use berth::{
    cli::{
        Cli, Command, CommandAnswer,
        moves::{MovesArgs, plan_live},
    },
    config::Config,
    scheduling::PodKey,
};
use clap::Parser as _;
use futures::{StreamExt as _, pin_mut};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, ResourceExt as _,
    api::PostParams,
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    machines::hami_node,
    support::floor::Floor,
    world::{World, node_of, pod},
};

const CORDON: &str = "hami.io/device-cordon";

/// A pod of a ReplicaSet of this name, with so many MiB of a card that has 16,384.
fn replica(name: &str, set: &str, memory: u32) -> Value {
    let mut pod = pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string()}));
    pod["metadata"]["labels"] = json!({"app": set});
    pod["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": set, "uid": format!("uid-of-{set}"), "controller": true,
    }]);
    pod["spec"]["terminationGracePeriodSeconds"] = 5.into();
    pod
}

/// Creates another pod for each of the set that leaves, as its controller does.
async fn control(pods: Api<Pod>, set: &'static str, memory: u32) {
    let events = watcher(pods.clone(), watcher::Config::default().labels(&format!("app={set}")));
    let events = events.default_backoff().applied_objects();
    pin_mut!(events);
    let mut replaced = BTreeSet::new();
    while let Some(event) = events.next().await {
        let Ok(pod) = event else { continue };
        if pod.metadata.deletion_timestamp.is_some() && replaced.insert(pod.uid()) {
            let next = replica(&format!("{set}-again-{}", replaced.len()), set, memory);
            pods.create(&PostParams::default(), &serde_json::from_value(next).unwrap()).await.unwrap();
        }
    }
}

fn args(more: &[&str]) -> MovesArgs {
    let cli = Cli::parse_from(["berth", "moves"].iter().chain(more));
    let Command::Moves(args) = cli.command else { panic!("it is another command") };
    args
}

fn cordoned(node: &Node) -> Option<&String> {
    node.annotations().get(CORDON).filter(|cards| !cards.is_empty())
}

/// Two nodes of one card each, with `small` on `n1` and `large` on `n2`.
async fn half_used(floor: Floor) -> Option<World> {
    let world = World::start(floor, nodes()).await?;
    run_both(&world).await;
    Some(world)
}

fn nodes() -> Vec<berth_sandbox::agent::node::Node> {
    vec![hami_node("n1", 1), hami_node("n2", 1)]
}

async fn run_both(world: &World) {
    run_beside(world, ("small", 6000), "n2").await;
    run_beside(world, ("large", 8000), "n1").await;
}

/// Runs a pod of this set on the node that is not this one.
async fn run_beside(world: &World, (set, memory): (&str, u32), other: &str) {
    world.annotate_node(other, CORDON, json!(format!("GPU-{other}-0"))).await;
    let name = format!("{set}-0");
    world.create(replica(&name, set, memory)).await;
    assert_ne!(node_of(&world.running(&name).await), other);
    world.annotate_node(other, CORDON, Value::Null).await;
}

pub(crate) async fn a_pod_is_evicted_and_its_successor_stands_where_the_plan_has_it(floor: Floor) {
    let Some(world) = half_used(floor).await else { return };
    let client = world.cluster.client.clone();
    let args = args(&["--free", "1", "--timeout", "60s"]);
    let planned = plan_live(&client, &args, &Config::default()).await.unwrap();
    let report = serde_json::to_value(planned.report()).unwrap();
    let moved = &report["moves"][0];
    assert_eq!(
        (report["frees"]["wholeGpus"].as_u64(), report["moves"].as_array().unwrap().len()),
        (Some(1), 1)
    );
    assert_eq!(
        (&moved["name"], &moved["from"], &moved["to"]),
        (&json!("small-0"), &json!("n1"), &json!("n2"))
    );

    let mut controllers = JoinSet::new();
    controllers.spawn(control(world.pods(), "small", 6000));
    let answer = planned.apply(&client, args.timeout).await.unwrap();
    assert_eq!(answer, CommandAnswer::Yes);
    assert!(world.pods().get_opt("small-0").await.unwrap().is_none());
    let stands = world.running("small-again-1").await;
    assert_eq!(node_of(&stands), "n2");
    assert_eq!(node_of(&world.running("large-0").await), "n2", "it has not been touched");
    for node in ["n1", "n2"] {
        world.node_when(node, |node| cordoned(node).is_none()).await;
    }
    let whole = pod("whole", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpucores": "100"}));
    world.create(whole).await;
    assert_eq!(node_of(&world.running("whole").await), "n1", "the card is free for others");
}

pub(crate) async fn no_further_pod_is_evicted_after_one_that_does_not_stand_again(floor: Floor) {
    let Some(world) = half_used(floor).await else { return };
    run_beside(&world, ("beside-small", 1000), "n2").await;
    run_beside(&world, ("beside-large", 1000), "n1").await;
    let client = world.cluster.client.clone();
    // Nothing creates a pod in place of the one that is evicted.
    let args = args(&["--free", "1", "--timeout", "2s"]);
    let planned = plan_live(&client, &args, &Config::default()).await.unwrap();
    let report = serde_json::to_value(planned.report()).unwrap();
    let moves = report["moves"].as_array().unwrap();
    assert_eq!(moves.len(), 2, "{report}");
    let first = moves[0]["name"].as_str().unwrap();
    assert_eq!(planned.apply(&client, args.timeout).await.unwrap(), CommandAnswer::No);
    for name in ["small-0", "large-0", "beside-small-0", "beside-large-0"] {
        let is_there = world
            .pods()
            .get_opt(name)
            .await
            .unwrap()
            .is_some_and(|pod| pod.metadata.deletion_timestamp.is_none());
        assert_eq!(is_there, name != first, "{name}");
    }
    for node in ["n1", "n2"] {
        world.node_when(node, |node| cordoned(node).is_none()).await;
    }
}

pub(crate) async fn what_moves_would_win_is_told_by_metrics_and_one_event(floor: Floor) {
    let Some(mut world) = World::without_berth(floor, nodes()).await else { return };
    let own = PodKey { uid: "uid-of-berth".into(), namespace: "default".into(), name: "berth-0".into() };
    world.start_advising(own);
    run_both(&world).await;
    let event = world.event_when("berth-0", "MovesPay").await;
    assert_eq!(event.message.as_deref(), Some("Moving 1 pod would free 1 GPU: run berth moves to see which"));
    let mut look = tokio::time::interval(std::time::Duration::from_millis(20));
    // The Event is written after the metrics.
    for metric in ["berth_moves_gpus 1", "berth_moves_pods 1"] {
        assert!(world.counts().contains(metric), "{metric}");
    }
    world.delete("small-0").await;
    while !world.counts().contains("berth_moves_gpus 0") {
        look.tick().await;
    }
    assert_eq!(world.events("berth-0", "MovesPay").await.len(), 1, "at most one a day");
}
