//! The load: GPU pods and, for kube-scheduler, pods without a GPU, created by many writers at once, and the nodes that they are for.

use std::{collections::HashMap, time::Duration};

use anyhow::Context as _;
use berth_sandbox::agent::{card::Card, node::Node, wire::Release};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::json;
use tokio::time::Instant;

/// The name under which the pods ask for a place.
pub(crate) const SCHEDULER: &str = "berth";
/// The name under which pods without a GPU ask kube-scheduler for a place.
pub(crate) const PLAIN_SCHEDULER: &str = "plain";
/// The label by which a run's pods are found.
const RUN: &str = "run";
const WRITERS: usize = 32;
const CARDS: u32 = 8;
/// MiB of each card.
const MEMORY: u64 = 81920;

/// A node of eight cards of 80 GB, ten slots each.
pub(crate) fn node(number: usize) -> Node {
    let name = format!("node-{number:04}");
    let card = |index| Card::new(&format!("GPU-{number:04}-{index}"), index, MEMORY);
    (0..CARDS).fold(Node::new(&name), |node, index| node.card(card(index))).hami(Release::V2_10)
}

/// What a pod asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Asked {
    /// A share of a card, of Berth.
    Share,
    /// A hundredth of a cpu, of kube-scheduler.
    Cpu,
}

/// The pods of a run, and how fast they come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) pods: usize,
    pub(crate) asked: Asked,
    /// How many are created in a second; `None`: as many as the writers can.
    pub(crate) per_second: Option<f64>,
}

/// Creates GPU pods; when the request for each was sent.
pub(crate) async fn create(
    client: &Client,
    run: usize,
    pods: usize,
) -> anyhow::Result<HashMap<String, Instant>> {
    create_load(client, run, Load { pods, asked: Asked::Share, per_second: None }).await
}

/// Creates the pods of a load; when the request for each was sent.
pub(crate) async fn create_load(
    client: &Client,
    run: usize,
    load: Load,
) -> anyhow::Result<HashMap<String, Instant>> {
    let api: Api<Pod> = Api::default_namespaced(client.clone());
    let begun = Instant::now();
    let create = |number: u32| {
        let api = api.clone();
        async move {
            let name = format!("run{run:02}-{number:05}");
            let pod = pod(&name, run, number, load.asked)?;
            if let Some(per_second) = load.per_second {
                tokio::time::sleep_until(begun + Duration::from_secs_f64(f64::from(number) / per_second))
                    .await;
            }
            let sent = Instant::now();
            api.create(&PostParams::default(), &pod).await.with_context(|| format!("pod {name}"))?;
            Ok((name, sent))
        }
    };
    let numbers = 0..u32::try_from(load.pods).context("the number of pods")?;
    stream::iter(numbers).map(create).buffer_unordered(WRITERS).try_collect().await
}

/// Deletes the pods of one run, and returns when they are gone; the agents finalise them.
pub(crate) async fn delete(client: &Client, run: usize) -> anyhow::Result<()> {
    let api: Api<Pod> = Api::default_namespaced(client.clone());
    let those = ListParams::default().labels(&format!("{RUN}={run}"));
    api.delete_collection(&DeleteParams::default(), &those).await.context("deleting the pods of a run")?;
    while !api.list_metadata(&those).await.context("the pods of a run")?.items.is_empty() {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

/// Deletes all pods; the agents finalise them.
pub(crate) async fn delete_all(client: &Client) -> anyhow::Result<()> {
    let api: Api<Pod> = Api::default_namespaced(client.clone());
    let deleted = api.delete_collection(&DeleteParams::default(), &ListParams::default()).await;
    deleted.map(drop).context("deleting all pods")
}

/// One card, 1 to 4.5 GB, 5 percent of its cores; or a little cpu.
fn pod(name: &str, run: usize, number: u32, asked: Asked) -> anyhow::Result<Pod> {
    let (scheduler, limits) = match asked {
        Asked::Share => {
            let memory = 1000 + 500 * (number % 8);
            let limits = json!({
                "nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string(), "nvidia.com/gpucores": "5",
            });
            (SCHEDULER, limits)
        }
        Asked::Cpu => (PLAIN_SCHEDULER, json!({"cpu": "10m"})),
    };
    let container = json!({"name": "main", "image": "none", "resources": {"limits": limits}});
    let spec = json!({"schedulerName": scheduler, "containers": [container]});
    serde_json::from_value(
        json!({"metadata": {"name": name, "labels": {RUN: run.to_string()}}, "spec": spec}),
    )
    .context("the load's pod")
}
