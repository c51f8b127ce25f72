//! The node around its plugin: what it rejects, what it gives back, how it answers when it is told to be slow or broken.

use std::time::Duration;

use berth_sandbox::agent::{
    Answer, Behaviour, Ending,
    audit::{Dimension, Violation},
    card::Health,
    node::Node,
};
use kube::{api::DeleteParams, runtime::wait::await_condition};
use serde_json::json;

use super::case::{Case, LIMIT, annotation, container, hami_node, hami_pod, reason};
use crate::support::server::say;

#[tokio::test]
async fn what_does_not_fit_card_or_request_is_a_violation() {
    let Some(case) = Case::start(vec![hami_node("n1")]).await else {
        return;
    };
    case.fleet.set_health("n1", "GPU-b", Health::Unhealthy).await.unwrap();
    let register = case.node_annotation("n1", "hami.io/node-nvidia-register").await.unwrap();
    assert_eq!(register.matches("\"health\":true").count(), 1, "{register}");
    for (count, devices) in [
        "GPU-a,NVIDIA,10000,0:;",
        "GPU-a,NVIDIA,10000,0:;",
        "GPU-b,NVIDIA,9000,0:;",
        "GPU-c,NVIDIA,10000,0:;",
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("p{count}");
        case.create(&name, hami_pod(1, 10000)).await;
        case.lock_hami("n1", &name).await;
        case.bind_hami(&name, "n1", devices).await;
        case.in_phase(&name, "Running").await;
    }
    let violations = case.fleet.violations();
    let text: Vec<String> = violations.iter().map(ToString::to_string).collect();
    assert_eq!(
        text,
        [
            "node n1: card GPU-a has 16384 MiB and 20000 are given away, last to default/p1",
            "pod default/p2: card GPU-b of node n1 is not healthy",
            "pod default/p2: container main asks for 10000 MiB and gets 9000 of card GPU-b",
            "pod default/p3: node n1 has no card GPU-c",
        ]
    );
    assert!(matches!(violations[0], Violation::Overcommitted { what: Dimension::Memory, .. }));
}

#[tokio::test]
async fn what_a_pod_held_is_free_once_it_is_gone() {
    let Some(case) = Case::start(vec![hami_node("n1")]).await else {
        return;
    };
    for name in ["p1", "p2"] {
        case.create(name, hami_pod(1, 10000)).await;
        case.lock_hami("n1", name).await;
        case.bind_hami(name, "n1", "GPU-a,NVIDIA,10000,0:;").await;
        let pod = case.in_phase(name, "Running").await;
        case.pods().delete(name, &DeleteParams::default()).await.unwrap();
        let gone = kube::runtime::conditions::is_deleted(pod.metadata.uid.as_deref().unwrap());
        let wait = tokio::time::timeout(LIMIT, await_condition(case.pods(), name, gone)).await;
        wait.expect("kubelet finalises the pod").unwrap();
    }
    case.assert_clean();
}

#[tokio::test]
async fn a_pod_that_does_not_heed_the_signal_holds_its_card_for_its_grace_period() {
    let Some(case) = Case::start(vec![hami_node("n1")]).await else {
        return;
    };
    case.fleet.behave("n1", Behaviour { ending: Ending::AfterGrace, ..Behaviour::default() }).unwrap();
    let mut spec = hami_pod(1, 10000);
    spec["terminationGracePeriodSeconds"] = json!(2);
    case.create("p1", spec).await;
    case.lock_hami("n1", "p1").await;
    case.bind_hami("p1", "n1", "GPU-a,NVIDIA,10000,0:;").await;
    let pod = case.in_phase("p1", "Running").await;
    let asked = tokio::time::Instant::now();
    case.pods().delete("p1", &DeleteParams::default()).await.unwrap();
    let gone = kube::runtime::conditions::is_deleted(pod.metadata.uid.as_deref().unwrap());
    tokio::time::timeout(LIMIT, await_condition(case.pods(), "p1", gone)).await.unwrap().unwrap();
    assert!(asked.elapsed() > Duration::from_millis(1900), "it ended after {:?}", asked.elapsed());
}

#[tokio::test]
async fn a_silent_node_answers_when_it_is_told_to_and_a_failing_one_fails_every_nth() {
    let Some(case) = Case::start(vec![hami_node("n1"), hami_node("n2")]).await else {
        return;
    };
    let behaviour = |answer| Behaviour { answer, ..Behaviour::default() };
    case.fleet.behave("n1", behaviour(Answer::Never)).unwrap();
    case.fleet.behave("n2", behaviour(Answer::FailingEvery(2))).unwrap();
    case.create("silent", hami_pod(1, 1000)).await;
    case.bind_hami("silent", "n1", "GPU-a,NVIDIA,1000,0:;").await;
    for (name, phase) in [("first", "Running"), ("second", "Failed"), ("third", "Running")] {
        case.create(name, hami_pod(1, 1000)).await;
        case.lock_hami("n2", name).await;
        case.bind_hami(name, "n2", "GPU-a,NVIDIA,1000,0:;").await;
        let pod = case.in_phase(name, phase).await;
        let bind_phase = if phase == "Running" { "success" } else { "failed" };
        assert_eq!(annotation(&pod, "hami.io/bind-phase"), bind_phase);
        assert_eq!(case.node_annotation("n2", "hami.io/mutex.lock").await, None);
    }
    let silent = case.pods().get("silent").await.unwrap();
    assert_eq!(silent.status.unwrap().phase.as_deref(), Some("Pending"));
    let delayed = Answer::After(Duration::from_millis(10));
    case.fleet
        .behave(
            "n1",
            Behaviour { answer: delayed, runs_for: Some(Duration::from_millis(10)), ..Behaviour::default() },
        )
        .unwrap();
    case.in_phase("silent", "Succeeded").await;
    case.assert_clean();
}

#[tokio::test]
async fn kubelet_rejects_what_the_node_has_no_room_for() {
    let Some(case) = Case::start(vec![Node::new("n1").allocatable("cpu", "2")]).await else {
        return;
    };
    let wanting = |cpu| json!({"containers": [container("main", &json!({"cpu": cpu}))]});
    case.create("p1", wanting("1500m")).await;
    case.bind("p1", "n1", json!({})).await;
    case.in_phase("p1", "Running").await;
    case.create("p2", wanting("1")).await;
    case.bind("p2", "n1", json!({})).await;
    assert_eq!(reason(&case.in_phase("p2", "Failed").await), "OutOfcpu");
    case.answered(2).await;
    assert_eq!((case.fleet.admitted(), case.fleet.rejected()), (1, 1));
}

#[tokio::test]
async fn many_nodes_are_served_by_one_watch() {
    let name = |number: usize| format!("n{number}");
    let nodes = (0..100).map(|number| hami_node(&name(number))).collect();
    let Some(case) = Case::start(nodes).await else {
        return;
    };
    for number in 0..100 {
        case.create(&name(number), hami_pod(1, 1000)).await;
    }
    let started = tokio::time::Instant::now();
    let bind = |number| {
        let (case, name) = (&case, name(number));
        async move {
            case.lock_hami(&name, &name).await;
            case.bind_hami(&name, &name, "GPU-a,NVIDIA,1000,0:;").await;
        }
    };
    futures::future::join_all((0..100).map(bind)).await;
    case.answered(100).await;
    let (writes, reads) = (case.fleet.writes() - 100, case.fleet.reads());
    say(&format!("100 pods in {:?}, {writes} writes, {reads} reads", started.elapsed()));
    assert_eq!(case.fleet.admitted(), 100);
    assert_eq!(writes, 400, "two patches of the pod, one of the node, one status each");
    case.assert_clean();
}
