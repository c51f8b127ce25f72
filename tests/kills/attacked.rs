//! A user whose claims take long to evaluate, and the pods of another user.
//!
//! It must not measure how long these wait: `benches/tenants` does.

use std::time::Duration;

use k8s_openapi::api::{
    coordination::v1::{Lease, LeaseSpec},
    core::v1::{Namespace, Pod},
    resource::v1::{DeviceClass, ResourceClaim, ResourceSlice},
};
use kube::{
    Api, Client,
    api::PostParams,
    runtime::wait::{Condition, await_condition},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::support::installed::NAMESPACE;

/// The class of the devices, and their driver.
const CLASS: &str = "gpu.example.com";
/// The namespace of the other user.
const OTHER: &str = "other";
/// After so long a pod is not bound because nothing is.
const LIMIT: Duration = Duration::from_mins(1);

async fn create<K>(api: &Api<K>, object: Value) -> K
where
    K: Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap()
}

/// Eight devices on each of these nodes, and the other user's namespace.
pub(crate) async fn prepare(client: &Client, nodes: &[String]) {
    create(&Api::<DeviceClass>::all(client.clone()), json!({"metadata": {"name": CLASS}})).await;
    let slices: Api<ResourceSlice> = Api::all(client.clone());
    for node in nodes {
        let devices: Vec<Value> = (0..8).map(|at| json!({"name": format!("gpu-{at}")})).collect();
        let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1});
        let spec = json!({"driver": CLASS, "nodeName": node, "devices": devices, "pool": pool});
        create(&slices, json!({"metadata": {"name": format!("{node}-gpu")}, "spec": spec})).await;
    }
    create(&Api::<Namespace>::all(client.clone()), json!({"metadata": {"name": OTHER}})).await;
}

/// A claim of eight requests, each with as many selectors as a request may have, which take as long as the API server admits. All devices pass all
/// of them but the last.
pub(crate) async fn attack(client: &Client) {
    let list = format!("[{}]", ["0"; 38].join(","));
    let loops = format!("{list}.all(x, {list}.all(y, {list}.all(z, x + y + z >= 0)))");
    let selector = |request: usize, at: usize| {
        let sign = if (request, at) == (7, 30) { "==" } else { "!=" };
        json!({"cel": {"expression": format!("{loops} && device.driver {sign} 'none-{request}-{at}'")}})
    };
    let request = |number: usize| {
        let selectors: Vec<Value> = (0..31).map(|at| selector(number, at)).collect();
        json!({"name": format!("r{number}"), "exactly": {"deviceClassName": CLASS, "selectors": selectors}})
    };
    let requests: Vec<Value> = (0..8).map(request).collect();
    let claims: Api<ResourceClaim> = Api::default_namespaced(client.clone());
    let spec = json!({"devices": {"requests": requests}});
    create(&claims, json!({"metadata": {"name": "slow"}, "spec": spec})).await;
    let container = json!({"name": "main", "image": "train", "resources": {"claims": [{"name": "c"}]}});
    let spec = json!({"schedulerName": "berth", "containers": [container],
        "resourceClaims": [{"name": "c", "resourceClaimName": "slow"}]});
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    create(&pods, json!({"metadata": {"name": "slow"}, "spec": spec})).await;
}

/// Creates a pod of the other user, and waits until it is bound.
pub(crate) async fn probe(client: &Client, name: &str) {
    let limits = json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "100"});
    let container = json!({"name": "main", "image": "train", "resources": {"limits": limits}});
    let pods: Api<Pod> = Api::namespaced(client.clone(), OTHER);
    let spec = json!({"schedulerName": "berth", "containers": [container]});
    create(&pods, json!({"metadata": {"name": name}, "spec": spec})).await;
    let bound = tokio::time::timeout(LIMIT, await_condition(pods, name, is_bound())).await;
    bound.unwrap_or_else(|_| panic!("{name} is not bound beside the attack")).unwrap();
}

fn is_bound() -> impl Condition<Pod> {
    |pod: Option<&Pod>| pod.and_then(|pod| pod.spec.as_ref()).is_some_and(|spec| spec.node_name.is_some())
}

/// Whether the pod whose claim takes long is neither bound nor rejected. Where the watch of pods was ahead of that of claims, its condition says still
/// that the claim is not found.
pub(crate) async fn waits(client: &Client) -> bool {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let pod = pods.get("slow").await.unwrap();
    let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
    let is_early = |message: &Option<String>| {
        message.as_ref().is_some_and(|message| message.ends_with("resourceclaim \"slow\" not found."))
    };
    pod.spec.unwrap().node_name.is_none() && conditions.iter().all(|told| is_early(&told.message))
}

/// Who leads, since when, and after how many others.
pub(crate) async fn lease(client: &Client) -> LeaseSpec {
    let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
    leases.get("berth").await.unwrap().spec.unwrap()
}
