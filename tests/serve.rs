//! `berth serve` as it is installed: the manifests applied to a real API server, the program with just the rights that they give.
//!
//! It must not look inside Berth: what is asserted is what the API server and the process show.
#![cfg(feature = "sandbox")]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod api;
#[path = "docs/block.rs"]
#[allow(dead_code, reason = "the tests of the documentation use all of it")]
mod block;
mod extender;
mod install_page;
mod pages;
mod reader;
mod rights;
mod seen;
mod take_over_page;

use std::{net::SocketAddr, time::Duration};

use berth::cli::manifests::ManifestsArgs;
use berth_sandbox::agent::{Fleet, card::Card, node::Node, wire::Release};
use http_body_util::BodyExt as _;
use k8s_openapi::api::{
    coordination::v1::Lease, core::v1 as core, events::v1::Event, rbac::v1::ClusterRoleBinding,
};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams},
    runtime::wait::await_condition,
};
use serde_json::{Value, json};

use crate::support::{
    controlplane::{ControlPlane, Options},
    identity::Identity,
    installed::{ACCOUNT, NAMESPACE, Replica, apply_manifests, free_address},
};

const LIMIT: Duration = Duration::from_mins(1);
const READER: &str = "reader";
const STRANGER: &str = "stranger";

fn share(name: &str) -> core::Pod {
    let limits = json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"});
    let container = json!({"name": "main", "image": "train", "resources": {"limits": limits}});
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"containers": [container]}})).unwrap()
}

/// Creates the pod as soon as the webhook answers, and waits until it runs.
async fn runs(client: &Client, name: &str) {
    let pods: Api<core::Pod> = Api::default_namespaced(client.clone());
    let mut again = tokio::time::interval(Duration::from_millis(100));
    let created = async {
        loop {
            again.tick().await;
            match pods.create(&PostParams::default(), &share(name)).await {
                Ok(pod) => return pod,
                Err(error) => assert!(error.to_string().contains("failed calling webhook"), "{error}"),
            }
        }
    };
    let created = tokio::time::timeout(LIMIT, created).await.expect("the webhook answers in time");
    assert_eq!(created.spec.unwrap().scheduler_name.as_deref(), Some("berth"));
    let running = |pod: Option<&core::Pod>| {
        pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref()).is_some_and(|phase| phase == "Running")
    };
    let seen = tokio::time::timeout(LIMIT, await_condition(pods.clone(), name, running)).await;
    assert!(seen.is_ok(), "not in time: {:#?}", pods.get(name).await);
}

async fn holder(client: &Client, namespace: &str) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), namespace);
    let lease = leases.get_opt("berth").await.unwrap()?;
    lease.spec?.holder_identity.filter(|holder| !holder.is_empty())
}

/// What a path of this process answers to the bearer of a token.
async fn ask(address: SocketAddr, token: Option<String>) -> (u16, Value) {
    try_ask(address, "/debug/ledger", token).await.unwrap()
}

async fn try_ask(address: SocketAddr, path: &str, token: Option<String>) -> kube::Result<(u16, Value)> {
    let mut config = kube::Config::new(format!("https://{address}").parse().unwrap());
    config.accept_invalid_certs = true;
    config.default_retry = false;
    config.auth_info.token = token.map(Into::into);
    let client = Client::try_from(config).unwrap();
    let request = http::Request::get(path).body(kube::client::Body::empty()).unwrap();
    let response = client.send(request).await?;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    Ok((status, serde_json::from_slice(&body).unwrap()))
}

/// The metrics of this process, without credentials, once it listens.
async fn metrics(address: SocketAddr) -> String {
    until("the process listens", async || try_metrics(address).await.ok()).await
}

async fn try_metrics(address: SocketAddr) -> kube::Result<String> {
    let mut config = kube::Config::new(format!("https://{address}").parse().unwrap());
    config.accept_invalid_certs = true;
    config.default_retry = false;
    let client = Client::try_from(config).unwrap();
    let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
    client.request_text(request).await
}

/// Looks again and again until it finds something.
async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let found = async {
        let mut again = tokio::time::interval(Duration::from_millis(100));
        loop {
            again.tick().await;
            if let Some(found) = look().await {
                return found;
            }
        }
    };
    tokio::time::timeout(LIMIT, found).await.unwrap_or_else(|_| panic!("not in time: {what}"))
}

/// What a process has logged with `--log-format json`.
fn logged(plane: &ControlPlane, name: &str) -> Vec<Value> {
    let log = std::fs::read_to_string(plane.directory().join(format!("{name}.log"))).unwrap();
    let lines =
        log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}")));
    lines.collect()
}

/// A pod that is refused, and what the log says of it.
async fn a_denial_is_logged_with_pod_user_and_rules(plane: &ControlPlane, client: &Client) {
    let mut refused = share("");
    refused.metadata.name = None;
    refused.metadata.generate_name = Some("job-".to_owned());
    let limits = &mut refused.spec.as_mut().unwrap().containers[0].resources.as_mut().unwrap().limits;
    limits
        .as_mut()
        .unwrap()
        .insert("nvidia.com/gpumem-percentage".to_owned(), serde_json::from_value(json!("150")).unwrap());
    let pods: Api<core::Pod> = Api::default_namespaced(client.clone());
    assert!(pods.create(&PostParams::default(), &refused).await.is_err());
    let denial = logged(plane, "first").into_iter().find(|line| line["message"] == "denied");
    let denial = denial.expect("a line about the denial");
    assert_eq!(
        (&denial["namespace"], &denial["name"], &denial["level"]),
        (&json!("default"), &json!("job-*"), &json!("INFO"))
    );
    assert!(
        !denial["user"].as_str().unwrap().is_empty() && !denial["rules"].as_str().unwrap().is_empty(),
        "{denial}"
    );
}

/// A replica beside the leader: its metrics, what it says of the ledger, and a settings file that it rejects.
async fn a_follower_reports_how_it_stands(
    client: &Client,
    address: SocketAddr,
    leader: &str,
    settings: &std::path::Path,
) {
    let synced = async || metrics(address).await.contains("\nberth_scheduler_synced 1\n").then_some(());
    until("the follower is synced", synced).await;
    let page = metrics(address).await;
    assert!(
        page.contains("\nberth_scheduler_leader 0\n") && !page.contains("berth_card_memory_bytes{"),
        "{page}"
    );
    let (status, refused) = ask(address, Some(Identity::new(READER, &[]).token())).await;
    assert_eq!((status, &refused["details"]["name"]), (503, &json!(leader)), "{refused}");
    let pod = leader.split('_').next().unwrap();
    assert!(
        refused["message"].as_str().unwrap().ends_with(&format!("{leader} leads: ask pod {pod}")),
        "{refused}"
    );

    std::fs::write(settings, "adoptSchedulrs: []\n").unwrap();
    let rejected =
        async || metrics(address).await.contains("\nberth_config_last_reload_successful 0\n").then_some(());
    until("the settings are rejected", rejected).await;
    let events: Api<Event> = Api::namespaced(client.clone(), NAMESPACE);
    let event = until("the Event", async || {
        let events = events.list(&ListParams::default()).await.unwrap();
        events.items.into_iter().find(|event| event.reason.as_deref() == Some("SettingsRejected"))
    });
    let event = event.await;
    let regarding = event.regarding.unwrap();
    assert_eq!((regarding.name.as_deref(), regarding.uid.as_deref()), (Some("berth-2"), Some("uid-2")));
    assert!(event.note.unwrap().contains("adoptSchedulrs: unknown key"));
    std::fs::write(settings, "adoptSchedulers: []\n").unwrap();
    let taken =
        async || metrics(address).await.contains("\nberth_config_last_reload_successful 1\n").then_some(());
    until("the settings are good again", taken).await;
}

/// While the pod `one` runs on `gpu-1`.
async fn the_ledger_is_shown_to_who_may_see_it(client: &Client, address: SocketAddr) {
    let binding = json!({
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "berth:ledger-reader"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": READER}],
    });
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    bindings.create(&PostParams::default(), &serde_json::from_value(binding).unwrap()).await.unwrap();
    let token = |user: &str| Some(Identity::new(user, &[]).token());
    assert_eq!(ask(address, None).await.0, 401);
    assert_eq!(ask(address, Some("no-such-token".to_owned())).await.0, 401);
    let (status, refused) = ask(address, token(STRANGER)).await;
    assert_eq!(
        (status, &refused["message"]),
        (403, &json!("user \"stranger\" cannot get path \"/debug/ledger\""))
    );
    // The API server's authorizer learns of the binding by a watch of its own.
    let shown = async {
        let mut again = tokio::time::interval(Duration::from_millis(50));
        loop {
            again.tick().await;
            if let (200, page) = ask(address, token(READER)).await {
                return page;
            }
        }
    };
    let ledger = tokio::time::timeout(LIMIT, shown).await.expect("the reader is let in");
    let card = &ledger["nodes"][0]["cards"][0];
    assert_eq!((&card["uuid"], &card["memoryUsed"]), (&json!("GPU-gpu-1-0"), &json!(1000)));
    assert_eq!(card["pods"], json!(["default/one"]));
    let held = &ledger["pods"][0];
    let share = json!([{"uuid": "GPU-gpu-1-0", "model": held["cards"][0]["model"], "slots": 1, "memory": 1000, "cores": 0}]);
    assert_eq!(held["cards"], share);
    let allocated = "berth_card_memory_allocated_bytes{node=\"gpu-1\",card=\"GPU-gpu-1-0\",index=\"0\",";
    let page = metrics(address).await;
    let line = page.lines().find(|line| line.starts_with(allocated));
    assert!(line.is_some_and(|line| line.ends_with(" 1048576000.0")), "{line:?}");
    let of_model = &ledger["gpus"][0];
    assert_eq!(of_model["model"], held["cards"][0]["model"]);
    assert!(of_model["allocated"].as_f64().is_some_and(|allocated| allocated > 0.0), "{of_model}");
    for key in ["capacity", "allocated", "free", "fragmented"] {
        let metric = format!("berth_gpus_{key}{{model={}}} ", of_model["model"]);
        let value = page.lines().find_map(|line| line.strip_prefix(&metric)?.parse::<f64>().ok());
        assert_eq!(value, of_model[key].as_f64(), "{key}");
    }
    assert_eq!((&held["name"], &held["commitment"]), (&json!("one"), &json!("Bound")));
}

/// The status of the metrics for the bearer of a token.
async fn scrape(address: SocketAddr, token: Option<String>) -> u16 {
    let mut config = kube::Config::new(format!("https://{address}").parse().unwrap());
    config.accept_invalid_certs = true;
    config.default_retry = false;
    config.auth_info.token = token.map(Into::into);
    let client = Client::try_from(config).unwrap();
    let request = http::Request::get("/metrics").body(kube::client::Body::empty()).unwrap();
    client.send(request).await.unwrap().status().as_u16()
}

/// On a process whose settings are this file, with `metrics.authentication: none` before and after.
async fn metrics_are_shown_to_who_may_see_them(
    client: &Client,
    address: SocketAddr,
    settings: &std::path::Path,
) {
    assert_eq!(scrape(address, None).await, 200);
    std::fs::write(settings, "metrics: {authentication: token}\n").unwrap();
    until("a token is asked for", async || (scrape(address, None).await == 401).then_some(())).await;
    let token = |user: &str| Some(Identity::new(user, &[]).token());
    assert_eq!(scrape(address, Some("no-such-token".to_owned())).await, 401);
    assert_eq!(scrape(address, token(STRANGER)).await, 403);
    assert_eq!(scrape(address, token(READER)).await, 403, "the right to the ledger is another one");
    let binding = json!({
        "metadata": {"name": "scraper"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "berth:metrics-reader"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": READER}],
    });
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    bindings.create(&PostParams::default(), &serde_json::from_value(binding).unwrap()).await.unwrap();
    until("the reader is let in", async || (scrape(address, token(READER)).await == 200).then_some(())).await;
    assert_eq!(try_ask(address, "/healthz", None).await.unwrap().0, 200, "probes show no token");
    std::fs::write(settings, "adoptSchedulers: []\n").unwrap();
    until("no token is asked for", async || (scrape(address, None).await == 200).then_some(())).await;
}

/// Opts the namespace in and adds a node with its agent.
async fn cluster(client: &Client) -> Fleet {
    let opted_in = Patch::Merge(json!({"metadata": {"labels": {"berth.dev/admission": "enabled"}}}));
    let namespaces: Api<core::Namespace> = Api::all(client.clone());
    namespaces.patch("default", &PatchParams::default(), &opted_in).await.unwrap();
    let node =
        Node::new("gpu-1").allocatable("cpu", "8").allocatable("memory", "32Gi").allocatable("pods", "110");
    let node = node.card(Card::new("GPU-gpu-1-0", 0, 16_384).slots(10)).hami(Release::V2_10);
    Fleet::start(client.clone(), vec![node]).await.unwrap()
}

#[tokio::test]
async fn the_installed_program_places_pods_and_hands_over_at_its_end() {
    let account = Identity::service_account(NAMESPACE, "berth");
    let (reader, stranger) = (Identity::new(READER, &[]), Identity::new(STRANGER, &[]));
    let options = Options { identities: vec![account, reader, stranger], ..Options::default() };
    let Some(plane) = ControlPlane::start(options).await else { return };
    let client = plane.admin();
    let address = free_address();
    apply_manifests(&client, address, ManifestsArgs::default()).await;
    let fleet = cluster(&client).await;

    let first = Replica::start_as(&plane, ACCOUNT, "first", address, &["--log-format", "json"]);
    runs(&client, "one").await;
    a_denial_is_logged_with_pod_user_and_rules(&plane, &client).await;
    the_ledger_is_shown_to_who_may_see_it(&client, address).await;
    let leader = holder(&client, NAMESPACE).await.expect("the first replica holds the lease");
    let settings = plane.directory().join("berth.yaml");
    std::fs::write(&settings, "adoptSchedulers: []\n").unwrap();
    let flags = ["--config", settings.to_str().unwrap(), "--pod-name", "berth-2", "--pod-uid", "uid-2"];
    let beside = free_address();
    let second = Replica::start_as(&plane, ACCOUNT, "second", beside, &flags);
    a_follower_reports_how_it_stands(&client, beside, &leader, &settings).await;
    metrics_are_shown_to_who_may_see_them(&client, beside, &settings).await;
    runs(&client, "two").await;
    assert_eq!(holder(&client, NAMESPACE).await.as_ref(), Some(&leader), "the second replica waits its turn");

    // A pod that names Berth needs no webhook, which is gone with the first replica's address.
    assert!(first.stop().await.success());
    let mut third = share("three");
    third.spec.as_mut().unwrap().scheduler_name = Some("berth".to_owned());
    let namespaces: Api<core::Namespace> = Api::all(client.clone());
    namespaces
        .patch("default", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"labels": null}})))
        .await
        .unwrap();
    let pods: Api<core::Pod> = Api::default_namespaced(client.clone());
    // The API server learns by a watch that the namespace is out, and asks the webhook until then.
    until("the webhook is not asked", async || pods.create(&PostParams::default(), &third).await.ok()).await;
    let bound = |pod: Option<&core::Pod>| pod.and_then(|pod| pod.spec.as_ref()?.node_name.as_ref()).is_some();
    tokio::time::timeout(LIMIT, await_condition(pods, "three", bound)).await.unwrap().unwrap();
    assert_ne!(holder(&client, NAMESPACE).await, Some(leader), "the second replica has taken over");

    assert!(second.stop().await.success());
    assert_eq!(holder(&client, NAMESPACE).await, None, "the lease is given back");
    assert_eq!(fleet.violations(), []);
}
