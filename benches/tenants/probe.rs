//! The second user's pod: created, seen bound, deleted.

use std::time::Duration;

use anyhow::Context as _;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, PostParams, WatchEvent, WatchParams},
};
use serde_json::json;
use tokio::time::{Instant, timeout};

/// A probe that is not bound in this time is given up.
const LIMIT: Duration = Duration::from_secs(90);

/// How long each of so many probes waited, in the order in which they were created.
pub(crate) async fn waits(client: &Client, namespace: &str, probes: usize) -> anyhow::Result<Vec<Duration>> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let mut waits = Vec::with_capacity(probes);
    for number in 0..probes {
        waits.push(wait(&pods, &format!("probe-{number}")).await?);
    }
    Ok(waits)
}

async fn wait(pods: &Api<Pod>, name: &str) -> anyhow::Result<Duration> {
    let limits = json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"});
    let pod = json!({
        "metadata": {"name": name},
        "spec": {
            "schedulerName": super::super::load::SCHEDULER,
            "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10.1", "resources": {"limits": limits}}],
            "terminationGracePeriodSeconds": 0,
        },
    });
    let began = Instant::now();
    let created =
        pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await.context("a probe")?;
    let version = created.resource_version().unwrap_or_default();
    let of_probe = WatchParams::default().fields(&format!("metadata.name={name}"));
    let mut events = pods.watch(&of_probe, &version).await?.boxed();
    let bound = async {
        while let Some(event) = events.next().await {
            if let WatchEvent::Modified(pod) = event?
                && pod.spec.is_some_and(|spec| spec.node_name.is_some())
            {
                return Ok(began.elapsed());
            }
        }
        anyhow::bail!("the watch of a probe ended")
    };
    // A probe that is not bound counts with the limit.
    let waited = timeout(LIMIT, bound).await.unwrap_or(Ok(LIMIT))?;
    // Its plugin answers before it goes: a pod that is deleted between is another attack.
    let answered = async {
        while let Some(Ok(event)) = events.next().await {
            let phase = |pod: &Pod| pod.annotations().get("hami.io/bind-phase").cloned();
            if matches!(&event, WatchEvent::Modified(pod) if phase(pod).as_deref() == Some("success")) {
                return;
            }
        }
    };
    drop(timeout(Duration::from_secs(5), answered).await);
    pods.delete(name, &DeleteParams::default().grace_period(0)).await?;
    Ok(waited)
}
