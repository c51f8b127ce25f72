//! HAMi's scheduler at work: filter, node lock, phase, Binding, in the order and form of HAMi v2.10.0 and under its account's rights.
//!
//! Source: `pkg/scheduler/scheduler.go` (`Filter`, `Bind`), `pkg/util/nodelock/nodelock.go`. It must not know Berth.
#![allow(clippy::disallowed_methods, reason = "a lock says since when it is held")]

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    support::{controlplane::ControlPlane, server::pause},
    take_over::{chart, filter},
};

const LOCK: &str = "hami.io/mutex.lock";
const POD: &str = "hami-scheduler-0";
/// So long a scheduler takes at least from when its pod is created until it takes its first lock: its image, its container, its Lease, its lists.
const START: Duration = Duration::from_secs(2);
/// No kubelet of the test has this node.
pub(crate) const CONTROL_PLANE: &str = "control-plane";

/// The scheduler, at work until it is dropped or killed.
pub(crate) struct Scheduler {
    task: JoinSet<()>,
    pods: Api<Pod>,
}

impl Scheduler {
    /// Its pod, as the chart's Deployment makes it, and its process.
    pub(crate) async fn start(plane: &Arc<ControlPlane>) -> Self {
        let pods: Api<Pod> = Api::namespaced(plane.admin(), "kube-system");
        let labels = json!({"app.kubernetes.io/component": "hami-scheduler", "hami.io/webhook": "ignore"});
        let command = ["scheduler", "--http_bind=0.0.0.0:443", "--scheduler-name=hami-scheduler"];
        let container = json!({"name": "vgpu-scheduler-extender", "image": "none", "command": command});
        let spec = json!({"nodeName": CONTROL_PLANE, "containers": [container]});
        chart::create(&pods, json!({"metadata": {"name": POD, "labels": labels}, "spec": spec})).await;
        let mut task = JoinSet::new();
        let client = plane.client(chart::SCHEDULER);
        task.spawn(async {
            tokio::time::sleep(START).await;
            work(client).await;
        });
        Self { task, pods }
    }

    /// Ends it as `kill -9` does, and what it was about to do with it.
    pub(crate) async fn kill(mut self) {
        self.task.shutdown().await;
        self.pods.delete(POD, &DeleteParams::default().grace_period(0)).await.unwrap();
    }
}

async fn work(client: Client) {
    let all: Api<Pod> = Api::all(client.clone());
    loop {
        let pods = all.list(&ListParams::default()).await.unwrap().items;
        for pod in pods.iter().filter(|pod| waits(pod)) {
            // What was decided since counts, too.
            let pods = all.list(&ListParams::default()).await.unwrap().items;
            if let Some((node, devices)) = filter::choose(pod, &pods) {
                place(&client, pod, node, &devices).await;
            }
        }
        pause().await;
    }
}

fn waits(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref().unwrap();
    spec.scheduler_name.as_deref() == Some("hami-scheduler")
        && spec.node_name.is_none()
        && pod.metadata.deletion_timestamp.is_none()
        && crate::take_over::seen::phase(pod) == "Pending"
}

/// The decision is written before the lock is asked for; a pod whose lock or Binding fails is filtered again.
async fn place(client: &Client, pod: &Pod, node: &str, devices: &str) {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap());
    let (name, now) = (pod.name_any(), Timestamp::now());
    let seconds = now.as_second().to_string();
    let annotations = json!({
        "hami.io/vgpu-node": node, "hami.io/vgpu-time": seconds,
        "hami.io/vgpu-devices-to-allocate": devices, "hami.io/vgpu-devices-allocated": devices,
    });
    let decision = json!({"metadata": {"annotations": annotations, "labels": {"hami.io/vgpu-node": node}}});
    if pods.patch(&name, &PatchParams::default(), &Patch::Merge(decision)).await.is_err() {
        return;
    }
    let lock = format!("{now:.0},{},{name}", pod.namespace().unwrap());
    if !set_lock(client, node, None, Some(&lock)).await {
        return;
    }
    // HAMi does not look again. The test does, so that a card with too many pods is not HAMi's doing.
    let all: Api<Pod> = Api::all(client.clone());
    if !filter::still_fits(pod, devices, &all.list(&ListParams::default()).await.unwrap().items) {
        set_lock(client, node, Some(&lock), None).await;
        return;
    }
    let phase = json!({"metadata": {"annotations": {"hami.io/bind-phase": "allocating", "hami.io/bind-time": seconds}}});
    let phased = pods.patch(&name, &PatchParams::default(), &Patch::Merge(phase)).await.is_ok();
    if !phased || !bind(client, pod, node).await {
        set_lock(client, node, Some(&lock), None).await;
    }
}

/// Exchanges the lock by the version of the node that was read; whether it was as expected.
async fn set_lock(client: &Client, node: &str, expected: Option<&str>, value: Option<&str>) -> bool {
    let nodes: Api<Node> = Api::all(client.clone());
    let read = nodes.get(node).await.unwrap();
    if read.annotations().get(LOCK).map(String::as_str) != expected {
        return false;
    }
    let patch =
        json!({"metadata": {"resourceVersion": read.resource_version(), "annotations": {LOCK: value}}});
    nodes.patch(node, &PatchParams::default(), &Patch::Merge(patch)).await.is_ok()
}

async fn bind(client: &Client, pod: &Pod, node: &str) -> bool {
    let (space, name) = (pod.namespace().unwrap(), pod.name_any());
    let target = json!({"apiVersion": "v1", "kind": "Node", "name": node});
    let binding = json!({"metadata": {"name": name, "namespace": space, "uid": pod.uid()}, "target": target});
    let request = http::Request::post(format!("/api/v1/namespaces/{space}/pods/{name}/binding"))
        .header("content-type", "application/json")
        .body(binding.to_string().into_bytes())
        .unwrap();
    client.request::<Value>(request).await.is_ok()
}
