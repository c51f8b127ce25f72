//! Namespaces that give Berth all their pods, by the label `berth.dev/pods: all`.

use k8s_openapi::api::core::v1 as core;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
    runtime::wait::await_condition,
};
use serde_json::{Value, json};

use crate::{
    machines::hami_node,
    support::floor::Floor,
    world::{LIMIT, World, node_of, pod},
};

/// A pod that names no scheduler.
fn nobodys(name: &str, limits: &Value) -> Value {
    let mut pod = pod(name, limits);
    pod["spec"].as_object_mut().unwrap().remove("schedulerName");
    pod
}

/// A pod without a share that names no scheduler.
fn plain(name: &str) -> Value {
    nobodys(name, &json!({"cpu": "1"}))
}

/// The pods of a namespace that has these labels from now on.
async fn namespace(world: &World, name: &str, labels: Value) -> Api<core::Pod> {
    let namespaces: Api<core::Namespace> = Api::all(world.cluster.client.clone());
    let labelled = json!({"metadata": {"name": name, "labels": labels}});
    if namespaces.get_opt(name).await.unwrap().is_some() {
        namespaces.patch(name, &PatchParams::default(), &Patch::Merge(labelled)).await.unwrap();
    } else {
        let namespace = serde_json::from_value(labelled).unwrap();
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    }
    Api::namespaced(world.cluster.client.clone(), name)
}

/// The scheduler that the pod has once it is stored.
async fn scheduler(pods: &Api<core::Pod>, pod: Value) -> String {
    let pod = serde_json::from_value(pod).unwrap();
    let created = pods.create(&PostParams::default(), &pod).await.unwrap();
    created.spec.and_then(|spec| spec.scheduler_name).unwrap_or_default()
}

/// The pod, once it has a node.
async fn bound(pods: &Api<core::Pod>, name: &str) -> core::Pod {
    let has_node = |pod: Option<&core::Pod>| pod.is_some_and(|pod| !node_of(pod).is_empty());
    let bound = tokio::time::timeout(LIMIT, await_condition(pods.clone(), name, has_node)).await;
    bound.expect("the pod is bound in time").unwrap().expect("the condition asks for a pod")
}

pub(crate) async fn a_labelled_namespace_gives_berth_its_pods_without_a_share(floor: Floor) {
    let Some(world) = World::with_webhook(floor, vec![hami_node("gpu-1", 1)], json!({})).await else {
        return;
    };
    let web = namespace(&world, "web", json!({"berth.dev/pods": "all"})).await;
    assert_eq!(scheduler(&web, plain("site")).await, "berth");
    let mut written_out = plain("written-out");
    written_out["spec"]["schedulerName"] = "default-scheduler".into();
    assert_eq!(scheduler(&web, written_out).await, "berth");
    for name in ["site", "written-out"] {
        let pod = bound(&web, name).await;
        assert_eq!(node_of(&pod), "gpu-1");
        assert_eq!(pod.metadata.annotations, None, "nothing is assigned to a pod without a share");
    }

    let mut foreign = plain("foreign");
    foreign["spec"]["schedulerName"] = "volcano".into();
    assert_eq!(scheduler(&web, foreign).await, "volcano");
    let mut daemon = plain("daemon");
    daemon["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": true}]);
    let mut opted_out = plain("opted-out");
    opted_out["metadata"]["labels"] = json!({"berth.dev/admission": "ignore"});
    let mut refused = plain("refused");
    refused["metadata"]["annotations"] = json!({"berth.dev/expected-duration": "soon"});
    let share = nobodys("share", &json!({"nvidia.com/gpu": "1"}));
    for pod in [daemon, opted_out, refused, share] {
        assert_eq!(scheduler(&web, pod.clone()).await, "default-scheduler", "{pod}");
    }
    let other = namespace(&world, "other", json!({"berth.dev/pods": "none"})).await;
    assert_eq!(scheduler(&other, plain("site")).await, "default-scheduler");
    let unlabelled = namespace(&world, "unlabelled", json!({})).await;
    assert_eq!(scheduler(&unlabelled, plain("site")).await, "default-scheduler");
    world.agents_are_content();
}

pub(crate) async fn kube_system_and_berths_own_namespace_give_away_no_pod(floor: Floor) {
    let Some(world) = World::with_webhook(floor, vec![hami_node("gpu-1", 1)], json!({})).await else {
        return;
    };
    for name in ["kube-system", "berth-system"] {
        let pods = namespace(&world, name, json!({"berth.dev/pods": "all"})).await;
        assert_eq!(scheduler(&pods, plain("part")).await, "default-scheduler", "{name}");
    }
}

pub(crate) async fn a_pod_with_a_share_is_admitted_once_beside_the_label(floor: Floor) {
    let Some(world) = World::with_webhook(floor, vec![hami_node("gpu-1", 1)], json!({})).await else {
        return;
    };
    let labels = json!({"berth.dev/admission": "enabled", "berth.dev/pods": "all"});
    let train = namespace(&world, "train", labels).await;
    let share = nobodys("share", &json!({"nvidia.com/gpumem": "3000"}));
    assert_eq!(scheduler(&train, share).await, "berth");
    assert_eq!(scheduler(&train, plain("plain")).await, "berth");
    let share = bound(&train, "share").await;
    let limits = share.spec.unwrap().containers[0].resources.clone().unwrap().limits.unwrap();
    assert_eq!(limits["nvidia.com/gpu"].0, "1", "the default count");
    bound(&train, "plain").await;
    let metrics = world.metrics().await;
    for line in [
        "berth_admission_hints_total{outcome=\"taken\"} 1",
        "berth_admission_reviews_total{path=\"adopt\",outcome=\"admitted\"} 1",
    ] {
        assert!(metrics.lines().any(|have| have == line), "{line} in {metrics}");
    }
    world.agents_are_content();
}

pub(crate) async fn pods_without_a_share_are_created_while_berth_is_away(floor: Floor) {
    let Some(mut world) = World::with_webhook(floor, vec![hami_node("gpu-1", 1)], json!({})).await else {
        return;
    };
    let web = namespace(&world, "web", json!({"berth.dev/pods": "all"})).await;
    assert_eq!(scheduler(&web, plain("before")).await, "berth");
    bound(&web, "before").await;
    let labels = json!({"berth.dev/admission": "enabled", "berth.dev/pods": "all"});
    let train = namespace(&world, "train", labels).await;
    world.kill_berth().await;
    assert_eq!(scheduler(&web, plain("after")).await, "default-scheduler");
    // The sandbox evaluates no match conditions, which keep the pod from the webhooks that fail closed.
    if floor == Floor::Real {
        assert_eq!(scheduler(&train, plain("after")).await, "default-scheduler");
    }
}
