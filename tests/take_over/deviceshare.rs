//! Volcano's scheduler with its plugin `deviceshare` at work: it counts by annotations, takes the node's lock, and binds with the assignment.
//!
//! Source: Volcano `pkg/scheduler/api/devices/nvidia/vgpu` (`device_info.go`, `utils.go`). It must not know Berth.
#![allow(clippy::disallowed_methods, reason = "a lock says since when it is held")]

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinSet};

use crate::{
    support::{controlplane::ControlPlane, server::pause},
    take_over::{chart, hami::CONTROL_PLANE},
};

const LOCK: &str = "hamivgpu";
const SPACE: &str = "volcano-system";
const POD: &str = "volcano-scheduler-0";
const RECORD: &str = "volcano.sh/vgpu-ids-new";
/// MiB of each card.
pub(crate) const MEMORY: u64 = 16_384;

/// Whether `deviceshare.VGPUEnable` is set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sharing {
    On,
    Off,
}

/// The scheduler, at work until it is dropped or stopped.
pub(crate) struct Scheduler {
    _task: JoinSet<()>,
    sharing: watch::Sender<Sharing>,
    pods: Api<Pod>,
}

impl Scheduler {
    /// Its namespace, its pod and its process; `nodes` are those of its device plugin, each with its card.
    pub(crate) async fn start(plane: &Arc<ControlPlane>, nodes: Vec<(String, String)>) -> Self {
        let client = plane.admin();
        chart::create::<Namespace>(&Api::all(client.clone()), json!({"metadata": {"name": SPACE}})).await;
        let pods: Api<Pod> = Api::namespaced(client.clone(), SPACE);
        let container = json!({"name": "volcano-scheduler", "image": "none"});
        let spec = json!({"nodeName": CONTROL_PLANE, "containers": [container]});
        let metadata = json!({"name": POD, "labels": {"app": "volcano-scheduler"}});
        chart::create(&pods, json!({"metadata": metadata, "spec": spec})).await;
        let (sharing, asked) = watch::channel(Sharing::On);
        let mut task = JoinSet::new();
        task.spawn(work(client, nodes, asked));
        Self { _task: task, sharing, pods }
    }

    /// As its ConfigMap and a restart would.
    pub(crate) fn set(&self, sharing: Sharing) {
        self.sharing.send_replace(sharing);
    }

    pub(crate) async fn stop(self) {
        self.pods.delete(POD, &DeleteParams::default().grace_period(0)).await.unwrap();
    }
}

async fn work(client: Client, nodes: Vec<(String, String)>, sharing: watch::Receiver<Sharing>) {
    let all: Api<Pod> = Api::all(client.clone());
    loop {
        for pod in all.list(&ListParams::default()).await.unwrap().iter().filter(|pod| waits(pod)) {
            match asked(pod) {
                None => drop(bind(&client, pod, &nodes[0].0, json!({})).await),
                Some(memory) if *sharing.borrow() == Sharing::On => place(&client, pod, memory, &nodes).await,
                Some(_) => {}
            }
        }
        pause().await;
    }
}

fn waits(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref().unwrap();
    let named = spec.scheduler_name.as_deref() == Some("volcano");
    named && spec.node_name.is_none() && pod.metadata.deletion_timestamp.is_none()
}

/// MiB of the one virtual card that a pod asks for; `None`: it asks for none.
fn asked(pod: &Pod) -> Option<u64> {
    let resources = pod.spec.as_ref()?.containers[0].resources.as_ref()?;
    Some(resources.limits.as_ref()?.get("volcano.sh/vgpu-memory")?.0.parse().unwrap())
}

/// MiB that pods hold of each card, by the permanent record on them.
pub(crate) fn held(pods: &[Pod]) -> BTreeMap<String, u64> {
    let mut held = BTreeMap::new();
    let ended = |pod: &&Pod| matches!(crate::take_over::seen::phase(pod), "Succeeded" | "Failed");
    for record in pods.iter().filter(|pod| !ended(pod)).filter_map(|pod| pod.annotations().get(RECORD)) {
        for share in record.split([';', ':']).filter(|share| !share.is_empty()) {
            let fields: Vec<&str> = share.split(',').collect();
            *held.entry(fields[0].to_owned()).or_default() += fields[2].parse::<u64>().unwrap();
        }
    }
    held
}

/// Cards are counted once the node's lock is held, so that two schedulers never give away one card.
async fn place(client: &Client, pod: &Pod, memory: u64, nodes: &[(String, String)]) {
    let all: Api<Pod> = Api::all(client.clone());
    for (node, card) in nodes {
        if !has_room(&all, card, memory).await || !lock(client, node).await {
            continue;
        }
        let bound = has_room(&all, card, memory).await
            && {
                let record = format!("{card},NVIDIA,{memory},0:");
                let now = Timestamp::now().as_second().to_string();
                let annotations = json!({
                    "volcano.sh/vgpu-node": node, "volcano.sh/vgpu-time": now, "volcano.sh/bind-time": now, RECORD: record,
                    "volcano.sh/devices-to-allocate": record, "volcano.sh/bind-phase": "allocating",
                });
                bind(client, pod, node, annotations).await
            };
        if bound {
            return;
        }
        unlock(client, node).await;
    }
}

async fn has_room(pods: &Api<Pod>, card: &str, memory: u64) -> bool {
    let pods = pods.list(&ListParams::default()).await.unwrap().items;
    held(&pods).get(card).copied().unwrap_or_default() + memory <= MEMORY
}

/// Takes the lock by the version of the node that was read.
async fn lock(client: &Client, node: &str) -> bool {
    let nodes: Api<Node> = Api::all(client.clone());
    let read = nodes.get(node).await.unwrap();
    if read.annotations().contains_key(LOCK) {
        return false;
    }
    let now = format!("{:.0}", Timestamp::now());
    let patch = json!({"metadata": {"resourceVersion": read.resource_version(), "annotations": {LOCK: now}}});
    nodes.patch(node, &PatchParams::default(), &Patch::Merge(patch)).await.is_ok()
}

async fn unlock(client: &Client, node: &str) {
    let nodes: Api<Node> = Api::all(client.clone());
    let patch = json!({"metadata": {"annotations": {LOCK: null}}});
    nodes.patch(node, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

async fn bind(client: &Client, pod: &Pod, node: &str, annotations: Value) -> bool {
    let (space, name) = (pod.namespace().unwrap(), pod.name_any());
    let metadata = json!({"name": name, "namespace": space, "uid": pod.uid(), "annotations": annotations});
    let binding = json!({"metadata": metadata, "target": {"apiVersion": "v1", "kind": "Node", "name": node}});
    let request = http::Request::post(format!("/api/v1/namespaces/{space}/pods/{name}/binding"))
        .header("content-type", "application/json")
        .body(binding.to_string().into_bytes())
        .unwrap();
    client.request::<Value>(request).await.is_ok()
}
