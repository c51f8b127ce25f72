//! The binder: which node, which cards, one write, one pod of a node at a time.

use berth_sandbox::agent::{Answer, Behaviour};
use jiff::Timestamp;
use k8s_openapi::api::core::v1 as core;
use serde_json::json;

use crate::{
    machines::{hami_node, volcano_node},
    support::{build::Release, floor::Floor},
    world::{World, annotation, node_of, phase, pod},
};

pub(crate) async fn a_share_is_bound_with_its_assignment_in_one_write(floor: Floor) {
    let Some(world) = World::start(floor, vec![hami_node("gpu-1", 2)]).await else { return };
    world
        .create(pod(
            "train",
            &json!({"nvidia.com/gpu": "2", "nvidia.com/gpumem": "3000", "nvidia.com/gpucores": "30"}),
        ))
        .await;
    let pod = world.running("train").await;
    assert_eq!(node_of(&pod), "gpu-1");
    assert_eq!(annotation(&pod, "hami.io/vgpu-node"), "gpu-1");
    let allocated = annotation(&pod, "hami.io/vgpu-devices-allocated");
    assert_eq!(allocated, "GPU-gpu-1-1,NVIDIA,3000,30:GPU-gpu-1-0,NVIDIA,3000,30:;");
    assert_eq!(annotation(&pod, "hami.io/bind-phase"), "success");
    let labelled = pod.metadata.labels.and_then(|mut labels| labels.remove("hami.io/vgpu-node"));
    let keeps_labels = floor == Floor::Sandbox || Release::of_tests().unwrap() > Release::V1_34;
    assert_eq!(
        labelled.as_deref(),
        keeps_labels.then_some("gpu-1"),
        "before 1.35, the labels of a Binding are dropped"
    );
    world.agents_are_content();
}

pub(crate) async fn a_volcano_pod_goes_to_a_volcano_node(floor: Floor) {
    let nodes = vec![hami_node("hami-1", 1), volcano_node("volcano-1", 2)];
    let Some(world) = World::start(floor, nodes).await else { return };
    world
        .create(pod("infer", &json!({"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "2000"})))
        .await;
    world.create(pod("train", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "50"}))).await;
    let infer = world.running("infer").await;
    assert_eq!(node_of(&infer), "volcano-1");
    assert_eq!(annotation(&infer, "volcano.sh/vgpu-ids-new"), "GPU-volcano-1-0,NVIDIA,2000,0:");
    assert_eq!(annotation(&infer, "volcano.sh/bind-phase"), "success");
    let train = world.running("train").await;
    assert_eq!(annotation(&train, "hami.io/vgpu-devices-allocated"), "GPU-hami-1-0,NVIDIA,8192,0:;");
    world.agents_are_content();
}

pub(crate) async fn pods_of_one_node_follow_each_other(floor: Floor) {
    let nodes = vec![hami_node("gpu-1", 4), volcano_node("volcano-1", 2)];
    let Some(world) = World::start(floor, nodes).await else { return };
    for at in 0..12 {
        world
            .create(pod(&format!("hami-{at}"), &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"})))
            .await;
        let vgpu = json!({"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "1000"});
        world.create(pod(&format!("volcano-{at}"), &vgpu)).await;
    }
    world.fleet.answered(24).await;
    for at in 0..12 {
        world.running(&format!("hami-{at}")).await;
        world.running(&format!("volcano-{at}")).await;
    }
    assert_eq!(world.fleet.rejected(), 0);
    world.agents_are_content();
}

pub(crate) async fn a_pod_that_does_not_fit_says_why_and_goes_when_room_comes(floor: Floor) {
    let Some(world) = World::start(floor, vec![hami_node("gpu-1", 1)]).await else { return };
    world.create(pod("first", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "10000"}))).await;
    world.running("first").await;
    world.create(pod("second", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "10000"}))).await;
    let why = world.why_it_waits("second").await;
    assert_eq!(
        why,
        "0/1 nodes are available: 1 Insufficient GPU memory. \
         nearest: gpu-1 lacks 3616 MiB on GPU-gpu-1-0; fits with at most 6384 MiB per card."
    );
    world.delete("first").await;
    world.running("second").await;
    assert_eq!(world.events("second", "FailedScheduling").await.len(), 1);
    world.agents_are_content();
}

pub(crate) async fn taints_cordons_and_affinity_are_honoured(floor: Floor) {
    let nodes = ["tainted", "cordoned", "wrong", "right"].map(|name| hami_node(name, 1).label("pool", name));
    let Some(world) = World::without_berth(floor, nodes.to_vec()).await else { return };
    let mut world = world;
    world.patch_node("tainted", json!({"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}})).await;
    world.patch_node("cordoned", json!({"spec": {"unschedulable": true}})).await;
    world.start_berth();
    let mut picky = pod("picky", &json!({"nvidia.com/gpu": "1"}));
    picky["spec"]["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "NotIn", "values": ["wrong"]}]}],
    }}});
    world.create(picky).await;
    assert_eq!(node_of(&world.running("picky").await), "right");
    let mut nowhere = pod("nowhere", &json!({"nvidia.com/gpu": "1", "cpu": "64"}));
    nowhere["spec"]["nodeSelector"] = json!({"pool": "right"});
    world.create(nowhere).await;
    assert_eq!(
        world.unschedulable("nowhere").await,
        "0/4 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector, \
         1 node(s) had untolerated taint(s), 1 node(s) were unschedulable."
    );
    world.agents_are_content();
}

pub(crate) async fn a_request_that_cannot_be_read_is_named(floor: Floor) {
    let Some(world) = World::start(floor, vec![hami_node("gpu-1", 1)]).await else { return };
    world.create(pod("bad", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "16Gi"}))).await;
    let message = world.unschedulable("bad").await;
    assert!(message.contains("spec.containers[0].resources.limits[nvidia.com/gpumem]"), "{message}");
    assert!(message.contains("`16384` for 16Gi"), "{message}");
}

pub(crate) async fn a_node_with_an_unreadable_registration_is_out_until_mended(floor: Floor) {
    let Some(mut world) = World::without_berth(floor, vec![hami_node("gpu-1", 1)]).await else { return };
    let key = "hami.io/node-nvidia-register";
    let good = world.nodes().get("gpu-1").await.unwrap().metadata.annotations.unwrap()[key].clone();
    world.patch_node("gpu-1", json!({"metadata": {"annotations": {key: "[{\"id\":"}}})).await;
    world.start_berth();
    world.create(pod("train", &json!({"nvidia.com/gpu": "1"}))).await;
    assert_eq!(
        world.unschedulable("train").await,
        "0/1 nodes are available: 1 node(s) had an unreadable GPU registration."
    );
    world.patch_node("gpu-1", json!({"metadata": {"annotations": {key: good}}})).await;
    world.running("train").await;
    world.agents_are_content();
}

pub(crate) async fn a_lock_without_an_owner_is_taken_over(floor: Floor) {
    let Some(mut world) =
        World::without_berth(floor, vec![hami_node("gone", 1), hami_node("broken", 1)]).await
    else {
        return;
    };
    let lock = "hami.io/mutex.lock";
    let held = "2026-01-01T00:00:00Z,default,deleted-long-ago";
    world.patch_node("gone", json!({"metadata": {"annotations": {lock: held}}})).await;
    world.patch_node("broken", json!({"metadata": {"annotations": {lock: "nonsense"}}})).await;
    world.start_berth();
    for at in 0..4 {
        world
            .create(pod(&format!("pod-{at}"), &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8000"})))
            .await;
    }
    for at in 0..4 {
        world.running(&format!("pod-{at}")).await;
    }
    world.agents_are_content();
}

#[allow(clippy::disallowed_methods, reason = "a lock says since when it is held")]
pub(crate) async fn a_fresh_lock_of_a_holder_that_cannot_exist_is_taken_over(floor: Floor) {
    let holders = ["default,a b", "default,a\0", "../../../version?,p", "default,../../../../version?"];
    let nodes = (0..holders.len()).map(|at| hami_node(&format!("gpu-{at}"), 1)).collect();
    let Some(mut world) = World::without_berth(floor, nodes).await else { return };
    let now = Timestamp::now();
    for (at, holder) in holders.iter().enumerate() {
        let held = format!("{now:.0},{holder}");
        let lock = json!({"metadata": {"annotations": {"hami.io/mutex.lock": held}}});
        world.patch_node(&format!("gpu-{at}"), lock).await;
    }
    world.start_berth();
    for at in 0..holders.len() {
        let mut pod = pod(&format!("pod-{at}"), &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8000"}));
        pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": format!("gpu-{at}")});
        world.create(pod).await;
    }
    for at in 0..holders.len() {
        world.running(&format!("pod-{at}")).await;
    }
    world.agents_are_content();
}

pub(crate) async fn a_failing_agent_costs_its_pod_only(floor: Floor) {
    let Some(world) = World::start(floor, vec![hami_node("gpu-1", 1)]).await else { return };
    let failing = Behaviour { answer: Answer::FailingEvery(2), ..Behaviour::default() };
    world.fleet.behave("gpu-1", failing).unwrap();
    for name in ["one", "two", "three"] {
        world.create(pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "7000"}))).await;
        world.pod_when(name, |pod| matches!(phase(pod), "Running" | "Failed")).await;
    }
    let failed = world.pods().get("two").await.unwrap();
    assert_eq!(phase(&failed), "Failed");
    assert_eq!(
        phase(&world.pods().get("three").await.unwrap()),
        "Running",
        "the failed pod's cards are free"
    );
    let told = world.pod_when("two", |pod| condition(pod, "berth.dev/DevicesAllocated").is_some()).await;
    let told = condition(&told, "berth.dev/DevicesAllocated").unwrap();
    assert_eq!((told.status.as_str(), told.reason.as_deref()), ("False", Some("FailedAllocation")));
    let event = world.event("two", "FailedAllocation").await;
    assert_eq!((event.type_.as_deref(), event.message), (Some("Warning"), told.message.clone()));
    world.agents_are_content();
}

/// Volcano's plugin looks at ended pods as well when it looks for the one to serve.
pub(crate) async fn a_failed_volcano_pod_is_not_served_in_place_of_the_next(floor: Floor) {
    let Some(world) = World::start(floor, vec![volcano_node("volcano-1", 1)]).await else { return };
    let failing = Behaviour { answer: Answer::FailingEvery(3), ..Behaviour::default() };
    world.fleet.behave("volcano-1", failing).unwrap();
    let vgpu = json!({"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "2000"});
    for name in ["one", "two", "three", "four", "five"] {
        world.create(pod(name, &vgpu)).await;
        let expected = if name == "three" { "Failed" } else { "Running" };
        let pod = world.pod_when(name, |pod| matches!(phase(pod), "Running" | "Failed")).await;
        assert_eq!(phase(&pod), expected, "{name}");
        let answer = if name == "three" { "failed" } else { "success" };
        assert_eq!(annotation(&pod, "volcano.sh/bind-phase"), answer, "{name}");
    }
    world.agents_are_content();
}

pub(crate) async fn a_restarted_binder_goes_on(floor: Floor) {
    let Some(mut world) = World::start(floor, vec![hami_node("gpu-1", 2)]).await else { return };
    world.create(pod("before", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "12000"}))).await;
    world.running("before").await;
    world.kill_berth().await;
    // As if it had died between lock and Binding.
    world.create(pod("between", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "12000"}))).await;
    let lock = "2026-01-01T00:00:00Z,default,between";
    world.patch_node("gpu-1", json!({"metadata": {"annotations": {"hami.io/mutex.lock": lock}}})).await;
    world.create(pod("too-much", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "12000"}))).await;
    world.start_berth();
    world.running("between").await;
    assert_eq!(world.unschedulable("too-much").await, "0/1 nodes are available: 1 Insufficient GPU memory.");
    world.agents_are_content();
}

/// The pod's condition of this type.
fn condition<'a>(pod: &'a core::Pod, kind: &str) -> Option<&'a core::PodCondition> {
    pod.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == kind)
}
