//! HAMi's device plugin: which pod it finds, which segment it takes, what it leaves behind.

use std::time::Duration;

use berth_sandbox::agent::{audit::Violation, handshake::Reports, wire::Release};
use k8s_openapi::api::core::v1 as core;
use kube::{
    api::{Patch, PatchParams},
    runtime::wait::await_condition,
};
use serde_json::json;

use super::case::{Case, LIMIT, annotation, container, hami_node, hami_pod, reason, two_cards};

#[tokio::test]
async fn hami_gives_each_container_its_segment_and_frees_the_node_after_the_last() {
    let old = two_cards("old").hami(Release::V2_7);
    let Some(case) = Case::start(vec![hami_node("new"), old]).await else {
        return;
    };
    let share = |count, memory| json!({"nvidia.com/gpu": count, "nvidia.com/gpumem": memory});
    let spec = json!({
        "initContainers": [container("prepare", &json!({}))],
        "containers": [
            container("train", &share(2, 3000)), container("log", &json!({})), container("serve", &share(1, 1000)),
        ],
    });
    let devices = ";GPU-a,NVIDIA,3000,0:GPU-b,NVIDIA,3000,0:;;GPU-a,NVIDIA,1000,0:;";
    // Four segments, and each of the two calls writes one separator more than it read; the old plugin drops the empty.
    for (node, left) in [("new", ";;;;;;"), ("old", "")] {
        case.create(node, spec.clone()).await;
        case.lock_hami(node, node).await;
        case.bind_hami(node, node, devices).await;

        let pod = case.in_phase(node, "Running").await;
        assert_eq!(annotation(&pod, "hami.io/bind-phase"), "success");
        assert_eq!(annotation(&pod, "hami.io/vgpu-devices-to-allocate"), left, "{node}");
        assert_eq!(annotation(&pod, "hami.io/vgpu-devices-allocated"), devices);
        assert_eq!(case.node_annotation(node, "hami.io/mutex.lock").await, None);
    }
    case.assert_clean();
}

#[tokio::test]
async fn hami_finds_a_pod_without_a_lock_by_its_bind_phase() {
    let Some(case) = Case::start(vec![hami_node("n1")]).await else {
        return;
    };
    case.create("p1", hami_pod(1, 1000)).await;
    case.bind_hami("p1", "n1", "GPU-b,NVIDIA,1000,0:;").await;
    case.in_phase("p1", "Running").await;
    case.create("p2", hami_pod(1, 1000)).await;
    case.lock("n1", "hami.io/mutex.lock", "2026-08-21T10:00:00Z").await;
    case.bind_hami("p2", "n1", "GPU-b,NVIDIA,1000,0:;").await;
    case.in_phase("p2", "Running").await;
    assert_eq!(
        case.node_annotation("n1", "hami.io/mutex.lock").await,
        None,
        "a legacy lock counts as its own"
    );
    case.assert_clean();
}

#[tokio::test]
async fn hami_fails_the_pod_and_frees_the_node_when_the_segment_has_the_wrong_length() {
    let Some(case) = Case::start(vec![hami_node("n1")]).await else {
        return;
    };
    case.create("p1", hami_pod(2, 1000)).await;
    case.lock_hami("n1", "p1").await;
    case.bind_hami("p1", "n1", "GPU-a,NVIDIA,1000,0:;").await;
    let pod = case.in_phase("p1", "Failed").await;
    assert_eq!(reason(&pod), "UnexpectedAdmissionError");
    assert_eq!(annotation(&pod, "hami.io/bind-phase"), "failed");
    assert_eq!(case.node_annotation("n1", "hami.io/mutex.lock").await, None);
    let [Violation::WrongCount { asked: 2, given: 1, .. }] = &case.fleet.violations()[..] else {
        panic!("{:?}", case.fleet.violations());
    };
}

#[tokio::test]
async fn hami_takes_the_segment_of_whoever_holds_the_lock() {
    let Some(case) = Case::start(vec![hami_node("n1")]).await else {
        return;
    };
    case.create("holder", hami_pod(1, 1000)).await;
    let annotations = json!({"hami.io/vgpu-devices-to-allocate": "GPU-a,NVIDIA,1000,0:;"});
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    case.pods().patch("holder", &PatchParams::default(), &patch).await.unwrap();
    case.lock_hami("n1", "holder").await;
    case.create("thief", hami_pod(1, 1000)).await;
    case.bind_hami("thief", "n1", "GPU-b,NVIDIA,1000,0:;").await;
    case.in_phase("thief", "Running").await;
    let wrong = Violation::WrongPod {
        node: "n1".to_owned(),
        admitting: "default/thief".to_owned(),
        found: "default/holder".to_owned(),
    };
    assert_eq!(case.fleet.violations(), [wrong]);
    let holder = case.pods().get("holder").await.unwrap();
    assert_eq!(annotation(&holder, "hami.io/bind-phase"), "success");
}

#[tokio::test]
async fn a_pod_without_any_assignment_is_rejected_and_touches_no_lock() {
    let Some(case) = Case::start(vec![hami_node("n1")]).await else {
        return;
    };
    case.lock("n1", "hami.io/mutex.lock", "2026-08-21T10:00:00Z,default,nobody").await;
    case.create("p1", hami_pod(1, 1000)).await;
    case.bind("p1", "n1", json!({})).await;
    assert_eq!(reason(&case.in_phase("p1", "Failed").await), "UnexpectedAdmissionError");
    assert!(case.node_annotation("n1", "hami.io/mutex.lock").await.is_some());
}

#[tokio::test]
async fn old_plugins_of_hamis_report_their_life_over_whatever_a_scheduler_has_answered() {
    let every = Duration::from_millis(100);
    let old = two_cards("old").hami(Release::V2_7).reporting(every, Duration::ZERO);
    let Some(case) = Case::start(vec![old, hami_node("new")]).await else { return };
    let key = "hami.io/node-handshake";
    let reports = |node: Option<&core::Node>| {
        let annotations = node.and_then(|node| node.metadata.annotations.as_ref());
        annotations.and_then(|own| own.get(key)).is_some_and(|value| value.starts_with("Reported 20"))
    };
    for answer in ["Requesting_2026-08-21 10:00:00", "Deleted_2026-08-21 10:00:00"] {
        case.lock("old", key, answer).await;
        tokio::time::timeout(LIMIT, await_condition(case.nodes(), "old", reports)).await.unwrap().unwrap();
    }
    case.fleet.report("old", Reports::Never).unwrap();
    assert_eq!(case.node_annotation("new", key).await, None, "from v2.8 on they report nothing");
}
