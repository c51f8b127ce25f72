//! Pods of another scheduler: created, assigned, bound and run, as the API server sees each of them change.

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::{Binding, Node, Pod};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{Args, load};

const WRITERS: usize = 4;
/// The statuses that kubelet writes until a pod runs.
const STATUSES: [&str; 3] = ["Pending", "Running", "Running"];
/// How often a pod changes: it is created, assigned and bound, and gets its statuses.
pub(crate) const CHANGES: usize = 3 + STATUSES.len();

/// What the pods ask for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(crate) enum Requests {
    /// A share of a GPU.
    Gpu,
    /// Cores and memory alone: most pods of a cluster, of which Berth takes in only what they hold of a node.
    Cpu,
}

/// Creates the nodes.
pub(crate) async fn register(client: &Client, nodes: usize) -> anyhow::Result<()> {
    let api: Api<Node> = Api::all(client.clone());
    for number in 0..nodes {
        let node = serde_json::from_value(load::node(number).object()).context("a node")?;
        api.create(&PostParams::default(), &node).await.context("a node")?;
    }
    Ok(())
}

/// Creates as many pods as a round has, and changes each until it runs.
pub(crate) async fn create_and_run(client: &Client, round: &str, args: &Args) -> anyhow::Result<()> {
    let api: Api<Pod> = Api::default_namespaced(client.clone());
    let run = |number| {
        let (api, name) = (api.clone(), format!("{round}-{number:05}"));
        let (node, requests) = (number % args.nodes, args.requests);
        async move { run(&api, &name, node, requests).await.with_context(|| format!("pod {name}")) }
    };
    stream::iter(0..args.pods).map(run).buffer_unordered(WRITERS).try_collect().await
}

async fn run(api: &Api<Pod>, name: &str, node: usize, requests: Requests) -> anyhow::Result<()> {
    let node = format!("node-{node:04}");
    let (create, patch) = (PostParams::default(), PatchParams::default());
    api.create(&create, &serde_json::from_value(pod(name, requests))?).await?;
    let annotations = match requests {
        Requests::Gpu => json!({
            "hami.io/vgpu-node": node, "hami.io/vgpu-time": "1790000000", "hami.io/bind-phase": "success",
            "hami.io/vgpu-devices-allocated": "GPU-12345678-1234-1234-1234-123456789012,NVIDIA,4000,5:;",
        }),
        Requests::Cpu => {
            json!({"example.com/checked-by": "a controller that annotates each pod of its namespace"})
        }
    };
    api.patch(name, &patch, &Patch::Merge(json!({"metadata": {"annotations": annotations}}))).await?;
    let binding: Binding = serde_json::from_value(
        json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}),
    )?;
    let _: Value = api.create_subresource("binding", name, &create, &binding).await?;
    for (restarts, phase) in STATUSES.into_iter().enumerate() {
        let status = Patch::Merge(json!({"status": status(phase, restarts)}));
        api.patch_status(name, &patch, &status).await?;
    }
    Ok(())
}

fn pod(name: &str, requests: Requests) -> Value {
    let env: Vec<Value> =
        (0..10).map(|at| json!({"name": format!("SETTING_{at}"), "value": format!("value-{at}")})).collect();
    let mut limits = json!({"cpu": "4", "memory": "16Gi"});
    if requests == Requests::Gpu {
        limits["nvidia.com/gpu"] = json!("1");
        limits["nvidia.com/gpumem"] = json!("4000");
        limits["nvidia.com/gpucores"] = json!("5");
    }
    let container = json!({
        "name": "main", "image": "registry.example/team/train:1.2.3", "command": ["python3", "train.py", "--epochs=10"],
        "env": env, "resources": {"limits": limits}, "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}},
    });
    json!({
        "metadata": {"name": name, "labels": {"app": "train", "team": "vision"}},
        "spec": {
            "schedulerName": "another", "containers": [container], "volumes": [{"name": "data", "emptyDir": {}}],
        },
    })
}

/// As kubelet writes it; a restart more is a change.
fn status(phase: &str, restarts: usize) -> Value {
    let condition =
        |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": "2026-11-21T09:00:00Z"});
    let kinds = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"];
    json!({
        "phase": phase, "hostIP": "10.1.0.1", "podIP": "10.2.0.1", "podIPs": [{"ip": "10.2.0.1"}],
        "startTime": "2026-11-21T09:00:00Z",
        "conditions": kinds.map(condition),
        "containerStatuses": [{
            "name": "main", "ready": true, "started": true, "restartCount": restarts,
            "image": "registry.example/team/train:1.2.3", "imageID": format!("sha256:{}", "a".repeat(64)),
            "containerID": format!("containerd://{}", "b".repeat(64)),
            "state": {"running": {"startedAt": "2026-11-21T09:00:00Z"}},
        }],
    })
}
