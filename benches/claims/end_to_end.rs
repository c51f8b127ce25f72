//! Pods with claims from a template against a real API server: how many a second are bound, from the first create to the last bind.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::{
    core::v1::{Namespace, Node, Pod},
    resource::v1::{DeviceClass, ResourceClaim, ResourceSlice},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    cluster::{self, Cluster},
    objects,
};
use crate::{
    observer::Observer,
    process,
    requests::{Answered, is_write},
    support::{
        controlplane::{ControlPlane, GarbageCollection, LIMITLESS, Options},
        installed::{NAMESPACE, Replica, free_address},
    },
};

/// The name under which the pods ask for a place, with both.
const SCHEDULER: &str = "berth";
const WRITERS: usize = 32;
/// What a scheduler and the load work on.
const RESOURCES: &[&str] = &["pods", "resourceclaims", "events", "nodes"];

/// Who binds the pods.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    Berth,
    KubeScheduler,
}

/// What one run came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) pods_per_second: f64,
    /// Seconds of processor time from the first create to the last bind, by program.
    processor: BTreeMap<String, f64>,
    /// Writes that the API server answered meanwhile, the load's included, by verb and resource.
    writes: BTreeMap<String, u64>,
}

/// Lets one of the two bind the pods on a control plane of its own.
pub(crate) async fn run(side: Side, cluster: &Cluster) -> anyhow::Result<Outcome> {
    let options = Options {
        apiserver_flags: LIMITLESS.map(str::to_owned).to_vec(),
        garbage_collection: GarbageCollection::Usual,
        ..Options::default()
    };
    let mut plane = ControlPlane::start(options).await.context("there is no real control plane here")?;
    let client = plane.admin();
    publish(&client, cluster).await?;
    let mut observer = Observer::start(client.clone());
    let _replica = start(side, &mut plane);
    // Only a scheduler that has listed everything binds the first pod.
    create(&client, "first", cluster).await?;
    observer.bound(1).await?;
    let before = (process::times()?, answered(&plane).await?);
    let started = Instant::now();
    let names = (0..cluster.pods).map(cluster::name);
    let created = names.map(|name| {
        let client = client.clone();
        async move { create(&client, &name, cluster).await }
    });
    stream::iter(created).buffer_unordered(WRITERS).try_collect::<Vec<()>>().await?;
    let bound = observer.bound(cluster.pods).await?;
    let last = bound.values().max().context("no pods")?.duration_since(started);
    let after = (process::times()?, answered(&plane).await?);
    Ok(Outcome {
        pods_per_second: rate(cluster.pods, last),
        processor: used(&before.0, &after.0),
        writes: after.1.since(&before.1).into_iter().filter(|(name, _)| is_write(name)).collect(),
    })
}

async fn answered(plane: &ControlPlane) -> anyhow::Result<Answered> {
    let metrics = plane.metrics().await.context("metrics of the API server")?;
    Ok(Answered::read(&metrics, RESOURCES))
}

fn start(side: Side, plane: &mut ControlPlane) -> Option<Replica> {
    match side {
        Side::Berth => {
            let arguments = ["--scheduler-only", "--leader-elect=false"];
            Some(Replica::start_as(plane, "admin", "berth", free_address(), &arguments))
        }
        Side::KubeScheduler => {
            let started = plane.start_limitless_scheduler("admin", SCHEDULER);
            started.expect("kube-scheduler starts where kube-apiserver does");
            None
        }
    }
}

/// Nodes without kubelets, and what a driver publishes of them.
async fn publish(client: &Client, cluster: &Cluster) -> anyhow::Result<()> {
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    post::<Namespace>(&Api::all(client.clone()), namespace).await?;
    post::<DeviceClass>(&Api::all(client.clone()), objects::class(cluster.kind)).await?;
    let (nodes, slices): (Api<Node>, Api<ResourceSlice>) =
        (Api::all(client.clone()), Api::all(client.clone()));
    let created = (0..cluster.nodes).map(|node| {
        let (nodes, slices) = (&nodes, &slices);
        async move {
            post(nodes, objects::node(node)).await?;
            // Admission marks a new node as not ready, and the controller that would take that back does not run.
            let ready = Patch::Merge(json!({"spec": {"taints": null}}));
            let name = objects::node_name(node);
            nodes.patch(&name, &PatchParams::default(), &ready).await.context(name)?;
            post(slices, objects::slice(node, cluster.kind)).await?;
            anyhow::Ok(())
        }
    });
    stream::iter(created).buffer_unordered(WRITERS).try_collect().await
}

/// A pod, its claim, and the pod's status that names the claim: what a user and then kube-controller-manager write.
async fn create(client: &Client, name: &str, cluster: &Cluster) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), objects::NAMESPACE);
    let claims: Api<ResourceClaim> = Api::namespaced(client.clone(), objects::NAMESPACE);
    let pod = post(&pods, objects::pod(name, SCHEDULER)).await?;
    let uid = pod.metadata.uid.context("the API server gives each pod a uid")?;
    let mut claim = objects::claim((name, &uid), cluster.kind, "gpu");
    claim["metadata"]["uid"].take();
    post(&claims, claim).await?;
    let statuses = Patch::Merge(json!({"status": {"resourceClaimStatuses": objects::claim_statuses(name)}}));
    pods.patch_status(name, &PatchParams::default(), &statuses).await.context("the status of a pod")?;
    Ok(())
}

async fn post<T>(api: &Api<T>, object: Value) -> anyhow::Result<T>
where
    T: kube::Resource + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let object: T = serde_json::from_value(object)?;
    let name = object.meta().name.clone().unwrap_or_default();
    api.create(&PostParams::default(), &object).await.with_context(|| format!("creating {name}"))
}

fn rate(pods: usize, took: Duration) -> f64 {
    f64::from(u32::try_from(pods).expect("a bench binds few pods")) / took.as_secs_f64()
}

fn used(before: &BTreeMap<String, Duration>, after: &BTreeMap<String, Duration>) -> BTreeMap<String, f64> {
    let used = |(name, time): (&String, &Duration)| {
        let earlier = before.get(name).copied().unwrap_or_default();
        (name.clone(), time.saturating_sub(earlier).as_secs_f64())
    };
    after.iter().map(used).collect()
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let times = self.processor.iter().map(|(name, seconds)| format!("{name} {seconds:.1} s"));
        let writes = self.writes.iter().map(|(name, count)| format!("{name} {count}"));
        let [times, writes] = [times.collect::<Vec<_>>(), writes.collect()].map(|parts| parts.join(", "));
        write!(
            formatter,
            "{:.1} pods/s\n      processor: {times}\n      writes: {writes}",
            self.pods_per_second
        )
    }
}
