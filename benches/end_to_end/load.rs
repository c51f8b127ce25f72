//! The load: GPU pods, created by many writers at once, and the nodes that they are for.

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

/// Creates the pods; when the request for each was sent.
pub(crate) async fn create(
    client: &Client,
    run: usize,
    pods: usize,
) -> anyhow::Result<HashMap<String, Instant>> {
    let api: Api<Pod> = Api::default_namespaced(client.clone());
    let create = |number| {
        let api = api.clone();
        async move {
            let name = format!("run{run:02}-{number:05}");
            let pod = pod(&name, run, number)?;
            let sent = Instant::now();
            api.create(&PostParams::default(), &pod).await.with_context(|| format!("pod {name}"))?;
            Ok((name, sent))
        }
    };
    stream::iter(0..pods).map(create).buffer_unordered(WRITERS).try_collect().await
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

/// One card, 1 to 4.5 GB, 5 percent of its cores.
fn pod(name: &str, run: usize, number: usize) -> anyhow::Result<Pod> {
    let memory = 1000 + 500 * (number % 8);
    let limits = json!({
        "nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string(), "nvidia.com/gpucores": "5",
    });
    let container = json!({"name": "main", "image": "none", "resources": {"limits": limits}});
    let spec = json!({"schedulerName": SCHEDULER, "containers": [container]});
    serde_json::from_value(
        json!({"metadata": {"name": name, "labels": {RUN: run.to_string()}}, "spec": spec}),
    )
    .context("the load's pod")
}
