//! A real control plane with many nodes and many GPU pods that run on them.

use anyhow::{Context as _, ensure};
use berth::cli::manifests::ManifestsArgs;
use berth_sandbox::agent::{Answer, Behaviour, Fleet};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use std::time::Duration;

use super::binds::Binds;
use crate::{
    load,
    support::{
        controlplane::{ControlPlane, LIMITLESS},
        installed::{self, apply_manifests, free_address},
    },
};

const WRITERS: usize = 64;

/// The cluster, and who watches it.
pub(crate) struct Full {
    pub(crate) plane: ControlPlane,
    pub(crate) client: Client,
    pub(crate) binds: Binds,
    _fleet: Fleet,
    /// Runs of pods created so far: each names its own.
    runs: usize,
}

impl Full {
    pub(crate) async fn start(nodes: usize, pods: usize) -> anyhow::Result<Self> {
        let mut options = installed::options();
        options.apiserver_flags.extend(LIMITLESS.map(str::to_owned));
        let plane = ControlPlane::start(options).await.context("there is no real control plane here")?;
        let client = plane.admin();
        apply_manifests(&client, free_address(), ManifestsArgs::default()).await;
        let mut binds = Binds::follow(client.clone());
        // The agents come when the pods run already: else they would take them for new ones.
        register(&client, nodes).await?;
        fill(&client, nodes, pods).await?;
        binds.of("old-", pods).await?;
        let fleet = Fleet::start(client.clone(), (0..nodes).map(load::node).collect()).await?;
        for node in 0..nodes {
            let behaviour =
                Behaviour { answer: Answer::After(Duration::from_millis(10)), ..Behaviour::default() };
            fleet.behave(&format!("node-{node:04}"), behaviour)?;
        }
        let running = running_pods(&client).await?;
        ensure!(running == pods, "{running} of {pods} pods run");
        println!("{nodes} nodes of 8 cards, {pods} GPU pods run on them");
        println!("a list of all pods: {} KiB", bytes_of_list(&client, "pods").await? / 1024);
        println!("a list of all nodes: {} KiB", bytes_of_list(&client, "nodes").await? / 1024);
        Ok(Self { plane, client, binds, _fleet: fleet, runs: 0 })
    }

    /// The number of the next run of pods, and how the names of its pods begin.
    pub(crate) fn next_run(&mut self) -> (usize, String) {
        self.runs += 1;
        (self.runs, format!("run{:02}-", self.runs))
    }
}

async fn bytes_of_list(client: &Client, plural: &str) -> anyhow::Result<usize> {
    let request = http::Request::get(format!("/api/v1/{plural}")).body(Vec::new())?;
    Ok(client.request_text(request).await?.len())
}

async fn running_pods(client: &Client) -> anyhow::Result<usize> {
    let pods: Api<Pod> = Api::all(client.clone());
    Ok(pods.list_metadata(&ListParams::default().fields("status.phase=Running")).await?.items.len())
}

async fn register(client: &Client, nodes: usize) -> anyhow::Result<()> {
    let api: Api<Node> = Api::all(client.clone());
    let create = |number| {
        let api = api.clone();
        async move {
            let node = serde_json::from_value(load::node(number).object()).context("a node")?;
            api.create(&PostParams::default(), &node).await.map(drop).context("a node")
        }
    };
    stream::iter(0..nodes).map(create).buffer_unordered(WRITERS).try_collect().await
}

/// Pods that were bound and allocated long ago: each card of the first eight of ten slots gets its share.
async fn fill(client: &Client, nodes: usize, pods: usize) -> anyhow::Result<()> {
    ensure!(pods <= nodes * 8 * 8, "the nodes have no room for so many pods");
    let api: Api<Pod> = Api::default_namespaced(client.clone());
    let create = |number: usize| {
        let api = api.clone();
        async move {
            let pod: Pod = serde_json::from_value(running(number, nodes)).context("a pod")?;
            let name = format!("old-{number:05}");
            api.create(&PostParams::default(), &pod).await.with_context(|| format!("pod {name}"))?;
            let status = Patch::Merge(json!({"status": status()}));
            api.patch_status(&name, &PatchParams::default(), &status).await.context("status")?;
            anyhow::Ok(())
        }
    };
    stream::iter(0..pods).map(create).buffer_unordered(WRITERS).try_collect().await
}

fn running(number: usize, nodes: usize) -> Value {
    let (node, card) = (number % nodes, number / nodes % 8);
    let name = format!("node-{node:04}");
    let devices = format!("GPU-{node:04}-{card},NVIDIA,4000,5:;");
    let limits = json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000", "nvidia.com/gpucores": "5", "cpu": "500m"});
    json!({
        "metadata": {
            "name": format!("old-{number:05}"),
            "labels": {"app": "train", "hami.io/vgpu-node": name},
            "annotations": {
                "hami.io/vgpu-node": name, "hami.io/vgpu-time": "1790000000", "hami.io/bind-phase": "success",
                "hami.io/bind-time": "1790000000", "hami.io/vgpu-devices-allocated": devices,
                "hami.io/vgpu-devices-to-allocate": ";",
            },
        },
        "spec": {
            "schedulerName": "berth", "nodeName": name,
            "containers": [{
                "name": "main", "image": "registry.example/train:1.0", "command": ["python3", "train.py"],
                "env": [{"name": "EPOCHS", "value": "40"}, {"name": "DATA", "value": "/data/set-1"}],
                "resources": {"limits": limits, "requests": limits},
            }],
        },
    })
}

/// As kubelet leaves it.
fn status() -> Value {
    let condition =
        |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": "2026-11-21T09:00:00Z"});
    let kinds = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
    json!({
        "phase": "Running", "hostIP": "10.1.0.1", "podIP": "10.2.0.1", "podIPs": [{"ip": "10.2.0.1"}],
        "startTime": "2026-11-21T09:00:00Z",
        "conditions": kinds.map(condition),
        "containerStatuses": [{
            "name": "main", "ready": true, "started": true, "restartCount": 0,
            "image": "registry.example/train:1.0", "imageID": "registry.example/train@sha256:0f1e2d3c4b5a69788796a5b4c3d2e1f0",
            "containerID": "containerd://0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0",
            "state": {"running": {"startedAt": "2026-11-21T09:00:01Z"}},
        }],
    })
}
