//! How long each answer of the API takes while pods are bound, so that what it is made of is new each time.

use std::{net::SocketAddr, time::Duration};

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, api::PostParams};
use serde_json::json;
use tokio::{task::JoinSet, time::Instant};

use super::{
    binding::milliseconds,
    page::{client, get},
    users::Users,
};
use crate::{cluster::Full, load};

/// Pods that wait, since no card has so much memory.
const WAITING: usize = 50;

/// The binder gives out what answers are made of at most once in this time.
const PERIOD: Duration = Duration::from_millis(1100);

pub(crate) async fn measure(
    cluster: &mut Full,
    address: SocketAddr,
    users: &Users,
    times: usize,
    pace: Duration,
) -> anyhow::Result<()> {
    wait(&cluster.client).await?;
    let mut bound = JoinSet::new();
    let (objects, first) = (cluster.client.clone(), cluster.next_run().0);
    bound.spawn(async move {
        let mut pace = tokio::time::interval(pace);
        for run in first.. {
            pace.tick().await;
            load::create(&objects, run, 1).await?;
        }
        anyhow::Ok(())
    });
    println!("\nanswers, while pods are bound: median, longest, and the size of the last one");
    let paths = [
        "/fleet",
        "/queue",
        "/fits",
        "/nodes/node-0000",
        "/cards/GPU-0000-0",
        "/namespaces/default",
        "/namespaces/default/pods/old-00000",
        "/namespaces/default/pods/large-00",
        "/namespaces/default/pods/large-00/change",
    ];
    let viewer = client(address, users.token(0))?;
    for path in paths {
        let (mut took, mut size) = (Vec::with_capacity(times), 0);
        for _ in 0..times {
            tokio::time::sleep(PERIOD).await;
            let asked = Instant::now();
            size = get(&viewer, path).await?.len();
            took.push(asked.elapsed());
        }
        took.sort();
        println!(
            "  {path:<45} {:>9} {:>9} {:>6} KiB",
            milliseconds(&took, 50),
            milliseconds(&took, 100),
            size / 1024
        );
    }
    match bound.try_join_next() {
        Some(ended) => ended.context("the load")?.context("the load"),
        None => Ok(()),
    }
}

/// Creates the pods that wait.
async fn wait(client: &Client) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    for number in 0..WAITING {
        let memory = format!("{}", 90_000 + 1000 * (number % 4));
        let limits = json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory});
        let container = json!({"name": "main", "image": "none", "resources": {"limits": limits}});
        let pod = json!({
            "metadata": {"name": format!("large-{number:02}")},
            "spec": {"schedulerName": load::SCHEDULER, "containers": [container]},
        });
        pods.create(&PostParams::default(), &serde_json::from_value(pod)?)
            .await
            .context("a pod that waits")?;
    }
    Ok(())
}
