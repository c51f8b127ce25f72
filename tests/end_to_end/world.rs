//! One cluster with nodes, agents and Berth at work on it.

#[path = "world/observations.rs"]
mod observations;
#[path = "world/processes.rs"]
mod processes;

use std::{collections::BTreeMap, time::Duration};

use berth::{
    cluster::{Leadership, Metrics, election::candidate::ElectionSettings},
    scheduling::model::kube_scheduler::KubeScheduler,
};
use berth_sandbox::agent::{Fleet, node::Node};
use http::{HeaderValue, Request};
use http_body_util::BodyExt as _;
use k8s_openapi::api::{
    admissionregistration::v1::ValidatingWebhookConfiguration, coordination::v1::Lease, core::v1 as core,
};
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    runtime::wait::await_condition,
};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use serde_json::{Value, json};
use tokio::task::JoinSet;

pub(crate) use self::observations::{annotation, node_of, phase, without_nearest};
use self::processes::{Asked, install_crypto};
use crate::support::{
    controlplane::Options as ControlPlaneOptions,
    devices,
    floor::{Cluster, Floor},
};

/// After this time something that should have happened has not.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

/// A cluster with nodes, agents and Berth.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    /// The release of kube-scheduler that belongs to its API server.
    pub(crate) release: KubeScheduler,
    pub(crate) fleet: Fleet,
    /// What the binders count, all of them together.
    metrics: Metrics,
    berth: JoinSet<()>,
}

/// A pod of one container with these limits, for Berth to place.
pub(crate) fn pod(name: &str, limits: &Value) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "schedulerName": "berth",
            "containers": [{"name": "main", "image": "train", "resources": {"limits": limits}}],
        },
    })
}

/// With one more container, which has these limits.
pub(crate) fn and_container(mut pod: Value, limits: &Value) -> Value {
    let containers = pod["spec"]["containers"].as_array_mut().expect("a pod has containers");
    let name = format!("more-{}", containers.len());
    containers.push(json!({"name": name, "image": "train", "resources": {"limits": limits}}));
    pod
}

impl World {
    /// A cluster of these nodes with Berth at work; `None`, said aloud, where the floor is not to be had.
    pub(crate) async fn start(floor: Floor, nodes: Vec<Node>) -> Option<Self> {
        let mut world = Self::without_berth(floor, nodes).await?;
        world.start_berth();
        Some(world)
    }

    /// A cluster of these nodes that serves Koordinator's Devices; Berth is yet to start.
    pub(crate) async fn with_devices(floor: Floor, nodes: Vec<Node>) -> Option<Self> {
        let cluster = Cluster::start(floor).await?;
        devices::serve(&cluster.client, floor).await;
        let fleet = Fleet::start(cluster.client.clone(), nodes).await.unwrap();
        Some(Self::of(cluster, fleet).await)
    }

    async fn of(cluster: Cluster, fleet: Fleet) -> Self {
        let version = cluster.client.apiserver_version().await.unwrap();
        let release = KubeScheduler::of_minor(version.minor.parse().unwrap());
        Self { cluster, release, fleet, metrics: Metrics::default(), berth: JoinSet::new() }
    }

    /// Brings these nodes, while Berth is at work, into a cluster that has none and that serves Koordinator's Devices from now on.
    pub(crate) async fn join(&mut self, floor: Floor, nodes: Vec<Node>) {
        devices::serve(&self.cluster.client, floor).await;
        self.fleet = Fleet::start(self.cluster.client.clone(), nodes).await.unwrap();
    }

    /// The Devices of the cluster.
    pub(crate) fn devices(&self) -> Api<DynamicObject> {
        devices::devices(&self.cluster.client)
    }

    /// The Reservations of the cluster, which serves them from now on.
    pub(crate) async fn reservations(&self, floor: Floor) -> Api<DynamicObject> {
        devices::serve_reservations(&self.cluster.client, floor).await;
        devices::reservations(&self.cluster.client)
    }

    /// A cluster of these nodes; Berth is yet to start.
    pub(crate) async fn without_berth(floor: Floor, nodes: Vec<Node>) -> Option<Self> {
        Self::without_berth_on(floor, nodes, ControlPlaneOptions::default()).await
    }

    /// As [`Self::without_berth`], with options of the real floor.
    pub(crate) async fn without_berth_on(
        floor: Floor,
        nodes: Vec<Node>,
        options: ControlPlaneOptions,
    ) -> Option<Self> {
        let cluster = Cluster::start_with(floor, options).await?;
        let fleet = Fleet::start(cluster.client.clone(), nodes).await.unwrap();
        Some(Self::of(cluster, fleet).await)
    }

    /// A cluster of these nodes with all of Berth, webhook and binder, whose namespace `default` has opted in with these hints.
    pub(crate) async fn with_webhook(floor: Floor, nodes: Vec<Node>, hints: Value) -> Option<Self> {
        let mut world = Self::opted_in(floor, nodes, hints).await?;
        world.start_app(Leadership::Alone, Asked::Yes).await;
        world.until_admitting().await;
        Some(world)
    }

    /// As [`Self::with_webhook`], but there are two of Berth: one leads, and the webhook that is asked is the other's.
    pub(crate) async fn with_the_webhook_of_a_follower(floor: Floor, nodes: Vec<Node>) -> Option<Self> {
        let mut world = Self::opted_in(floor, nodes, json!({})).await?;
        let stands = |who| Leadership::Elected(ElectionSettings::new("default", "berth", who));
        world.start_app(stands("leader"), Asked::No).await;
        world.until_led_by("leader").await;
        world.start_app(stands("follower"), Asked::Yes).await;
        world.until_admitting().await;
        Some(world)
    }

    /// Until this one leads.
    pub(crate) async fn until_led_by(&self, name: &str) {
        let leases: Api<Lease> = Api::default_namespaced(self.cluster.client.clone());
        let leads = |lease: Option<&Lease>| lease.is_some_and(|lease| holder(lease) == name);
        tokio::time::timeout(LIMIT, await_condition(leases, "berth", leads)).await.unwrap().unwrap();
    }

    /// Who leads.
    pub(crate) async fn leader(&self) -> String {
        let leases: Api<Lease> = Api::default_namespaced(self.cluster.client.clone());
        holder(&leases.get("berth").await.unwrap()).to_owned()
    }

    /// A cluster of these nodes whose namespace `default` has opted in with these hints.
    async fn opted_in(floor: Floor, nodes: Vec<Node>, hints: Value) -> Option<Self> {
        install_crypto();
        let world = Self::without_berth(floor, nodes).await?;
        let opted_in =
            json!({"metadata": {"labels": {"berth.dev/admission": "enabled"}, "annotations": hints}});
        let namespaces: Api<core::Namespace> = Api::all(world.cluster.client.clone());
        namespaces.patch("default", &PatchParams::default(), &Patch::Merge(opted_in)).await.unwrap();
        Some(world)
    }

    /// A pod as the API server would store it, and what whoever asks is warned of.
    pub(crate) async fn dry_run(&self, pod: &Value) -> (core::Pod, Vec<String>) {
        let mut pod = pod.clone();
        pod["apiVersion"] = "v1".into();
        pod["kind"] = "Pod".into();
        let request = Request::post("/api/v1/namespaces/default/pods?dryRun=All")
            .header("content-type", "application/json")
            .body(pod.to_string().into_bytes().into())
            .unwrap();
        let response = self.cluster.client.send(request).await.unwrap();
        let warnings = response.headers().get_all("warning").iter();
        let text = |header: &HeaderValue| {
            let quoted =
                header.to_str().unwrap().strip_prefix("299 - \"").unwrap().strip_suffix('"').unwrap();
            quoted.replace("\\\"", "\"")
        };
        let warnings = warnings.map(text).collect();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (serde_json::from_slice(&body).unwrap(), warnings)
    }

    /// The page of Berth's metrics, asked for by who trusts the authority that Berth has published.
    pub(crate) async fn metrics(&self) -> String {
        let client = self.cluster.client.clone();
        let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client);
        let webhook = configurations.get("berth").await.unwrap().webhooks.unwrap().remove(0).client_config;
        let mut config = kube::Config::new(webhook.url.unwrap().parse().unwrap());
        config.root_cert = Some(
            CertificateDer::pem_slice_iter(&webhook.ca_bundle.unwrap().0)
                .map(|certificate| certificate.unwrap().to_vec())
                .collect(),
        );
        let address = config.cluster_url.authority().unwrap().clone();
        config.cluster_url = format!("https://{address}").parse().unwrap();
        let request = Request::get("/metrics").body(Vec::new()).unwrap();
        kube::Client::try_from(config).unwrap().request_text(request).await.unwrap()
    }

    /// Returns once the API server would create the pod, or would not.
    pub(crate) async fn until_judged(&self, pod: &core::Pod, admitted: bool) {
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        let mut again = tokio::time::interval(Duration::from_millis(50));
        let mut answers = BTreeMap::new();
        let judged = async {
            loop {
                again.tick().await;
                let answer = self.pods().create(&dry_run, pod).await;
                if answer.is_ok() == admitted {
                    return;
                }
                let text = answer.map_or_else(|error| error.to_string(), |_| "admitted".to_owned());
                *answers.entry(text).or_insert(0) += 1;
            }
        };
        let in_time = tokio::time::timeout(LIMIT, judged).await.is_ok();
        assert!(
            in_time,
            "the API server does not judge the pod so in time; its answers, counted: {answers:#?}"
        );
    }

    /// Returns once a share pod meets the webhook: the API server learns of its configuration by a watch of its own.
    async fn until_admitting(&self) {
        let probe: core::Pod = serde_json::from_value(pod("probe", &json!({"nvidia.com/gpu": "1"}))).unwrap();
        let mixed: core::Pod = serde_json::from_value(pod(
            "probe",
            &json!({"nvidia.com/gpu": "1", "volcano.sh/vgpu-number": "1"}),
        ))
        .unwrap();
        // A webhook that is not reached refuses every pod: its failure policy is Fail.
        self.until_judged(&mixed, false).await;
        self.until_judged(&probe, true).await;
    }

    pub(crate) fn pods(&self) -> Api<core::Pod> {
        Api::default_namespaced(self.cluster.client.clone())
    }

    pub(crate) fn nodes(&self) -> Api<core::Node> {
        Api::all(self.cluster.client.clone())
    }

    pub(crate) async fn create(&self, pod: Value) -> core::Pod {
        self.pods().create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap()
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.pods().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Deletes the pods and returns once none is left, which takes until their kubelets have stopped them.
    pub(crate) async fn delete_and_await(&self, names: &[&str]) {
        for name in names {
            self.delete(name).await;
        }
        for name in names {
            let gone = await_condition(self.pods(), name, |pod: Option<&core::Pod>| pod.is_none());
            tokio::time::timeout(LIMIT, gone).await.expect("the pod is gone in time").unwrap();
        }
    }

    /// Ends the pod as a kubelet does that can't admit it.
    pub(crate) async fn fail(&self, name: &str, reason: &str) {
        let failed = Patch::Merge(json!({"status": {"phase": "Failed", "reason": reason}}));
        self.pods().patch_status(name, &PatchParams::default(), &failed).await.unwrap();
    }

    pub(crate) async fn patch_node(&self, name: &str, patch: Value) -> core::Node {
        self.nodes().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
    }

    /// The agents saw nothing that a scheduler must not do, and no wait was ended by the binder's audit, which runs every minute,
    /// instead of by the change that should end it.
    pub(crate) fn agents_are_content(&self) {
        assert_eq!(self.metrics.drifts(), 0, "the binder's audit found drifts");
        assert_eq!(self.fleet.violations(), []);
        assert!(self.fleet.troubles().is_empty(), "{:?}", self.fleet.troubles());
    }
}

fn holder(lease: &Lease) -> &str {
    lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
}
