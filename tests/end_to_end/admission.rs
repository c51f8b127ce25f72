//! The webhook before the binder: what comes in is patched, what contradicts itself is refused, the rest is left alone.

use k8s_openapi::api::core::v1 as core;
use std::time::Duration;

use kube::{
    Api,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    machines::{hami_node, volcano_node},
    support::floor::Floor,
    world::{World, annotation, node_of, pod},
};

/// A pod that leaves the scheduler to Berth.
fn share(name: &str, limits: &Value) -> Value {
    let mut pod = pod(name, limits);
    pod["spec"].as_object_mut().unwrap().remove("schedulerName");
    pod
}

async fn submit(world: &World, pod: Value, dry_run: bool) -> Result<core::Pod, kube::Error> {
    let params = PostParams { dry_run, ..PostParams::default() };
    world.pods().create(&params, &serde_json::from_value(pod).unwrap()).await
}

fn denial(outcome: Result<core::Pod, kube::Error>) -> String {
    match outcome {
        Err(kube::Error::Api(status)) => {
            assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"), "{status:?}");
            status.message.clone()
        }
        other => panic!("it was not denied: {other:?}"),
    }
}

fn scheduler(pod: &core::Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.scheduler_name.as_deref()).unwrap_or_default()
}

pub(crate) async fn a_share_of_an_opted_in_namespace_is_patched_and_placed(floor: Floor) {
    let hints = json!({"nvidia.com/use-gpuuuid": "GPU-gpu-1-1"});
    let nodes = vec![hami_node("gpu-1", 2), volcano_node("volcano-1", 1)];
    let Some(world) = World::with_webhook(floor, nodes, hints).await else { return };
    let created = submit(&world, share("train", &json!({"nvidia.com/gpumem": "3000"})), false).await.unwrap();
    assert_eq!(scheduler(&created), "berth");
    assert_eq!(annotation(&created, "nvidia.com/use-gpuuuid"), "GPU-gpu-1-1");
    let limits = created.spec.unwrap().containers[0].resources.clone().unwrap().limits.unwrap();
    assert_eq!(limits["nvidia.com/gpu"].0, "1", "the default count");
    let bound = world.running("train").await;
    assert_eq!(node_of(&bound), "gpu-1");
    assert_eq!(annotation(&bound, "hami.io/vgpu-devices-allocated"), "GPU-gpu-1-1,NVIDIA,3000,0:;");
    world.agents_are_content();
}

pub(crate) async fn contradictions_are_refused_before_a_pod_exists(floor: Floor) {
    let Some(world) = World::with_webhook(floor, vec![hami_node("gpu-1", 1)], json!({})).await else {
        return;
    };
    let mixed = share("mixed", &json!({"nvidia.com/gpu": "1", "volcano.sh/vgpu-number": "1"}));
    let message = denial(submit(&world, mixed, false).await);
    assert!(message.contains("denied the request") && message.contains("mode-conflict"), "{message}");
    let half = share("gibibytes", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "16Gi"}));
    let message = denial(submit(&world, half, false).await);
    assert!(message.contains("`16384` for 16Gi"), "{message}");
    for name in ["mixed", "gibibytes"] {
        assert!(world.pods().get_opt(name).await.unwrap().is_none());
    }
}

/// What a dry run is warned of, once it is as wanted: what is seen of the cluster is a moment behind.
async fn dry_run(world: &World, pod: &Value, wanted: &[&str]) {
    let mut again = tokio::time::interval(Duration::from_millis(50));
    let mut last = Vec::new();
    let told = async {
        loop {
            again.tick().await;
            let (answered, warnings) = world.dry_run(pod).await;
            assert_eq!(scheduler(&answered), "berth");
            last = warnings;
            if last == wanted {
                return;
            }
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(30), told).await;
    assert!(in_time.is_ok(), "the last warnings were {last:#?}");
}

pub(crate) async fn a_dry_run_is_told_the_place_and_leaves_nothing(floor: Floor) {
    let nodes = vec![hami_node("gpu-1", 1), hami_node("gpu-2", 1), volcano_node("volcano-1", 1)];
    let Some(world) = World::with_webhook(floor, nodes, json!({})).await else { return };
    let half = json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "9000", "nvidia.com/gpucores": "30"});
    let elsewhere = "1/2 other nodes are available: 1 node(s) had no GPUs of the kind that the Pod asks for.";
    let first = ["would now be placed on gpu-1: GPU-gpu-1-0 (9000 MiB, 30 %)", elsewhere];
    dry_run(&world, &share("dry", &half), &first).await;
    assert!(world.pods().get_opt("dry").await.unwrap().is_none());

    submit(&world, share("meant", &half), false).await.unwrap();
    assert_eq!(node_of(&world.running("meant").await), "gpu-1", "as the dry run was told");
    let elsewhere = "0/2 other nodes are available: 1 Insufficient GPU memory, \
                     1 node(s) had no GPUs of the kind that the Pod asks for.";
    let second = ["would now be placed on gpu-2: GPU-gpu-2-0 (9000 MiB, 30 %)", elsewhere];
    dry_run(&world, &share("dry", &half), &second).await;
    assert_eq!(world.pods().list(&ListParams::default()).await.unwrap().items.len(), 1);
    world.agents_are_content();
}

pub(crate) async fn a_dry_run_that_fits_nowhere_is_told_why(floor: Floor) {
    let nodes = vec![hami_node("gpu-1", 1), volcano_node("volcano-1", 1)];
    let Some(world) = World::with_webhook(floor, nodes, json!({})).await else { return };
    let pod = share("large", &json!({"nvidia.com/gpu": "1", "cpu": "33"}));
    let why = "would not be placed now: 0/2 nodes are available: 2 Insufficient cpu. \
               nearest: gpu-1 lacks 1 cpu.";
    dry_run(&world, &pod, &[why]).await;
    let taint = json!({"spec": {"taints": [{"key": "keep", "effect": "NoSchedule"}]}});
    world.patch_node("gpu-1", taint).await;
    let why = "would not be placed now: 0/2 nodes are available: 1 node(s) had no GPUs of the kind that the Pod asks for, \
               1 node(s) had untolerated taint(s). nearest: gpu-1: had untolerated taint(s).";
    dry_run(&world, &share("tainted", &json!({"nvidia.com/gpu": "1"})), &[why]).await;
    assert!(world.pods().list(&ListParams::default()).await.unwrap().items.is_empty());
}

pub(crate) async fn a_replica_that_does_not_lead_answers_dry_runs_too(floor: Floor) {
    let Some(world) = World::with_the_webhook_of_a_follower(floor, vec![hami_node("gpu-1", 1)]).await else {
        return;
    };
    let half = json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "9000"});
    let fits = ["would now be placed on gpu-1: GPU-gpu-1-0 (9000 MiB, 0 %)"];
    dry_run(&world, &share("dry", &half), &fits).await;
    submit(&world, share("meant", &half), false).await.unwrap();
    world.running("meant").await;
    let full = ["would not be placed now: 0/1 nodes are available: 1 Insufficient GPU memory. \
                 nearest: gpu-1 lacks 1616 MiB on GPU-gpu-1-0; fits with at most 7384 MiB per card."];
    dry_run(&world, &share("dry", &half), &full).await;
    assert_eq!(world.leader().await, "leader");
    let metrics = world.metrics().await;
    let build = format!("berth_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"));
    for line in ["berth_scheduler_leader 0", "berth_scheduler_synced 1", &build] {
        assert!(metrics.lines().any(|have| have == line), "{line} in {metrics}");
    }
    world.agents_are_content();
}

pub(crate) async fn a_pod_that_is_let_in_is_handed_to_the_binder(floor: Floor) {
    let Some(world) = World::with_webhook(floor, vec![hami_node("gpu-1", 1)], json!({})).await else {
        return;
    };
    let taken = "berth_admission_hints_total{outcome=\"taken\"}";
    let metrics = world.metrics().await;
    assert!(metrics.contains(&format!("{taken} 0")), "dry runs hint at nothing: {metrics}");
    for name in ["one", "two"] {
        submit(&world, share(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"})), false)
            .await
            .unwrap();
        world.running(name).await;
    }
    let metrics = world.metrics().await;
    assert!(metrics.contains(&format!("{taken} 2")), "{metrics}");
    world.agents_are_content();
}

pub(crate) async fn what_is_not_berths_is_left_alone(floor: Floor) {
    let Some(world) = World::with_webhook(floor, vec![hami_node("gpu-1", 1)], json!({})).await else {
        return;
    };
    let plain = submit(&world, share("plain", &json!({"cpu": "1"})), false).await.unwrap();
    assert_eq!(scheduler(&plain), "default-scheduler");
    let mut foreign = pod("foreign", &json!({"nvidia.com/gpu": "1"}));
    foreign["spec"]["schedulerName"] = "volcano".into();
    assert_eq!(scheduler(&submit(&world, foreign, false).await.unwrap()), "volcano");
    let outside: Api<core::Namespace> = Api::all(world.cluster.client.clone());
    let namespace = json!({"metadata": {"name": "outside"}});
    outside.create(&PostParams::default(), &serde_json::from_value(namespace).unwrap()).await.unwrap();
    let pods: Api<core::Pod> = Api::namespaced(world.cluster.client.clone(), "outside");
    let guest = serde_json::from_value(share("guest", &json!({"nvidia.com/gpu": "1"}))).unwrap();
    assert_eq!(scheduler(&pods.create(&PostParams::default(), &guest).await.unwrap()), "default-scheduler");
}
