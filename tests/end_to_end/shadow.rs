//! A shadow beside another scheduler: what it tells of that one's decisions, and that it only reads.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use http::{Method, Request};
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::Binding;
use kube::{
    Client,
    api::{Patch, PatchParams, PostParams},
    client::Body,
};
use serde_json::{Value, json};
use tower::service_fn;

use crate::{
    machines::hami_node,
    support::floor::Floor,
    world::{World, pod},
};

/// After this time something that should have happened has not.
const LIMIT: Duration = Duration::from_mins(1);

/// The methods and paths of requests.
type Seen = Arc<Mutex<Vec<(Method, String)>>>;

/// A way to the API server that notes what is asked through it.
fn noted(client: Client) -> (Client, Seen) {
    let seen: Seen = Arc::default();
    let noted = seen.clone();
    let service = service_fn(move |request: Request<Body>| {
        noted.lock().unwrap().push((request.method().clone(), request.uri().path().to_owned()));
        let client = client.clone();
        async move { client.send(request).await }
    });
    (Client::new(service, "default"), seen)
}

/// What a path of the process answers.
async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut config = kube::Config::new(format!("https://{address}").parse().unwrap());
    config.accept_invalid_certs = true;
    let client = Client::try_from(config).unwrap();
    let response = client.send(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// The report, once it is as wanted.
async fn report(address: SocketAddr, wanted: impl Fn(&Value) -> bool) -> Value {
    let mut again = tokio::time::interval(Duration::from_millis(50));
    let mut last = Value::Null;
    let found = async {
        loop {
            again.tick().await;
            let (status, page) = get(address, "/debug/shadow").await;
            assert_eq!(status, 200, "{page}");
            last = serde_json::from_str(&page).unwrap();
            if wanted(&last) {
                return;
            }
        }
    };
    let in_time = tokio::time::timeout(LIMIT, found).await.is_ok();
    assert!(in_time, "the report is not as wanted: {last:#}");
    last
}

/// How many decisions had this outcome.
fn count(page: &Value, outcome: &str) -> u64 {
    let counts = page["decisions"].as_array().unwrap().iter();
    counts.filter(|count| count["outcome"] == outcome).map(|count| count["count"].as_u64().unwrap()).sum()
}

fn theirs(name: &str, memory: u32) -> Value {
    let mut theirs = pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string()}));
    theirs["spec"]["schedulerName"] = json!("hami-scheduler");
    theirs
}

/// Decides and binds as HAMi's scheduler does, whatever the cards hold.
async fn decide(world: &World, name: &str, node: &str, card: &str, memory: u32) {
    let devices = format!("{card},NVIDIA,{memory},0:;");
    let decided = json!({"metadata": {"annotations": {
        "hami.io/vgpu-node": node, "hami.io/vgpu-time": "1700000000",
        "hami.io/vgpu-devices-to-allocate": devices, "hami.io/vgpu-devices-allocated": devices,
    }}});
    world.pods().patch(name, &PatchParams::default(), &Patch::Merge(decided)).await.unwrap();
    let binding =
        json!({"metadata": {"name": name}, "target": {"apiVersion": "v1", "kind": "Node", "name": node}});
    let binding: Binding = serde_json::from_value(binding).unwrap();
    let bound = world.pods().create_subresource("binding", name, &PostParams::default(), &binding).await;
    let _: Value = bound.unwrap();
}

pub(crate) async fn a_shadow_tells_of_the_schedulers_decisions_and_only_reads(floor: Floor) {
    let nodes = vec![hami_node("gpu-1", 1), hami_node("gpu-2", 1)];
    let Some(mut world) = World::without_berth(floor, nodes).await else { return };
    let (noted, seen) = noted(world.cluster.client.clone());
    let address = world.start_shadow(noted).await;
    report(address, |page| page["synced"] == true).await;

    // The current scheduler may be Berth: then both agree.
    world.start_berth();
    for name in ["one", "two"] {
        let limits = json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "5000"});
        world.create(pod(name, &limits)).await;
        world.running(name).await;
    }
    let page = report(address, |page| count(page, "same") == 2).await;
    assert_eq!(page["divergences"], json!([]), "{page:#}");

    // HAMi's overcommits a card while another node has room.
    world.create(theirs("doubled", 12_000)).await;
    report(address, |page| page["waiting"] == 1).await;
    decide(&world, "doubled", "gpu-1", "GPU-gpu-1-0", 12_000).await;
    let page = report(address, |page| count(page, "infeasible") == 1).await;
    let found = &page["divergences"][0];
    assert_eq!(
        (&found["name"], &found["reason"], &found["chosen"]["node"], &found["berth"]["node"]),
        (&json!("doubled"), &json!("CardInsufficientMemory"), &json!("gpu-1"), &json!("gpu-2")),
        "{page:#}"
    );
    assert_eq!(found["chosen"]["cards"], json!([{"card": "GPU-gpu-1-0", "memory": 12_000, "cores": 0}]));

    // It leaves a pod pending that would fit.
    world.create(theirs("left", 1000)).await;
    let page = report(address, |page| page["leftPending"] == 1).await;
    assert_eq!((&page["divergences"][0]["name"], &page["waiting"]), (&json!("left"), &json!(1)), "{page:#}");

    let (_, metrics) = get(address, "/metrics").await;
    for line in [
        "berth_shadow_decisions_total{outcome=\"same\",reason=\"\"} 2",
        "berth_shadow_decisions_total{outcome=\"infeasible\",reason=\"CardInsufficientMemory\"} 1",
        "berth_shadow_left_pending_pods_total 1",
        "berth_shadow_waiting_pods 1",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    assert!(!metrics.contains("berth_scheduler_"), "a shadow has no binder to count: {metrics}");
    assert_eq!(get(address, "/debug/ledger").await.0, 404, "who asks would be found out by a write");

    let seen = seen.lock().unwrap();
    let other: Vec<_> = seen.iter().filter(|(method, _)| *method != Method::GET).collect();
    assert!(other.is_empty() && seen.len() > 10, "{other:?} of {}", seen.len());
    assert!(!seen.iter().any(|(_, path)| path.contains("/leases") || path.contains("/secrets")), "{seen:?}");
}
