//! Volcano's vGPU plugin: it tells pods apart by their count and age alone.

use berth_sandbox::agent::{Answer, Behaviour, audit::Violation};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::case::{Case, annotation, reason, two_cards, volcano_container};

#[tokio::test]
async fn volcano_finds_its_pod_by_count_and_age_and_closes_it() {
    let Some(case) = Case::start(vec![two_cards("n1").volcano()]).await else {
        return;
    };
    let register = case.node_annotation("n1", "volcano.sh/node-vgpu-register").await.unwrap();
    assert_eq!(register.matches(':').count(), 2);
    case.create("p1", json!({"containers": [volcano_container("main", 2000)]})).await;
    case.lock("n1", "hamivgpu", "2026-08-21T10:00:00Z").await;
    case.bind_volcano("p1", "n1", "GPU-a,NVIDIA,2000,0:").await;
    let pod = case.in_phase("p1", "Running").await;
    assert_eq!(annotation(&pod, "volcano.sh/bind-phase"), "success");
    assert_eq!(annotation(&pod, "volcano.sh/vgpu-time"), "18446744073709551615");
    assert_eq!(annotation(&pod, "volcano.sh/devices-to-allocate"), "");
    assert_eq!(case.node_annotation("n1", "hamivgpu").await, None);
    case.assert_clean();
}

#[tokio::test]
async fn volcano_fails_a_pod_of_two_sharing_containers_as_its_plugin_does() {
    let Some(case) = Case::start(vec![two_cards("n1").volcano()]).await else {
        return;
    };
    let containers = [volcano_container("one", 2000), volcano_container("two", 2000)];
    case.create("p1", json!({"containers": containers})).await;
    case.lock("n1", "hamivgpu", "2026-08-21T10:00:00Z").await;
    case.bind_volcano("p1", "n1", "GPU-a,NVIDIA,2000,0:;GPU-a,NVIDIA,2000,0:").await;
    let pod = case.in_phase("p1", "Failed").await;
    assert_eq!(reason(&pod), "UnexpectedAdmissionError");
    assert_eq!(annotation(&pod, "volcano.sh/bind-phase"), "allocating", "no pod was found to blame");
    assert_eq!(case.node_annotation("n1", "hamivgpu").await, None);
}

#[tokio::test]
async fn volcano_serves_the_next_pod_with_a_dead_ones_share_unless_that_is_closed() {
    let Some(case) = Case::start(vec![two_cards("n1").volcano()]).await else {
        return;
    };
    // Never bound, so that its kubelet has no part in it.
    case.create("dead", json!({"containers": [volcano_container("main", 2000)]})).await;
    let annotations = json!({
        "volcano.sh/vgpu-node": "n1", "volcano.sh/vgpu-time": "0", "volcano.sh/devices-to-allocate": "GPU-a,NVIDIA,2000,0:",
    });
    let failed =
        Patch::Merge(json!({"metadata": {"annotations": annotations}, "status": {"phase": "Failed"}}));
    case.pods().patch_status("dead", &PatchParams::default(), &failed).await.unwrap();
    case.create("next", json!({"containers": [volcano_container("main", 2000)]})).await;
    case.bind_volcano("next", "n1", "GPU-b,NVIDIA,2000,0:").await;
    case.in_phase("next", "Running").await;
    let wrong = Violation::WrongPod {
        node: "n1".to_owned(),
        admitting: "default/next".to_owned(),
        found: "default/dead".to_owned(),
    };
    assert_eq!(case.fleet.violations(), [wrong]);
}

#[tokio::test]
async fn volcano_closes_a_pod_that_it_fails() {
    let Some(case) = Case::start(vec![two_cards("n1").volcano()]).await else {
        return;
    };
    case.fleet.behave("n1", Behaviour { answer: Answer::FailingEvery(1), ..Behaviour::default() }).unwrap();
    case.create("p1", json!({"containers": [volcano_container("main", 2000)]})).await;
    case.bind_volcano("p1", "n1", "GPU-a,NVIDIA,2000,0:").await;
    let pod = case.in_phase("p1", "Failed").await;
    assert_eq!(annotation(&pod, "volcano.sh/bind-phase"), "failed");
    assert_eq!(annotation(&pod, "volcano.sh/vgpu-time"), "18446744073709551615");
}
