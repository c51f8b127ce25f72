//! Whether the simulated nodes do with an assignment what the real device plugins and kubelets do with it.
//!
//! It must not test Berth's choices: assignments are written by hand here.
#![cfg(feature = "sandbox")]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

#[path = "support/lib.rs"]
mod support;

use std::time::Duration;

use berth::sandbox::agent::audit::{Dimension, Violation};
use berth::sandbox::agent::cambricon::Spelling;
use berth::sandbox::agent::hami::Release;
use berth::sandbox::agent::handshake::Reports;
use berth::sandbox::agent::node::{Card, Health, Node, Plugin};
use berth::sandbox::agent::{Answer, Behaviour, Fleet};
use k8s_openapi::api::core::v1 as core;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::core::Status;
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};
use support::floor::{Cluster, Floor};

const LIMIT: Duration = Duration::from_mins(1);

/// A cluster with its fleet.
struct Case {
    cluster: Cluster,
    fleet: Fleet,
}

impl Case {
    async fn start(nodes: Vec<Node>) -> Option<Self> {
        let cluster = Cluster::start(Floor::Real).await?;
        let fleet = Fleet::start(cluster.client.clone(), nodes).await.unwrap();
        Some(Self { cluster, fleet })
    }

    fn pods(&self) -> Api<core::Pod> {
        Api::default_namespaced(self.cluster.client.clone())
    }

    fn nodes(&self) -> Api<core::Node> {
        Api::all(self.cluster.client.clone())
    }

    async fn create(&self, name: &str, spec: Value) -> core::Pod {
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        self.pods().create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap()
    }

    async fn bind(&self, name: &str, node: &str, annotations: Value) {
        let binding = json!({
            "metadata": {"name": name, "annotations": annotations},
            "target": {"kind": "Node", "name": node},
        });
        let binding: core::Binding = serde_json::from_value(binding).unwrap();
        let params = PostParams::default();
        self.pods().create_subresource::<_, Status>("binding", name, &params, &binding).await.unwrap();
    }

    async fn bind_hami(&self, name: &str, node: &str, devices: &str) {
        let annotations = json!({
            "hami.io/vgpu-node": node, "hami.io/vgpu-time": "1", "hami.io/bind-time": "1",
            "hami.io/bind-phase": "allocating",
            "hami.io/vgpu-devices-to-allocate": devices, "hami.io/vgpu-devices-allocated": devices,
        });
        self.bind(name, node, annotations).await;
    }

    async fn bind_volcano(&self, name: &str, node: &str, devices: &str) {
        let annotations = json!({
            "volcano.sh/vgpu-node": node, "volcano.sh/vgpu-time": "1", "volcano.sh/bind-time": "1",
            "volcano.sh/bind-phase": "allocating",
            "volcano.sh/devices-to-allocate": devices, "volcano.sh/vgpu-ids-new": devices,
        });
        self.bind(name, node, annotations).await;
    }

    async fn lock(&self, node: &str, key: &str, value: &str) {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {key: value}}}));
        self.nodes().patch(node, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn lock_hami(&self, node: &str, pod: &str) {
        let value = format!("2026-08-21T10:00:00Z,default,{pod}");
        self.lock(node, "hami.io/mutex.lock", &value).await;
    }

    async fn node_annotation(&self, node: &str, key: &str) -> Option<String> {
        self.nodes().get(node).await.unwrap().metadata.annotations.unwrap_or_default().remove(key)
    }

    /// The pod once it is in this phase.
    async fn in_phase(&self, name: &str, phase: &'static str) -> core::Pod {
        let is = move |pod: Option<&core::Pod>| {
            pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref()).is_some_and(|now| now == phase)
        };
        let wait = tokio::time::timeout(LIMIT, await_condition(self.pods(), name, is)).await;
        wait.unwrap_or_else(|_| panic!("{name} is not {phase}; {:?}", self.fleet.troubles()))
            .unwrap()
            .unwrap()
    }

    async fn answered(&self, pods: u64) {
        tokio::time::timeout(LIMIT, self.fleet.answered(pods)).await.unwrap();
    }

    fn assert_clean(&self) {
        assert_eq!(self.fleet.violations(), []);
        assert_eq!(self.fleet.troubles(), Vec::<String>::new());
    }
}

fn annotation<'a>(pod: &'a core::Pod, key: &str) -> &'a str {
    &pod.metadata.annotations.as_ref().unwrap()[key]
}

fn reason(pod: &core::Pod) -> &str {
    pod.status.as_ref().unwrap().reason.as_deref().unwrap()
}

fn two_cards(name: &str) -> Node {
    Node::new(name).card(Card::new("GPU-a", 0, 16384)).card(Card::new("GPU-b", 1, 16384))
}

fn hami_node(name: &str) -> Node {
    two_cards(name).hami(Release::V2_10)
}

fn container(name: &str, limits: &Value) -> Value {
    json!({"name": name, "image": "none", "resources": {"limits": limits}})
}

fn hami_pod(count: u32, memory: u32) -> Value {
    let limits = json!({"nvidia.com/gpu": count, "nvidia.com/gpumem": memory});
    json!({"containers": [container("main", &limits)]})
}

fn volcano_container(name: &str, memory: u32) -> Value {
    container(name, &json!({"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": memory}))
}

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
async fn a_silent_node_answers_when_it_is_told_to_and_a_failing_one_fails_every_nth() {
    let Some(case) = Case::start(vec![hami_node("n1"), hami_node("n2")]).await else {
        return;
    };
    let behaviour = |answer| Behaviour { answer, runs_for: None };
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
        .behave("n1", Behaviour { answer: delayed, runs_for: Some(Duration::from_millis(10)) })
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
    case.fleet.behave("n1", Behaviour { answer: Answer::FailingEvery(1), runs_for: None }).unwrap();
    case.create("p1", json!({"containers": [volcano_container("main", 2000)]})).await;
    case.bind_volcano("p1", "n1", "GPU-a,NVIDIA,2000,0:").await;
    let pod = case.in_phase("p1", "Failed").await;
    assert_eq!(annotation(&pod, "volcano.sh/bind-phase"), "failed");
    assert_eq!(annotation(&pod, "volcano.sh/vgpu-time"), "18446744073709551615");
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
    support::server::say(&format!("100 pods in {:?}, {writes} writes, {reads} reads", started.elapsed()));
    assert_eq!(case.fleet.admitted(), 100);
    assert_eq!(writes, 400, "two patches of the pod, one of the node, one status each");
    case.assert_clean();
}

/// Annotations of a pod that got this of a vendor whose plugin speaks HAMi's protocol.
fn of_vendor(node: &str, word: &str, devices: &str) -> Value {
    json!({
        "hami.io/vgpu-node": node, "hami.io/vgpu-time": "1", "hami.io/bind-time": "1",
        "hami.io/bind-phase": "allocating",
        format!("hami.io/{word}-devices-to-allocate"): devices, format!("hami.io/{word}-devices-allocated"): devices,
    })
}

fn amd_share(name: &str) -> Value {
    container(name, &json!({"amd.com/gpu": 1, "amd.com/gpumem": 1000, "amd.com/gpucores": 50}))
}

#[tokio::test]
async fn amds_plugin_masks_units_under_the_pods_lock_and_serves_one_container() {
    let node = Node::new("n1").card(Card { cores: 304, ..Card::new("AMD-a", 0, 65_536) }).plugin(Plugin::Amd);
    let Some(case) = Case::start(vec![node]).await else { return };
    for (name, mask) in [("p1", "0-151"), ("p2", "152-303")] {
        case.create(name, json!({"containers": [amd_share("main")]})).await;
        case.lock_hami("n1", name).await;
        case.bind(name, "n1", of_vendor("n1", "amd", "AMD-a,AMD,1000,152:;")).await;
        let pod = case.in_phase(name, "Running").await;
        assert_eq!(annotation(&pod, "hami.io/amd-cu-allocated"), format!(r#"{{"AMD-a":"{mask}"}}"#));
        assert_eq!(case.node_annotation("n1", "hami.io/mutex.lock").await, None);
    }
    case.assert_clean();
    case.pods().delete("p1", &DeleteParams::default()).await.unwrap();
    // Without a lock it has masked nothing yet; two containers are one too many.
    case.create("unlocked", json!({"containers": [amd_share("main")]})).await;
    case.bind("unlocked", "n1", of_vendor("n1", "amd", "AMD-a,AMD,1000,152:;")).await;
    let unlocked = case.in_phase("unlocked", "Failed").await;
    assert!(!unlocked.metadata.annotations.unwrap().contains_key("hami.io/amd-cu-allocated"));
    case.create("two", json!({"containers": [amd_share("one"), amd_share("two")]})).await;
    case.lock_hami("n1", "two").await;
    case.bind("two", "n1", of_vendor("n1", "amd", "AMD-a,AMD,1000,152:;AMD-a,AMD,1000,152:;")).await;
    let two = case.in_phase("two", "Failed").await;
    assert_eq!(annotation(&two, "hami.io/bind-phase"), "success", "after the first container");
}

#[tokio::test]
async fn birens_plugin_never_says_that_a_pod_is_served_and_keeps_the_lock_of_one_that_failed() {
    let card = |index: u32| {
        Card { cores: 0, ..Card::new(&format!("card_{index}"), index, 65_024) }.slots(1).product("Biren106B")
    };
    let Some(case) =
        Case::start(vec![Node::new("n1").card(card(0)).card(card(1)).plugin(Plugin::Biren)]).await
    else {
        return;
    };
    let register = case.node_annotation("n1", "hami.io/node-biren-register").await.unwrap();
    assert!(
        register.starts_with(r#"[{"id":"card_0","count":1,"devmem":65024,"type":"Biren106B","#),
        "{register}"
    );
    let spec = json!({"containers": [container("main", &json!({"birentech.com/gpu": 1}))]});
    case.create("p1", spec.clone()).await;
    case.lock_hami("n1", "p1").await;
    case.bind("p1", "n1", of_vendor("n1", "Biren", "card_0,Biren,0,0:;")).await;
    assert_eq!(annotation(&case.in_phase("p1", "Running").await, "hami.io/bind-phase"), "allocating");
    assert_eq!(case.node_annotation("n1", "hami.io/mutex.lock").await, None);
    case.assert_clean();
    case.create("p2", spec).await;
    case.lock_hami("n1", "p2").await;
    case.bind("p2", "n1", of_vendor("n1", "Biren", "card_0,Biren,0,0:card_1,Biren,0,0:;")).await;
    assert_eq!(annotation(&case.in_phase("p2", "Failed").await, "hami.io/bind-phase"), "failed");
    assert!(case.node_annotation("n1", "hami.io/mutex.lock").await.unwrap().ends_with(",default,p2"));
}

fn mlu_pod() -> Value {
    let limits = json!({"cambricon.com/vmlu": 1, "cambricon.com/mlu.smlu.vcore": 20, "cambricon.com/mlu.smlu.vmemory": 4});
    json!({"containers": [container("main", &limits)]})
}

fn of_cambricon(profile: &str, devices: &str) -> Value {
    json!({
        "CAMBRICON_DSMLU_ASSIGNED": "false", "CAMBRICON_DSMLU_PROFILE": profile,
        "hami.io/cambricon-mlu-devices-allocated": devices,
    })
}

#[tokio::test]
async fn cambricons_plugin_cuts_at_its_first_call_and_frees_the_node_at_its_second() {
    let card = |index| Card::new(&format!("n1-cambricon-mlu-{index}"), index, 24_576).slots(100);
    let node = Node::new("n1").card(card(0)).card(card(1)).plugin(Plugin::Cambricon(Spelling::Assigned));
    let Some(case) = Case::start(vec![node]).await else { return };
    let capacity = case.nodes().get("n1").await.unwrap().status.unwrap().capacity.unwrap();
    assert_eq!(capacity["cambricon.com/mlu.smlu.vcore"].0, "200");
    assert_eq!(capacity["cambricon.com/mlu.smlu.vmemory"].0, "192");
    let lock = "cambricon.com/dsmlu.lock";
    case.lock("n1", lock, "2026-08-21T10:00:00Z").await;
    case.create("p1", mlu_pod()).await;
    case.bind("p1", "n1", of_cambricon("1_20_4", "n1-cambricon-mlu-1,MLU,1024,20:;")).await;
    let served = case.in_phase("p1", "Running").await;
    assert_eq!(annotation(&served, "CAMBRICON_DSMLU_ASSIGNED"), "true");
    assert_eq!(annotation(&served, "CAMBRICON_DSMLU_PROFILE_INSTANCE"), "1_257_1_1");
    assert_eq!(case.node_annotation("n1", lock).await, None);
    case.assert_clean();
    // A profile that is not the share of the record, on a node that is not locked.
    case.create("p2", mlu_pod()).await;
    case.bind("p2", "n1", of_cambricon("0_20_4", "n1-cambricon-mlu-1,MLU,1024,20:;")).await;
    case.in_phase("p2", "Running").await;
    let violations = case.fleet.violations();
    let [Violation::WrongTemplate { .. }, Violation::Unlocked { .. }] = &violations[..] else {
        panic!("{violations:?}");
    };
}

#[tokio::test]
async fn cambricons_plugin_frees_the_node_of_a_pod_that_it_never_served_once_that_is_gone() {
    let card = Card::new("n1-cambricon-mlu-0", 0, 24_576).slots(100);
    let node = Node::new("n1").card(card).plugin(Plugin::Cambricon(Spelling::Assigned));
    let Some(case) = Case::start(vec![node]).await else { return };
    let lock = "cambricon.com/dsmlu.lock";
    case.lock("n1", lock, "2026-08-21T10:00:00Z").await;
    case.create("p1", mlu_pod()).await;
    case.bind("p1", "n1", of_cambricon("7_20_4", "n1-cambricon-mlu-0,MLU,1024,20:;")).await;
    case.in_phase("p1", "Failed").await;
    assert!(case.node_annotation("n1", lock).await.is_some(), "a failure frees nothing");
    case.pods().delete("p1", &DeleteParams::default()).await.unwrap();
    let freed = |node: Option<&core::Node>| {
        node.is_some_and(|node| !node.metadata.annotations.as_ref().is_some_and(|own| own.contains_key(lock)))
    };
    tokio::time::timeout(LIMIT, await_condition(case.nodes(), "n1", freed)).await.unwrap().unwrap();
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
