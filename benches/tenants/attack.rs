//! What the first user does, with the rights to create pods, claims and PodGroups in one namespace.

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::{core::v1::Pod, resource::v1::ResourceClaim};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::run::CLASS;
use crate::load::SCHEDULER;

const WRITERS: usize = 32;

/// One kind of attack.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(crate) enum Attack {
    /// One claim whose selector takes long for each device.
    Selector,
    /// A claim with eight requests of 31 such selectors.
    Selectors,
    /// 60 claims whose search takes as long as a search may.
    Searches,
    /// Four gangs of 500 with one impossible pod.
    Gangs,
    /// 3,000 pods, each of a class of its own.
    Classes,
    /// 100 pods with as many demands on nodes as are served, and 100 with 40,000.
    Demands,
}

impl Attack {
    pub(crate) const ALL: [Self; 6] =
        [Self::Selector, Self::Selectors, Self::Searches, Self::Gangs, Self::Classes, Self::Demands];

    /// Creates what it needs in this namespace.
    pub(crate) async fn begin(self, client: &Client, namespace: &str) -> anyhow::Result<()> {
        match self {
            Self::Selector => {
                claimed(client, (namespace, "selector"), 1, |_| vec![request("r", &[loops()])], None).await
            }
            Self::Selectors => {
                let selectors: Vec<_> = (0..31).map(|at| format!("{} || {at} < 0", loops())).collect();
                let requests = move |_| (0..8).map(|at| request(&format!("r{at}"), &selectors)).collect();
                claimed(client, (namespace, "selectors"), 1, requests, None).await
            }
            Self::Searches => {
                let requests = |_| (0..8).map(|at| request(&format!("r{at}"), &[])).collect();
                let constraint = json!({"matchAttribute": format!("{CLASS}/group")});
                claimed(client, (namespace, "searches"), 60, requests, Some(constraint)).await
            }
            Self::Gangs => gangs(client, namespace).await,
            Self::Classes => {
                let pod = |at: usize| share(&format!("class-{at}"), 90_000 + at);
                pods(client, namespace, (0..3000).map(pod)).await
            }
            Self::Demands => {
                let pod = |at: usize| {
                    let values = if at < 100 { 1_000 } else { 40_000 };
                    let values: Vec<_> = (0..values).map(|value| format!("{at}-{value}")).collect();
                    let term = json!({"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": values}]});
                    let required = json!({"nodeSelectorTerms": [term]});
                    let mut pod = share(&format!("demands-{at}"), 1000);
                    pod["spec"]["affinity"] =
                        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
                    pod
                };
                pods(client, namespace, (0..200).map(pod)).await
            }
        }
    }
}

/// Three loops in each other, as long as the API server admits, which are true of no device.
fn loops() -> String {
    let list = format!("[{}]", ["0"; 38].join(","));
    format!("{list}.all(x, {list}.all(y, {list}.all(z, x + y + z >= 0))) && device.driver == 'none'")
}

fn request(name: &str, selectors: &[String]) -> Value {
    let selectors: Vec<_> = selectors.iter().map(|text| json!({"cel": {"expression": text}})).collect();
    json!({"name": name, "exactly": {"deviceClassName": CLASS, "selectors": selectors}})
}

/// A pod for each of so many claims, in this namespace and with this word in their names.
async fn claimed(
    client: &Client,
    (namespace, word): (&str, &str),
    count: usize,
    requests: impl Fn(usize) -> Vec<Value>,
    constraint: Option<Value>,
) -> anyhow::Result<()> {
    let claims: Api<ResourceClaim> = Api::namespaced(client.clone(), namespace);
    let constraints: Vec<_> = constraint.into_iter().collect();
    for at in 0..count {
        let devices = json!({"requests": requests(at), "constraints": constraints});
        let claim = json!({"metadata": {"name": format!("{word}-{at}")}, "spec": {"devices": devices}});
        create(&claims, claim).await?;
    }
    let user = |at: usize| {
        let mut pod = share(&format!("{word}-{at}"), 0);
        pod["spec"]["containers"][0]["resources"] = json!({"claims": [{"name": "c"}]});
        pod["spec"]["resourceClaims"] = json!([{"name": "c", "resourceClaimName": format!("{word}-{at}")}]);
        pod
    };
    pods(client, namespace, (0..count).map(user)).await
}

async fn gangs(client: &Client, namespace: &str) -> anyhow::Result<()> {
    let kind = GroupVersionKind::gvk("scheduling.volcano.sh", "v1beta1", "PodGroup");
    let groups: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(&kind));
    for gang in 0..4 {
        let group = json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
            "metadata": {"name": format!("gang-{gang}")}, "spec": {"minMember": 500},
        });
        groups.create(&PostParams::default(), &serde_json::from_value(group)?).await.context("a PodGroup")?;
    }
    let member = |at: usize| {
        let memory = if at % 500 == 499 { 90_000 } else { 100 };
        let mut pod = share(&format!("gang-{at}"), memory);
        pod["metadata"]["annotations"] =
            json!({"scheduling.k8s.io/group-name": format!("gang-{}", at / 500)});
        pod
    };
    pods(client, namespace, (0..2000).map(member)).await
}

fn share(name: &str, memory: usize) -> Value {
    let limits = json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string()});
    json!({
        "metadata": {"name": name},
        "spec": {
            "schedulerName": SCHEDULER, "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10.1", "resources": {"limits": limits}}],
        },
    })
}

async fn pods(client: &Client, namespace: &str, pods: impl Iterator<Item = Value>) -> anyhow::Result<()> {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let created = pods.map(|pod| create(&api, pod));
    stream::iter(created).buffer_unordered(WRITERS).try_collect::<Vec<()>>().await?;
    Ok(())
}

async fn create<T>(api: &Api<T>, object: Value) -> anyhow::Result<()>
where
    T: kube::Resource + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let object: T = serde_json::from_value(object)?;
    let name = object.meta().name.clone().unwrap_or_default();
    api.create(&PostParams::default(), &object).await.map(drop).with_context(|| format!("creating {name}"))
}
