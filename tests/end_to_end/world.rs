//! One cluster with nodes, agents and Berth at work on it.

use std::{pin::pin, sync::Arc, time::Duration};

use berth::{
    app::{App, CertificateSource, Chooser, Options, Parts},
    cli::demo::register,
    cluster::{self, Binder, Clock, Handoff, Leadership, Metrics, candidate::Settings},
    config::Config,
    sandbox::agent::{Fleet, node::Node},
    webhook::{Readiness, mint::ServingNames, registration::Registration},
};
use futures::StreamExt as _;
use http::{HeaderValue, Request};
use http_body_util::BodyExt as _;
use k8s_openapi::api::{
    admissionregistration::v1::ValidatingWebhookConfiguration, coordination::v1::Lease, core::v1 as core,
};
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    runtime::{WatchStreamExt as _, wait::await_condition, watcher},
};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use serde_json::{Value, json};
use tokio::task::JoinSet;

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
    pub(crate) fleet: Fleet,
    /// What the binders count, all of them together.
    metrics: Metrics,
    berth: JoinSet<()>,
}

/// Whether the API server asks a webhook.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Asked {
    Yes,
    No,
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
        Some(Self { cluster, fleet, metrics: Metrics::default(), berth: JoinSet::new() })
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
        Some(Self { cluster, fleet, metrics: Metrics::default(), berth: JoinSet::new() })
    }

    pub(crate) fn start_berth(&mut self) {
        self.start_berth_with(&Config::default());
    }

    pub(crate) fn start_berth_with(&mut self, config: &Config) {
        self.start_binder(self.cluster.client.clone(), config);
    }

    /// Starts Berth with another way to the API server.
    pub(crate) fn start_berth_through(&mut self, client: kube::Client) {
        self.start_binder(client, &Config::default());
    }

    pub(crate) fn start_binder(&mut self, client: kube::Client, config: &Config) {
        let reader = Arc::new(config.reader());
        let binder = Binder {
            client,
            settings: config.scheduler_settings(),
            reader,
            clock: Clock::System,
            metrics: self.metrics.clone(),
            writes_at_once: 64,
            leadership: Leadership::Alone,
            handoff: Handoff::default(),
        };
        self.berth.spawn(async move { cluster::run(binder, std::future::pending()).await.unwrap() });
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
        let stands = |who| Leadership::Elected(Settings::new("default", "berth", who));
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

    /// Starts all of Berth with these settings; the API server does not ask its webhook.
    pub(crate) async fn start_app_with(&mut self, settings: &str) {
        install_crypto();
        let (config, _) = Config::parse(settings, "berth.yaml").expect("the settings are good");
        self.start_app_of(config, Leadership::Alone, Asked::No).await;
    }

    /// Starts all of Berth; the API server asks its webhook, or not.
    async fn start_app(&mut self, leadership: Leadership, asked: Asked) {
        self.start_app_of(Config::default(), leadership, asked).await;
    }

    async fn start_app_of(&mut self, config: Config, leadership: Leadership, asked: Asked) {
        let client = self.cluster.client.clone();
        let app = App::bind(options(config, client.clone(), leadership, asked)).await.unwrap();
        if asked == Asked::Yes {
            register(&client, app.local_addr()).await.unwrap();
        }
        let mut readiness = app.readiness();
        self.berth.spawn(async move { app.run(std::future::pending()).await.unwrap() });
        if asked == Asked::Yes {
            // An installed webhook gets no review before: what rules read, such as hints, may be missing.
            let ready = readiness.wait_for(|readiness| *readiness == Readiness::Ready);
            tokio::time::timeout(LIMIT, ready).await.expect("the webhook is ready in time").unwrap();
        }
    }

    /// Starts the binder of a process, for which something else may choose the nodes; returns where it listens, at this address where one
    /// is given.
    pub(crate) async fn start_beside(
        &mut self,
        chooser: Chooser,
        leadership: Leadership,
        listen: Option<std::net::SocketAddr>,
    ) -> std::net::SocketAddr {
        install_crypto();
        let options = options(Config::default(), self.cluster.client.clone(), leadership, Asked::No);
        let listen = listen.unwrap_or(options.listen);
        let app = App::bind(Options { parts: Parts::Binder, chooser, listen, ..options }).await.unwrap();
        let address = app.local_addr();
        self.berth.spawn(async move { app.run(std::future::pending()).await.unwrap() });
        address
    }

    /// Starts a shadow with this way to the API server; returns where it listens. A pod is left pending after a second.
    pub(crate) async fn start_shadow(&mut self, client: kube::Client) -> std::net::SocketAddr {
        install_crypto();
        let parts = Parts::Shadow { settle: jiff::SignedDuration::from_secs(1) };
        let options = Options { parts, ..options(Config::default(), client, Leadership::Alone, Asked::No) };
        let app = App::bind(options).await.unwrap();
        let address = app.local_addr();
        self.berth.spawn(async move { app.run(std::future::pending()).await.unwrap() });
        address
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

    /// Returns once a share pod meets the webhook: the API server learns of its configuration by a watch of its own.
    async fn until_admitting(&self) {
        let probe: core::Pod = serde_json::from_value(pod("probe", &json!({"nvidia.com/gpu": "1"}))).unwrap();
        let mixed: core::Pod = serde_json::from_value(pod(
            "probe",
            &json!({"nvidia.com/gpu": "1", "volcano.sh/vgpu-number": "1"}),
        ))
        .unwrap();
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        let mut again = tokio::time::interval(Duration::from_millis(50));
        let admitting = async {
            loop {
                again.tick().await;
                let admits = self.pods().create(&dry_run, &probe).await.is_ok();
                let judges = self.pods().create(&dry_run, &mixed).await.is_err();
                if admits && judges {
                    return;
                }
            }
        };
        tokio::time::timeout(LIMIT, admitting).await.expect("the webhook is called in time");
    }

    /// Ends Berth as `kill -9` does.
    pub(crate) async fn kill_berth(&mut self) {
        self.berth.shutdown().await;
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

    /// The pod, once it is as wanted; a pod that is not in time is printed.
    pub(crate) async fn pod_when(&self, name: &str, wanted: impl Fn(&core::Pod) -> bool) -> core::Pod {
        let condition = |pod: Option<&core::Pod>| pod.is_some_and(&wanted);
        match tokio::time::timeout(LIMIT, await_condition(self.pods(), name, condition)).await {
            Ok(found) => found.unwrap().expect("the condition asks for a pod"),
            Err(elapsed) => panic!("{elapsed}: {:#?}", self.pods().get_opt(name).await),
        }
    }

    /// The pod, once it runs.
    pub(crate) async fn running(&self, name: &str) -> core::Pod {
        self.pod_when(name, |pod| phase(pod) == "Running").await
    }

    /// The node, once it is as wanted.
    pub(crate) async fn node_when(&self, name: &str, wanted: impl Fn(&core::Node) -> bool) -> core::Node {
        let condition = |node: Option<&core::Node>| node.is_some_and(&wanted);
        match tokio::time::timeout(LIMIT, await_condition(self.nodes(), name, condition)).await {
            Ok(found) => found.unwrap().expect("the condition asks for a node"),
            Err(elapsed) => panic!("{elapsed}: {:#?}", self.nodes().get_opt(name).await),
        }
    }

    /// Writes an annotation of a node; null takes it away.
    pub(crate) async fn annotate_node(&self, name: &str, key: &str, value: Value) {
        self.patch_node(name, json!({"metadata": {"annotations": {key: value}}})).await;
    }

    /// The message of the pod's condition, once it says why the pod waits.
    pub(crate) async fn why_it_waits(&self, name: &str) -> String {
        let pod = self.pod_when(name, |pod| waits_because(pod).is_some()).await;
        waits_because(&pod).expect("the condition was just seen")
    }

    /// As [`Self::why_it_waits`], without the nearest miss.
    pub(crate) async fn unschedulable(&self, name: &str) -> String {
        without_nearest(&self.why_it_waits(name).await).to_owned()
    }

    /// Until the pod's condition gives this reason; another one may come first.
    pub(crate) async fn unschedulable_with(&self, name: &str, message: &str) {
        let is_it = |pod: &core::Pod| waits_because(pod).is_some_and(|why| without_nearest(&why) == message);
        self.pod_when(name, is_it).await;
    }

    /// An Event of that reason about the pod, once there is one.
    pub(crate) async fn event(&self, pod: &str, reason: &str) -> core::Event {
        let mut again = tokio::time::interval(Duration::from_millis(20));
        let found = async {
            loop {
                again.tick().await;
                if let Some(event) = self.events(pod, reason).await.pop() {
                    return event;
                }
            }
        };
        tokio::time::timeout(LIMIT, found).await.expect("the event is written in time")
    }

    /// Every Event of that reason about the pod.
    pub(crate) async fn events(&self, pod: &str, reason: &str) -> Vec<core::Event> {
        let events: Api<core::Event> = Api::default_namespaced(self.cluster.client.clone());
        let events = events.list(&ListParams::default()).await.unwrap().items.into_iter();
        let about = |event: &core::Event| event.involved_object.name.as_deref() == Some(pod);
        events.filter(about).filter(|event| event.reason.as_deref() == Some(reason)).collect()
    }

    /// The first Event of that reason about the pod, once it is there.
    pub(crate) async fn event_when(&self, pod: &str, reason: &str) -> core::Event {
        let events: Api<core::Event> = Api::default_namespaced(self.cluster.client.clone());
        let wanted = |event: &core::Event| {
            event.involved_object.name.as_deref() == Some(pod) && event.reason.as_deref() == Some(reason)
        };
        let mut seen = pin!(watcher(events, watcher::Config::default()).applied_objects());
        let found = async {
            loop {
                if let Some(event) = seen.next().await.unwrap().ok().filter(wanted) {
                    return event;
                }
            }
        };
        tokio::time::timeout(LIMIT, found).await.unwrap_or_else(|_| panic!("no Event {reason} about {pod}"))
    }

    /// The agents saw nothing that a scheduler must not do, and no wait was ended by the binder's audit, which runs every minute,
    /// instead of by the change that should end it.
    pub(crate) fn agents_are_content(&self) {
        assert_eq!(self.metrics.drifts(), 0, "the binder's audit found drifts");
        assert_eq!(self.fleet.violations(), []);
        assert!(self.fleet.troubles().is_empty(), "{:?}", self.fleet.troubles());
    }
}

pub(crate) fn phase(pod: &core::Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

pub(crate) fn node_of(pod: &core::Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

pub(crate) fn annotation<'a>(pod: &'a core::Pod, key: &str) -> &'a str {
    pod.metadata.annotations.as_ref().and_then(|annotations| annotations.get(key)).map_or("", String::as_str)
}

/// A message without the nearest miss that follows the counted reasons.
pub(crate) fn without_nearest(message: &str) -> &str {
    message.split_once(" nearest: ").map_or(message, |(counted, _)| counted)
}

fn waits_because(pod: &core::Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let scheduled = conditions.iter().find(|condition| condition.type_ == "PodScheduled")?;
    let waits = scheduled.status == "False" && scheduled.reason.as_deref() == Some("Unschedulable");
    waits.then(|| scheduled.message.clone().unwrap_or_default())
}

fn holder(lease: &Lease) -> &str {
    lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
}

fn install_crypto() {
    // An error says that another case of this process has installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn options(config: Config, client: kube::Client, leadership: Leadership, asked: Asked) -> Options {
    let serving = ServingNames {
        service: "berth".to_owned(),
        namespace: "berth-system".to_owned(),
        extra: vec!["127.0.0.1".to_owned()],
    };
    // Each has an authority of its own here: only that of the webhook that is asked is published.
    let registered = if asked == Asked::Yes { "berth" } else { "nowhere" };
    Options {
        own_pod: None,
        config,
        config_file: None,
        client,
        clock: Clock::System,
        parts: Parts::Both,
        chooser: Chooser::Berth,
        leadership,
        listen: "127.0.0.1:0".parse().unwrap(),
        certificates: CertificateSource::Minted(serving),
        client_ca_file: None,
        registration: Registration { mutating: registered.to_owned(), validating: registered.to_owned() },
    }
}
