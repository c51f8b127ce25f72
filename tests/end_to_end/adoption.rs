//! Pods that name a scheduler which Berth replaces, in namespaces that admission does not cover.

#![allow(clippy::disallowed_methods, reason = "a lock says since when it is held")]

use berth_sandbox::agent::{Answer, Behaviour};
use jiff::Timestamp;
use k8s_openapi::api::core::v1 as core;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    runtime::wait::await_condition,
};
use serde_json::{Value, json};

use crate::{
    leftovers::decided,
    machines::hami_node,
    support::floor::Floor,
    world::{World, annotation, node_of, phase, pod},
};

const ADOPTING: &str =
    "adoptSchedulers: [hami-scheduler, default-scheduler]\nschedulerNamespaces: [default]\n";
const LOCK: &str = "hami.io/mutex.lock";

/// A pod that asks for this much memory of one card and names that scheduler.
fn share(name: &str, memory: u32, scheduler: &str) -> Value {
    let mut share = pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string()}));
    share["spec"]["schedulerName"] = scheduler.into();
    share
}

/// A pod of HAMi's scheduler, with label and command line as its chart writes them (`charts/hami/templates/scheduler/deployment.yaml`).
fn scheduler_pod(served: &str) -> Value {
    let name = format!("--scheduler-name={served}");
    json!({
        "metadata": {"name": "hami-scheduler-0", "labels": {"app.kubernetes.io/component": "hami-scheduler"}},
        "spec": {"containers": [
            {"name": "kube-scheduler", "image": "none", "command": ["kube-scheduler", "--config=/config/config.yaml"]},
            {"name": "vgpu-scheduler-extender", "image": "none", "command": ["scheduler", name]},
        ]},
    })
}

/// The Binding that another scheduler sends.
async fn bind(world: &World, name: &str, node: &str) -> kube::Result<()> {
    let binding = json!({
        "metadata": {"name": name}, "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    let request = http::Request::post(format!("/api/v1/namespaces/default/pods/{name}/binding"))
        .header("content-type", "application/json")
        .body(binding.to_string().into_bytes())
        .unwrap();
    world.cluster.client.request::<Value>(request).await.map(drop)
}

fn is_waiting(pod: &core::Pod) -> bool {
    node_of(pod).is_empty() && phase(pod) == "Pending"
}

pub(crate) async fn pods_of_an_adopted_scheduler_are_placed_in_every_namespace(floor: Floor) {
    let Some(mut world) = World::without_berth(floor, vec![hami_node("gpu-1", 2)]).await else { return };
    let elsewhere: Api<core::Pod> = Api::namespaced(world.cluster.client.clone(), "kube-system");
    let parsed = |pod: Value| -> core::Pod { serde_json::from_value(pod).unwrap() };
    // What looks like their scheduler in a namespace that the settings do not name is none.
    let impostor = parsed(scheduler_pod("hami-scheduler"));
    elsewhere.create(&PostParams::default(), &impostor).await.unwrap();
    world.start_app_with(ADOPTING).await;
    let theirs = share("theirs", 2000, "hami-scheduler");
    elsewhere.create(&PostParams::default(), &parsed(theirs.clone())).await.unwrap();
    world.create(theirs).await;
    world.running("theirs").await;
    let runs = |pod: Option<&core::Pod>| pod.is_some_and(|pod| phase(pod) == "Running");
    await_condition(elsewhere, "theirs", runs).await.unwrap();
    // One that does not fit is told so, and one that can't be read too: their scheduler has gone.
    world.create(share("large", 20_000, "hami-scheduler")).await;
    assert_eq!(world.unschedulable("large").await, "0/1 nodes are available: 1 Insufficient GPU memory.");
    let mut countless = pod("countless", &json!({"nvidia.com/gpumem": "1000"}));
    countless["spec"]["schedulerName"] = "hami-scheduler".into();
    world.create(countless).await;
    let why = world.unschedulable("countless").await;
    assert!(why.starts_with("Pod's GPU request can't be read"), "{why}");
    // What asks for no share, and what kube-scheduler places, is left alone.
    let mut plain = pod("plain", &json!({}));
    plain["spec"]["schedulerName"] = "hami-scheduler".into();
    world.create(plain).await;
    world.create(share("of-the-default", 1000, "default-scheduler")).await;
    world.create(share("ours", 1000, "berth")).await;
    world.running("ours").await;
    for name in ["plain", "of-the-default"] {
        let left = world.pods().get(name).await.unwrap();
        assert!(is_waiting(&left), "{left:#?}");
        assert_eq!(left.status.and_then(|status| status.conditions), None, "{name} is not spoken of");
    }
    world.agents_are_content();
}

pub(crate) async fn a_scheduler_that_runs_keeps_its_pods_until_it_is_stopped(floor: Floor) {
    let Some(mut world) = World::without_berth(floor, vec![hami_node("gpu-1", 1)]).await else { return };
    world.create(scheduler_pod("hami-scheduler")).await;
    world.create(decided("theirs", "GPU-gpu-1-0", 10_000)).await;
    world.start_app_with(ADOPTING).await;
    world.create(share("ours", 5000, "berth")).await;
    world.running("ours").await;
    assert!(is_waiting(&world.pods().get("theirs").await.unwrap()), "its own scheduler runs");
    world.create(share("large", 7000, "berth")).await;
    let full = "0/1 nodes are available: 1 Insufficient GPU memory.";
    assert_eq!(world.unschedulable("large").await, full, "what the other scheduler means to give counts");
    world.delete("large").await;

    world.pods().delete("hami-scheduler-0", &DeleteParams::default().grace_period(0)).await.unwrap();
    let theirs = world.running("theirs").await;
    assert_eq!(annotation(&theirs, "hami.io/vgpu-devices-allocated"), "GPU-gpu-1-0,NVIDIA,10000,0:;");

    // It is started again, as for a way back: from then on its pods are its own.
    world.delete("ours").await;
    world.create(scheduler_pod("hami-scheduler")).await;
    let again = async |at: usize| {
        let (probe, ours) = (format!("probe-{at}"), format!("ours-{at}"));
        world.create(share(&probe, 1, "hami-scheduler")).await;
        world.create(share(&ours, 1, "berth")).await;
        world.running(&ours).await;
        let left = is_waiting(&world.pods().get(&probe).await.unwrap());
        world.delete(&ours).await;
        world.delete(&probe).await;
        left
    };
    // That its pod is there is seen by a watch, as late as any.
    let mut at = 0;
    while !again(at).await {
        at += 1;
        assert!(at < 100, "its pods are still placed by Berth");
    }
    world.agents_are_content();
}

pub(crate) async fn a_pod_that_the_other_scheduler_binds_after_all_counts_as_it_stands(floor: Floor) {
    let Some(mut world) = World::without_berth(floor, vec![hami_node("gpu-1", 2)]).await else { return };
    // Another scheduler's pod has the node's lock, so that Berth's pods wait in line.
    let mut stranger = share("stranger", 1, "batch");
    stranger["metadata"]["annotations"] = json!({"hami.io/vgpu-node": "gpu-1"});
    world.create(stranger).await;
    let since = format!("{:.0}", Timestamp::now());
    world.annotate_node("gpu-1", LOCK, json!(format!("{since},default,stranger"))).await;
    world.create(decided("first", "GPU-gpu-1-0", 1000)).await;
    world.create(decided("theirs", "GPU-gpu-1-1", 12_000)).await;
    world.start_app_with(ADOPTING).await;
    world.event("first", "WaitingForNode").await;
    // The old scheduler has decided this pod before it was stopped, and its Binding comes late.
    world.fleet.behave("gpu-1", Behaviour { answer: Answer::Never, ..Behaviour::default() }).unwrap();
    let phase = json!({"hami.io/bind-phase": "allocating", "hami.io/bind-time": "1700000000"});
    let phase = Patch::Merge(json!({"metadata": {"annotations": phase}}));
    world.pods().patch("theirs", &PatchParams::default(), &phase).await.unwrap();
    bind(&world, "theirs", "gpu-1").await.unwrap();
    world.annotate_node("gpu-1", LOCK, Value::Null).await;
    world.fleet.behave("gpu-1", Behaviour::default()).unwrap();
    let theirs = world.running("theirs").await;
    assert_eq!(annotation(&theirs, "hami.io/vgpu-devices-allocated"), "GPU-gpu-1-1,NVIDIA,12000,0:;");
    world.running("first").await;
    let refused = bind(&world, "first", "gpu-1").await.unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 409), "a second Binding is refused");
    world.create(share("next", 12_000, "hami-scheduler")).await;
    let next = world.running("next").await;
    assert_eq!(annotation(&next, "hami.io/vgpu-devices-allocated"), "GPU-gpu-1-0,NVIDIA,12000,0:;");
    world.agents_are_content();
}
