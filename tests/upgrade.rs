//! Whether an upgrade, a rollback and an uninstallation lose no pod, with the programs that operators use.
//!
//! On the real floor: kubectl or Helm apply the manifests of two versions, and replicas of the program are exchanged one at a time, as the
//! Deployment does it. Both versions run the same program, with the settings of each: there is no earlier release yet.
#![cfg(feature = "sandbox")]
#![allow(clippy::unwrap_used, reason = "a step of a test fails as the test does")]

mod installer;
mod remains;
mod service;
mod users;

use std::{collections::BTreeSet, net::SocketAddr, time::Duration};

use berth_sandbox::agent::{Behaviour, Fleet, card::Card, node::Node, wire::Release};
use installer::{Helm, Kubectl, NEW_SETTINGS, Version};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{self as core, Namespace, Pod},
};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams},
    runtime::wait::await_condition,
};
use serde_json::{Value, json};
use service::Service;
use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};
use users::{Tally, Users};

use crate::support::{
    checker::{Checker, Recording},
    controlplane::{ControlPlane, Options, WebhookCalls},
    identity::Identity,
    installed::{self, ACCOUNT, NAMESPACE, Replica, free_address, may},
    server::{pause, say},
};

const NODES: usize = 3;
const CARDS: u32 = 4;
/// MiB of each card.
const MEMORY: u64 = 16_384;
/// How long a pod runs.
const LIFE: Duration = Duration::from_millis(500);
/// After this time a pod that is not bound is lost.
const PATIENCE: Duration = Duration::from_mins(1);
/// The longest time for which the API server enforces a policy that was deleted.
const ENFORCED_FOR: Duration = Duration::from_secs(10);

/// An API server, nodes, and the replicas of Berth behind their Service.
struct Stage {
    plane: ControlPlane,
    client: Client,
    fleet: Fleet,
    service: Service,
    replicas: Vec<(Replica, SocketAddr)>,
    started: usize,
}

impl Stage {
    /// `None`, said aloud, where there is no API server to be had.
    async fn set(webhook_calls: WebhookCalls) -> Option<Self> {
        let mut options = Options { webhook_calls, ..installed::options() };
        let halves = ["berth-webhook", "berth-binder"];
        options.identities.extend(halves.map(|name| Identity::service_account(NAMESPACE, name)));
        let plane = ControlPlane::start(options).await?;
        let client = plane.admin();
        let card = |name: &str, index| Card::new(&format!("GPU-{name}-{index}"), index, MEMORY);
        let node = |number: usize| {
            let name = format!("gpu-{number}");
            (0..CARDS)
                .fold(Node::new(&name), |node, index| node.card(card(&name, index)))
                .hami(Release::V2_10)
        };
        let fleet = Fleet::start(client.clone(), (0..NODES).map(node).collect()).await.unwrap();
        for number in 0..NODES {
            let behaviour = Behaviour { runs_for: Some(LIFE), ..Behaviour::default() };
            fleet.behave(&format!("gpu-{number}"), behaviour).unwrap();
        }
        let opted_in = json!({"metadata": {"labels": {"berth.dev/admission": "enabled"}}});
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces.patch("default", &PatchParams::default(), &Patch::Merge(opted_in)).await.unwrap();
        let service = Service::open().await;
        Some(Self { plane, client, fleet, service, replicas: Vec::new(), started: 0 })
    }

    /// Starts a replica with the settings of a version; it is asked once it is ready.
    async fn start_replica(&mut self, version: Version) {
        let settings = self.plane.directory().join(format!("{version:?}.yaml"));
        std::fs::write(&settings, if version == Version::New { NEW_SETTINGS } else { "" }).unwrap();
        let address = self.start_as(ACCOUNT, &["--config", settings.to_str().unwrap()]);
        self.service.add(address).await;
    }

    /// Starts a replica with the rights of this account, behind no Service yet.
    fn start_as(&mut self, account: &str, arguments: &[&str]) -> SocketAddr {
        self.started += 1;
        let (address, name) = (free_address(), format!("replica-{}", self.started));
        self.replicas.push((Replica::start_as(&self.plane, account, &name, address, arguments), address));
        address
    }

    /// What becomes of the replicas of a Deployment that is deleted: the Service no longer selects them, and they end.
    async fn stop_all(&mut self) {
        self.service.deselect();
        for (replica, _) in &self.replicas {
            replica.terminate();
        }
        for (replica, _) in self.replicas.drain(..) {
            assert!(replica.ended().await.success());
        }
    }

    /// Stops the oldest replica in order.
    async fn stop_replica(&mut self) {
        let (replica, address) = self.replicas.remove(0);
        replica.terminate();
        self.service.remove(address).await;
        assert!(replica.ended().await.success());
    }

    /// What the Deployment does: each replica is replaced once the next one is ready.
    async fn roll_out(&mut self, version: Version, users: &Users) {
        for _ in 0..2 {
            self.start_replica(version).await;
            users.go_on().await;
            self.stop_replica().await;
            users.go_on().await;
        }
    }

    /// The names of the webhooks, those whose authority is published apart.
    async fn webhooks(&self) -> (Vec<String>, Vec<String>) {
        let mut all = Vec::new();
        for kind in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
            let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}/berth");
            let found: Value =
                self.client.request(http::Request::get(path).body(Vec::new()).unwrap()).await.unwrap();
            all.extend(found["webhooks"].as_array().unwrap().clone());
        }
        let name = |webhook: &Value| webhook["name"].as_str().unwrap().to_owned();
        let trusted = all.iter().filter(|webhook| webhook["clientConfig"]["caBundle"].is_string());
        (all.iter().map(name).collect(), trusted.map(name).collect())
    }
}

/// A history of all pods and nodes, for the judge.
async fn recorded(stage: &mut Stage) -> Option<Recording> {
    let checker = Checker::find()?;
    let witness = stage.plane.start_witness().await.unwrap();
    Some(checker.record(&witness, stage.plane.directory().join("history.jsonl")).unwrap())
}

/// Fails unless each pod was reviewed and ran, and no card was given away twice.
async fn faultless(stage: Stage, users: Users, recording: Recording) {
    let Tally { rounds, faults } = users.stop().await;
    say(&format!("{rounds} rounds, {} faults", faults.len()));
    assert!(faults.is_empty(), "{} of {rounds}: {faults:#?}", faults.len());
    let report = recording.judge().unwrap();
    assert_eq!((&report["violations"], &report["lost"]), (&json!([]), &json!([])));
    assert_eq!(stage.fleet.violations(), []);
}

const ADDED: &str = "custom-workload.berth.dev";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_upgrade_and_a_rollback_with_kubectl_lose_no_pod() {
    let Some(mut stage) = Stage::set(WebhookCalls::Http1).await else { return };
    let Some(kubectl) = Kubectl::find(stage.plane.kubeconfig("admin")) else { return };
    let Some(recording) = recorded(&mut stage).await else { return };
    let webhook = stage.service.address;
    kubectl.apply(Version::Old, webhook);
    stage.start_replica(Version::Old).await;
    stage.start_replica(Version::Old).await;
    let users = Users::start(&stage.client);
    users.go_on().await;
    let (before, _) = stage.webhooks().await;
    assert!(!before.iter().any(|name| name == ADDED), "{before:?}");

    kubectl.apply(Version::New, webhook);
    users.go_on().await;
    stage.roll_out(Version::New, &users).await;
    let (after, trusted) = stage.webhooks().await;
    assert!(after.iter().any(|name| name == ADDED), "{after:?}");
    assert_eq!(after, trusted, "a new replica publishes the authority for new webhooks");

    kubectl.apply(Version::Old, webhook);
    users.go_on().await;
    stage.roll_out(Version::Old, &users).await;
    assert_eq!(stage.webhooks().await, (before.clone(), before));
    faultless(stage, users, recording).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_upgrade_and_a_rollback_with_helm_lose_no_pod() {
    let Some(mut stage) = Stage::set(WebhookCalls::Chosen).await else { return };
    let Some(helm) = Helm::find(stage.plane.kubeconfig("admin")) else { return };
    let Some(recording) = recorded(&mut stage).await else { return };
    helm.install(Version::Old, stage.service.address);
    stage.start_replica(Version::Old).await;
    stage.start_replica(Version::Old).await;
    let users = Users::start(&stage.client);
    users.go_on().await;
    let (before, _) = stage.webhooks().await;
    assert!(!before.iter().any(|name| name == ADDED), "{before:?}");

    helm.upgrade(Version::New);
    users.go_on().await;
    stage.roll_out(Version::New, &users).await;
    let (after, trusted) = stage.webhooks().await;
    assert!(after.iter().any(|name| name == ADDED), "{after:?}");
    assert_eq!(after, trusted, "a new replica publishes the authority for new webhooks");

    helm.run(&["rollback", "berth", "1"]);
    users.go_on().await;
    stage.roll_out(Version::Old, &users).await;
    assert_eq!(stage.webhooks().await, (before.clone(), before));
    faultless(stage, users, recording).await;
}

/// A share pod of a namespace that has opted in, as users create it.
fn share_pod(name: &str) -> Pod {
    let limits = json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "2000"});
    let container = json!({"name": "main", "image": "train", "resources": {"limits": limits}});
    let pod = json!({"metadata": {"name": name}, "spec": {"containers": [container]}});
    serde_json::from_value(pod).unwrap()
}

/// Fails unless the API server stores a share pod as it was written, with no part of Berth in between.
async fn admitted_without_berth(client: &Client) {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let began = Instant::now();
    let stored = loop {
        match pods.create(&PostParams::default(), &share_pod("afterwards")).await {
            Ok(stored) => break stored,
            // The API server looks at its policies once a second, and at one before another.
            Err(kube::Error::Api(status)) if status.message.contains(".berth.dev' denied") => {
                pause().await;
            }
            Err(error) => panic!("{error}"),
        }
        assert!(began.elapsed() < ENFORCED_FOR, "the policy is still in force");
    };
    say(&format!("admitted without Berth after {:?}", began.elapsed()));
    let spec = stored.spec.unwrap();
    assert_eq!(spec.scheduler_name.as_deref(), Some("default-scheduler"));
    assert_eq!(stored.metadata.annotations, None);
}

/// A pod that Berth has placed, and that keeps running.
async fn placed(client: &Client) -> Pod {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.create(&PostParams::default(), &share_pod("placed")).await.unwrap();
    bound(client, "placed").await
}

/// The pod once it is bound.
async fn bound(client: &Client, name: &str) -> Pod {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let is_bound = |pod: Option<&Pod>| pod.is_some_and(|pod| pod.spec.as_ref().unwrap().node_name.is_some());
    timeout(PATIENCE, await_condition(pods, name, is_bound))
        .await
        .expect("it is bound in time")
        .unwrap()
        .unwrap()
}

/// Creates a share pod as a controller does: again, as long as the API server can't ask the webhook.
async fn create(client: &Client, name: &str) {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    loop {
        match pods.create(&PostParams::default(), &share_pod(name)).await {
            Ok(_) => return,
            Err(kube::Error::Api(status)) if status.message.contains("failed calling webhook") => {
                pause().await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// The Deployments whose pods the Service of the webhook selects; and all Deployments, each with its account.
async fn deployments(client: &Client) -> (Vec<String>, Vec<(String, String)>) {
    let all: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    let services: Api<core::Service> = Api::namespaced(client.clone(), NAMESPACE);
    let selector = services.get("berth").await.unwrap().spec.unwrap().selector.unwrap();
    let (mut selected, mut accounts) = (Vec::new(), Vec::new());
    for deployment in all.list(&ListParams::default()).await.unwrap() {
        let (name, template) = (deployment.metadata.name.unwrap(), deployment.spec.template);
        let labels = template.metadata.unwrap().labels.unwrap();
        if selector.iter().all(|(key, value)| labels.get(key) == Some(value)) {
            selected.push(name.clone());
        }
        accounts.push((name, template.spec.unwrap().service_account_name.unwrap()));
    }
    (selected, accounts)
}

/// From one Deployment to two and back, with the Deployments' work done by the test: their old replicas end, and new ones start.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn helm_divides_an_installation_in_two_and_a_rollback_joins_it_and_pods_are_bound_throughout() {
    let Some(mut stage) = Stage::set(WebhookCalls::Http1).await else { return };
    let Some(helm) = Helm::find(stage.plane.kubeconfig("admin")) else { return };
    let client = stage.client.clone();
    let objects = async || {
        let mut found = remains::found(&client).await;
        found.retain(|object| !object.starts_with("Secret berth-system/sh.helm.release."));
        found
    };
    let own = |names: &[&str]| {
        names.iter().map(|name| ((*name).to_owned(), (*name).to_owned())).collect::<Vec<_>>()
    };
    let [webhook, binder] =
        ["webhook", "binder"].map(|half| format!("system:serviceaccount:berth-system:berth-{half}"));
    // What each account may do: that of one Deployment, the webhook's, the binder's.
    let rights = async |what: &'static str| {
        let mut rights = Vec::new();
        for account in [ACCOUNT, &webhook, &binder] {
            rights.push(may(&client, NAMESPACE, account, what).await);
        }
        rights
    };
    let of_webhook = [
        "get /secrets:berth-webhook-tls",
        "patch admissionregistration.k8s.io/mutatingwebhookconfigurations:berth",
    ];
    let of_binder =
        ["create /pods/binding", "delete /pods", "patch /nodes", "update coordination.k8s.io/leases:berth"];

    helm.install(Version::New, stage.service.address);
    stage.start_replica(Version::Old).await;
    stage.start_replica(Version::Old).await;
    create(&client, "joined").await;
    bound(&client, "joined").await;
    let joined = objects().await;
    assert_eq!(deployments(&client).await, (vec!["berth".to_owned()], own(&["berth"])));
    for right in of_webhook.iter().chain(&of_binder) {
        assert_eq!(rights(right).await, [true, false, false], "{right}");
    }

    helm.run(&["upgrade", "berth", "New", "--reset-then-reuse-values", "--set", "split=true"]);
    let mut dividing = JoinSet::new();
    dividing.spawn({
        let client = client.clone();
        async move { create(&client, "dividing").await }
    });
    stage.stop_all().await;
    let address = stage.start_as(&webhook, &["--webhook-only"]);
    stage.start_as(&binder, &["--scheduler-only"]);
    stage.service.add(address).await;
    dividing.join_next().await.unwrap().unwrap();
    bound(&client, "dividing").await;
    create(&client, "divided").await;
    bound(&client, "divided").await;
    let divided = objects().await;
    let kinds = ["Deployment", "PodDisruptionBudget", "ServiceAccount"];
    let named = |names: &[&str]| {
        let of =
            |kind: &str| names.iter().map(|name| format!("{kind} berth-system/{name}")).collect::<Vec<_>>();
        kinds.iter().flat_map(|kind| of(kind)).collect::<BTreeSet<_>>()
    };
    assert_eq!(&joined - &divided, named(&["berth"]));
    assert_eq!(&divided - &joined, named(&["berth-binder", "berth-webhook"]));
    let halves = own(&["berth-binder", "berth-webhook"]);
    assert_eq!(deployments(&client).await, (vec!["berth-webhook".to_owned()], halves));
    for right in of_webhook {
        assert_eq!(rights(right).await, [false, true, false], "{right}");
    }
    for right in of_binder {
        assert_eq!(rights(right).await, [false, false, true], "{right}");
    }

    helm.run(&["rollback", "berth", "1"]);
    let mut joining = JoinSet::new();
    joining.spawn({
        let client = client.clone();
        async move { create(&client, "joining").await }
    });
    stage.stop_all().await;
    stage.start_replica(Version::Old).await;
    stage.start_replica(Version::Old).await;
    joining.join_next().await.unwrap().unwrap();
    bound(&client, "joining").await;
    create(&client, "rejoined").await;
    bound(&client, "rejoined").await;
    assert_eq!(objects().await, joined);
    assert_eq!(deployments(&client).await, (vec!["berth".to_owned()], own(&["berth"])));
    for right in of_webhook.iter().chain(&of_binder) {
        assert_eq!(rights(right).await, [true, false, false], "{right}");
    }
    assert_eq!(stage.fleet.violations(), []);
}

/// What is in the namespace, and the namespace.
const LEFT: [&str; 4] = [
    "ConfigMap berth-system/berth-usage",
    "Lease berth-system/berth",
    "Namespace /berth-system",
    "Secret berth-system/berth-webhook-tls",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_kubectl_has_uninstalled_is_gone_and_pods_are_admitted_without_berth() {
    let Some(mut stage) = Stage::set(WebhookCalls::Http1).await else { return };
    let Some(kubectl) = Kubectl::find(stage.plane.kubeconfig("admin")) else { return };
    let clean = remains::found(&stage.client).await;
    kubectl.apply(Version::New, stage.service.address);
    stage.start_replica(Version::New).await;
    stage.start_replica(Version::New).await;
    let before = placed(&stage.client).await;

    kubectl.uninstall(stage.service.address);
    admitted_without_berth(&stage.client).await;
    stage.replicas.clear();
    let found = remains::found(&stage.client).await;
    // The controller of namespaces, which does not run here, removes what is in the namespace, and then the namespace.
    assert_eq!(found.difference(&clean).map(String::as_str).collect::<Vec<_>>(), LEFT);
    let namespaces: Api<Namespace> = Api::all(stage.client.clone());
    assert!(namespaces.get("berth-system").await.unwrap().metadata.deletion_timestamp.is_some());
    let pods: Api<Pod> = Api::default_namespaced(stage.client.clone());
    let after = pods.get("placed").await.unwrap();
    assert_eq!(after.metadata.uid, before.metadata.uid);
    assert!(after.metadata.annotations.unwrap().keys().any(|key| key.starts_with("hami.io/vgpu-")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_helm_has_uninstalled_is_gone_and_pods_are_admitted_without_berth() {
    let Some(mut stage) = Stage::set(WebhookCalls::Http1).await else { return };
    let Some(helm) = Helm::find(stage.plane.kubeconfig("admin")) else { return };
    let clean = remains::found(&stage.client).await;
    helm.install(Version::New, stage.service.address);
    stage.start_replica(Version::New).await;
    stage.start_replica(Version::New).await;
    placed(&stage.client).await;

    helm.run(&["uninstall", "berth"]);
    admitted_without_berth(&stage.client).await;
    stage.replicas.clear();
    let found = remains::found(&stage.client).await;
    assert_eq!(found.difference(&clean).map(String::as_str).collect::<Vec<_>>(), LEFT);
}

/// The step of docs/helm.md from `berth manifests` to the chart, and the way back to a cluster without Berth.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn helm_takes_over_what_kubectl_has_installed() {
    let Some(stage) = Stage::set(WebhookCalls::Http1).await else { return };
    let kubeconfig = || stage.plane.kubeconfig("admin");
    let (Some(kubectl), Some(helm)) = (Kubectl::find(kubeconfig()), Helm::find(kubeconfig())) else { return };
    let clean = remains::found(&stage.client).await;
    let installed = async || {
        let mut found = remains::found(&stage.client).await;
        found.retain(|object| !object.starts_with("Secret berth-system/sh.helm.release."));
        found
    };
    kubectl.apply(Version::New, stage.service.address);
    let by_kubectl = installed().await;
    helm.take_over(stage.service.address);
    assert_eq!(installed().await, by_kubectl);
    helm.run(&["uninstall", "berth"]);
    let left = installed().await;
    assert_eq!(left.difference(&clean).collect::<Vec<_>>(), ["Namespace /berth-system"]);
}
