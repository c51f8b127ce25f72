//! What Berth takes for granted about the API server, asked of a real one.
//!
//! It must not test Berth itself.
#![cfg(feature = "sandbox")]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

use k8s_openapi::api::{
    core::v1::{Binding, Event, Namespace, Node, Pod},
    events,
};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::core::Status;
use serde_json::json;

use crate::support::floor::{Cluster, Floor};
use crate::support::identity::Identity;
use crate::support::{self, controlplane::Options};

fn parsed<K: serde::de::DeserializeOwned>(value: serde_json::Value) -> K {
    serde_json::from_value(value).unwrap()
}

async fn create_node(client: &kube::Client, name: &str) -> Node {
    let node = parsed(json!({"metadata": {"name": name}}));
    Api::all(client.clone()).create(&PostParams::default(), &node).await.unwrap()
}

async fn create_pod(client: &kube::Client, name: &str) -> Pod {
    let pod = parsed(json!({
        "metadata": {"name": name, "annotations": {"kept": "yes", "replaced": "old"}},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    }));
    Api::default_namespaced(client.clone()).create(&PostParams::default(), &pod).await.unwrap()
}

fn binding(pod: &Pod, node: &str) -> Binding {
    parsed(json!({
        "metadata": {
            "name": pod.metadata.name, "namespace": pod.metadata.namespace, "uid": pod.metadata.uid,
            "annotations": {"replaced": "new", "added": "1"}, "labels": {"placed": node},
        },
        "target": {"kind": "Node", "name": node},
    }))
}

async fn bind(client: &kube::Client, binding: &Binding) -> kube::Result<Status> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let name = binding.metadata.name.as_deref().unwrap();
    pods.create_subresource("binding", name, &PostParams::default(), binding).await
}

fn refusal<T: std::fmt::Debug>(result: kube::Result<T>) -> (u16, String) {
    match result {
        Err(kube::Error::Api(status)) => (status.code, status.message),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[tokio::test]
async fn a_binding_puts_node_annotations_and_labels_into_the_pod_in_one_write() {
    let Some(cluster) = Cluster::start(Floor::Real).await else {
        return;
    };
    create_node(&cluster.client, "n1").await;
    let pod = create_pod(&cluster.client, "p1").await;
    let pods: Api<Pod> = Api::default_namespaced(cluster.client.clone());
    let since = pod.metadata.resource_version.clone().unwrap();

    bind(&cluster.client, &binding(&pod, "n1")).await.unwrap();

    let writes = writes_since(&pods, &since).await;
    assert_eq!(writes.len(), 1, "{writes:?}");
    let bound = &writes[0];
    let annotations = bound.metadata.annotations.clone().unwrap();
    assert_eq!(bound.spec.as_ref().unwrap().node_name.as_deref(), Some("n1"));
    assert_eq!(annotations["kept"], "yes");
    assert_eq!(annotations["replaced"], "new");
    assert_eq!(annotations["added"], "1");
    assert_eq!(bound.metadata.labels.clone().unwrap()["placed"], "n1");
}

/// Every version of a pod that the server wrote after `since`, up to a marker pod that this creates.
async fn writes_since(pods: &Api<Pod>, since: &str) -> Vec<Pod> {
    use futures::StreamExt as _;
    let marker: Pod = parsed(json!({
        "metadata": {"name": "marker"}, "spec": {"containers": [{"name": "main", "image": "none"}]},
    }));
    pods.create(&PostParams::default(), &marker).await.unwrap();
    let stream = pods.watch(&kube::api::WatchParams::default(), since).await.unwrap();
    let mut stream = std::pin::pin!(stream);
    let mut writes = Vec::new();
    while let Some(event) = stream.next().await {
        match event.unwrap() {
            kube::api::WatchEvent::Modified(pod) => writes.push(pod),
            kube::api::WatchEvent::Added(pod) if pod.metadata.name.as_deref() == Some("marker") => break,
            other => panic!("unexpected {other:?}"),
        }
    }
    writes
}

#[tokio::test]
async fn a_binding_that_comes_too_late_or_for_another_pod_is_a_conflict() {
    let Some(cluster) = Cluster::start(Floor::Real).await else {
        return;
    };
    create_node(&cluster.client, "n1").await;
    let pod = create_pod(&cluster.client, "p1").await;

    let mut of_another = binding(&pod, "n1");
    of_another.metadata.uid = Some("00000000-0000-0000-0000-000000000000".to_owned());
    let (code, message) = refusal(bind(&cluster.client, &of_another).await);
    assert_eq!(code, 409);
    assert!(message.contains("Precondition failed: UID in precondition"), "{message}");

    bind(&cluster.client, &binding(&pod, "n1")).await.unwrap();
    let (code, message) = refusal(bind(&cluster.client, &binding(&pod, "n2")).await);
    assert_eq!(code, 409);
    assert!(message.contains("pod p1 is already assigned to node \"n1\""), "{message}");
}

#[tokio::test]
async fn a_merge_patch_with_a_stale_version_is_a_conflict_and_null_removes_a_key() {
    let Some(cluster) = Cluster::start(Floor::Real).await else {
        return;
    };
    let node = create_node(&cluster.client, "n1").await;
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let patch = |version: &Option<String>, value: serde_json::Value| {
        Patch::Merge(json!({"metadata": {"resourceVersion": version, "annotations": {"lock": value}}}))
    };
    let params = PatchParams::default();

    let locked =
        nodes.patch("n1", &params, &patch(&node.metadata.resource_version, json!("mine"))).await.unwrap();
    let stale = nodes.patch("n1", &params, &patch(&node.metadata.resource_version, json!("theirs"))).await;
    assert_eq!(refusal(stale).0, 409);
    let freed =
        nodes.patch("n1", &params, &patch(&locked.metadata.resource_version, json!(null))).await.unwrap();
    assert!(!freed.metadata.annotations.unwrap_or_default().contains_key("lock"));
}

#[tokio::test]
async fn the_legacy_bindings_path_binds_too() {
    let Some(cluster) = Cluster::start(Floor::Real).await else {
        return;
    };
    create_node(&cluster.client, "n1").await;
    let pod = create_pod(&cluster.client, "p1").await;
    let body = serde_json::to_vec(&binding(&pod, "n1")).unwrap();
    let request = http::Request::post("/api/v1/namespaces/default/bindings")
        .header("content-type", "application/json")
        .body(body)
        .unwrap();
    cluster.client.request_text(request).await.unwrap();
    let bound: Pod = Api::default_namespaced(cluster.client.clone()).get("p1").await.unwrap();
    assert_eq!(bound.spec.unwrap().node_name.as_deref(), Some("n1"));
    assert_eq!(bound.metadata.annotations.unwrap()["added"], "1");
}

#[tokio::test]
async fn an_identity_may_do_what_its_roles_say_and_events_are_kept() {
    let binder = Identity::service_account("berth", "binder");
    let user = binder.user.clone();
    let options = Options { identities: vec![binder], ..Options::default() };
    let Some(mut cluster) = Cluster::start_with(Floor::Real, options).await else {
        return;
    };
    let event = parsed::<Event>(json!({
        "metadata": {"name": "p1.1", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "p1", "namespace": "default"},
        "reason": "FailedScheduling", "message": "no card", "type": "Warning",
    }));
    let own: Api<Event> = Api::default_namespaced(cluster.client_of(&user));
    assert_eq!(refusal(own.create(&PostParams::default(), &event).await).0, 403);

    Api::default_namespaced(cluster.client.clone()).create(&PostParams::default(), &event).await.unwrap();
    let kept: Api<Event> = Api::default_namespaced(cluster.client.clone());
    assert_eq!(kept.get("p1.1").await.unwrap().reason.as_deref(), Some("FailedScheduling"));

    let metrics = cluster.control_plane().unwrap().metrics().await.unwrap();
    assert!(metrics.contains("apiserver_request_total"));
}

/// What has no namespace has its Events in `default`, and a namespace has its own in itself.
#[tokio::test]
async fn events_of_nodes_and_namespaces_are_kept() {
    let Some(cluster) = Cluster::start(Floor::Real).await else { return };
    for (namespace, regarding) in [
        ("default", json!({"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "n1"})),
        (
            "kube-system",
            json!({"apiVersion": "v1", "kind": "Namespace", "namespace": "kube-system", "name": "kube-system"}),
        ),
    ] {
        let event = parsed::<events::v1::Event>(json!({
            "metadata": {"name": "e"}, "regarding": regarding, "eventTime": "2026-01-01T00:00:00.000000Z",
            "type": "Warning", "reason": "LedgerDrift", "action": "Auditing", "note": "why",
            "reportingController": "berth", "reportingInstance": "berth",
        }));
        let written: Api<events::v1::Event> = Api::namespaced(cluster.client.clone(), namespace);
        written.create(&PostParams::default(), &event).await.unwrap();
        let read: Api<Event> = Api::namespaced(cluster.client.clone(), namespace);
        let read = read.get("e").await.unwrap();
        let said = [read.type_, read.reason, read.message, read.involved_object.kind].map(Option::unwrap);
        assert_eq!(said, ["Warning", "LedgerDrift", "why", regarding["kind"].as_str().unwrap()]);
    }
}

#[tokio::test]
async fn what_was_acknowledged_outlives_a_kill_of_both_servers() {
    let Some(mut cluster) = Cluster::start(Floor::Real).await else {
        return;
    };
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    namespaces.create(&PostParams::default(), &parsed(json!({"metadata": {"name": "kept"}}))).await.unwrap();

    let plane = cluster.control_plane().unwrap();
    plane.kill_apiserver();
    plane.kill_etcd();
    assert!(namespaces.get("kept").await.is_err(), "nobody answers while the servers are down");
    plane.start_etcd().await.unwrap();
    plane.start_apiserver().await.unwrap();
    assert_eq!(namespaces.get("kept").await.unwrap().metadata.name.as_deref(), Some("kept"));
}

#[tokio::test]
async fn a_kubeconfig_reaches_the_server() {
    let Some(mut cluster) = Cluster::start(Floor::Real).await else {
        return;
    };
    let path = cluster.control_plane().unwrap().kubeconfig("admin");
    let kubeconfig = kube::config::Kubeconfig::read_from(path).unwrap();
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &kube::config::KubeConfigOptions::default())
            .await
            .unwrap();
    let client = kube::Client::try_from(config).unwrap();
    let version = client.apiserver_version().await.unwrap();
    assert_eq!(version.major, "1");
}

#[tokio::test]
async fn a_second_scheduler_can_run_beside() {
    let Some(mut cluster) = Cluster::start(Floor::Real).await else {
        return;
    };
    let plane = cluster.control_plane().unwrap();
    let configuration = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": plane.kubeconfig("admin")},
        "leaderElection": {"leaderElect": false},
    });
    if let Err(reason) = plane.start_scheduler(&configuration.to_string()) {
        return support::server::say(&format!("NOT RUN: kube-scheduler: {reason}"));
    }
    create_node(&cluster.client, "n1").await;
    let status = Patch::Merge(json!({"status": {"allocatable": {"pods": "10"}, "capacity": {"pods": "10"}}}));
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    nodes.patch_status("n1", &PatchParams::default(), &status).await.unwrap();
    create_pod(&cluster.client, "p1").await;
    let pods: Api<Pod> = Api::default_namespaced(cluster.client.clone());
    let is_bound =
        |pod: Option<&Pod>| pod.and_then(|pod| pod.spec.as_ref()?.node_name.as_deref()) == Some("n1");
    let wait = kube::runtime::wait::await_condition(pods, "p1", is_bound);
    tokio::time::timeout(std::time::Duration::from_mins(1), wait).await.unwrap().unwrap();
}
