//! The second user's pod: created, seen bound, deleted. Beside it the bare pod, which the bench binds by itself as soon as its own watch of
//! all pods shows it: what it waits is due to the API server.

use std::time::Duration;

use anyhow::Context as _;
use futures::StreamExt as _;
use k8s_openapi::{
    api::core::v1::{Binding, Pod},
    apimachinery::pkg::apis::meta::v1::Status,
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, PostParams, WatchEvent, WatchParams},
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::json;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, timeout},
};

/// A probe that is not bound in this time is given up.
const LIMIT: Duration = Duration::from_secs(90);

/// Who binds a probe.
#[derive(Clone, Debug)]
pub(crate) enum Binder {
    /// The program, which chooses its cards.
    Program,
    /// The bench, to the first node and without cards, once this watch has shown the pod.
    Bench(watch::Receiver<String>),
}

/// How long each of so many probes waited, in the order in which they were created.
pub(crate) async fn waits(
    client: &Client,
    namespace: &str,
    probes: usize,
    binder: &Binder,
) -> anyhow::Result<Vec<Duration>> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let mut waits = Vec::with_capacity(probes);
    for number in 0..probes {
        let wait = match binder {
            Binder::Program => wait(&pods, &format!("probe-{number}")).await?,
            Binder::Bench(seen) => wait_bare(&pods, seen.clone(), &format!("bare-{number}")).await?,
        };
        waits.push(wait);
    }
    Ok(waits)
}

/// How long it takes to create a pod, to see it in a watch of all pods as a scheduler does, and to bind it, where there is nothing to decide.
async fn wait_bare(
    pods: &Api<Pod>,
    mut seen: watch::Receiver<String>,
    name: &str,
) -> anyhow::Result<Duration> {
    let pod = json!({
        "metadata": {"name": name},
        "spec": {
            "schedulerName": "nobody",
            "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10.1"}],
            "terminationGracePeriodSeconds": 0,
        },
    });
    let began = Instant::now();
    let created =
        pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await.context("a bare probe")?;
    let uid = created.uid().unwrap_or_default();
    timeout(LIMIT, seen.wait_for(|last| *last == uid)).await.context("no watch has shown a bare probe")??;
    let binding: Binding = serde_json::from_value(
        json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": "node-0000"}}),
    )?;
    let _: Status = pods
        .create_subresource("binding", name, &PostParams::default(), &binding)
        .await
        .context("its Binding")?;
    let waited = began.elapsed();
    pods.delete(name, &DeleteParams::default().grace_period(0)).await?;
    Ok(waited)
}

/// A watch of all pods, as a scheduler has one: the uid of the last bare probe that it has shown.
pub(crate) fn watch_all(client: &Client, tasks: &mut JoinSet<()>) -> watch::Receiver<String> {
    let pods: Api<Pod> = Api::all(client.clone());
    let (sender, receiver) = watch::channel(String::new());
    tasks.spawn(async move {
        let mut events =
            watcher(pods, watcher::Config::default()).default_backoff().applied_objects().boxed();
        while let Some(pod) = events.next().await {
            let Ok(pod) = pod.inspect_err(|error| eprintln!("the watch of all pods: {error}")) else {
                continue;
            };
            let is_bare = pod.spec.as_ref().and_then(|spec| spec.scheduler_name.as_deref()) == Some("nobody");
            if is_bare && sender.send(pod.uid().unwrap_or_default()).is_err() {
                return;
            }
        }
    });
    receiver
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
