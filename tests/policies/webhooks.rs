//! The webhook configurations in front of a webhook that answers, and of one that is down.
#![expect(clippy::disallowed_methods, reason = "the API server judges certificates by the clock on the wall")]

use std::{net::SocketAddr, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use berth::{
    admission::{self, Facts},
    config::Config,
    webhook::{
        Certificates, Limits, Listener, Metrics, Readiness, Webhook,
        mint::{self, Lifetimes, ServingNames},
        router,
    },
};
use http_body_util::BodyExt as _;
use kube::api::{Patch, PostParams};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinSet};

use super::{
    support::server::pause,
    world::{
        AGENT, Changes, NAMESPACE_ADMIN, USER, World, annotate, parsed, patching, plain_pod, refused,
        share_pod,
    },
};

/// A webhook on a loopback port that judges by the built-in settings, down when dropped.
pub(crate) struct Serving {
    pub(crate) changes: Changes,
    _tasks: JoinSet<()>,
}

impl Serving {
    pub(crate) async fn start() -> Self {
        Self::with(None).await
    }

    /// As [`Self::start`], with this `berth.yaml`.
    pub(crate) async fn with(settings: Option<&'static str>) -> Self {
        let names = ServingNames {
            service: "berth".into(),
            namespace: "berth-system".into(),
            extra: vec!["127.0.0.1".into()],
        };
        let bundle = mint::bundle(&names, Lifetimes::default(), jiff::Timestamp::now()).unwrap();
        let certificates = Certificates::from_pair(&bundle.serving).unwrap();
        let config = Config::parse(settings.unwrap_or_default(), "berth.yaml").unwrap().0;
        let facts = Facts::new(config.admission_settings(), config.dialects());
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let (_, readiness) = watch::channel(Readiness::Ready);
        let judge = Arc::new(move |request: &admission::Request<'_>| admission::review(request, &facts));
        let router = router(Webhook { judge, metrics, registry: Arc::new(registry), readiness });
        let bound =
            Listener::new(Limits::default()).bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let changes = Changes {
            webhook_url: Some(format!("https://{}", bound.local_addr())),
            settings,
            ca_bundle: Some(STANDARD.encode(&bundle.authority.certificate)),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(bound.serve(router, certificates.server_config(), std::future::pending()));
        Self { changes, _tasks: tasks }
    }
}

/// Waits until the API server calls the mutating webhook.
async fn called(world: &World, pod: &Value, scheduler: &str) {
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    loop {
        let pod = world.pods(USER, "train").create(&dry, &parsed(pod.clone())).await.ok();
        if pod.and_then(|pod| pod.spec?.scheduler_name).as_deref() == Some(scheduler) {
            return;
        }
        pause().await;
    }
}

/// With everything installed and in force; `probe` is a share pod, which the webhook gives this scheduler.
pub(crate) async fn world_with(serving: &Serving, probe: &Value, scheduler: &str) -> Option<World> {
    let world = World::start().await?;
    world.install(&serving.changes, |_| true).await;
    called(&world, probe, scheduler).await;
    world.enforced().await;
    Some(world)
}

pub(crate) async fn world(serving: &Serving) -> Option<World> {
    world_with(serving, &share_pod("probe", None), "berth").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_are_changed_refused_and_left_alone_as_the_configuration_says() {
    let serving = Serving::start().await;
    let Some(world) = world(&serving).await else { return };
    let pods = world.pods(USER, "train");
    let made = pods.create(&PostParams::default(), &parsed(share_pod("p", None))).await.unwrap();
    let spec = made.spec.unwrap();
    assert_eq!(spec.scheduler_name.as_deref(), Some("berth"));
    let limits = spec.containers[0].resources.clone().unwrap().limits.unwrap();
    assert_eq!(limits["nvidia.com/gpucores"].0, "100", "a bare count is a whole card");

    let mut twice = share_pod("q", None);
    twice["metadata"]["annotations"] = json!({"volcano.sh/preemptable": "perhaps"});
    let words = refused(pods.create(&PostParams::default(), &parsed(twice)).await);
    let expected = "denied the request: metadata.annotations[volcano.sh/preemptable]: `perhaps` is neither true nor false";
    assert!(words.contains(expected), "{words}");

    let words =
        refused(pods.patch("p", &patching(), &annotate("volcano.sh/preemptable", json!("perhaps"))).await);
    assert!(words.contains("update.berth.dev") && words.contains("(preemptable-value)"), "{words}");
    pods.patch("p", &patching(), &annotate("note", json!("x"))).await.unwrap();

    let privileged = json!({"spec": {"ephemeralContainers": [
        {"name": "debug", "image": "none", "securityContext": {"privileged": true}},
    ]}});
    let params = patching();
    let boss = world.pods(NAMESPACE_ADMIN, "train");
    let debug =
        boss.patch_subresource("ephemeralcontainers", "p", &params, &Patch::Strategic(privileged)).await;
    let words = refused(debug);
    assert!(words.contains("spec.ephemeralContainers[0]") && words.contains("(privileged)"), "{words}");

    let elsewhere = world.pods(USER, "other");
    let pod = elsewhere.create(&PostParams::default(), &parsed(share_pod("p", None))).await.unwrap();
    assert_eq!(pod.spec.unwrap().scheduler_name.as_deref(), Some("default-scheduler"), "not opted in");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_is_let_in_and_its_author_told_what_its_pods_would_be_refused_for() {
    let serving = Serving::start().await;
    let Some(world) = world(&serving).await else { return };
    let mut pod = share_pod("p", None);
    pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"] = "16Gi".into();
    pod["metadata"] = json!({"labels": {"app": "a"}});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": pod},
    });
    let (status, warnings) = post(&world, "/apis/apps/v1/namespaces/train/deployments", &deployment).await;
    assert_eq!(status, http::StatusCode::CREATED);
    assert!(warnings.contains("spec.template.spec.containers[0]"), "{warnings}");
    assert!(warnings.contains("its pods would be refused") && warnings.contains("(quantity)"), "{warnings}");
}

async fn post(world: &World, path: &str, object: &Value) -> (http::StatusCode, String) {
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .body(kube::client::Body::from(serde_json::to_vec(object).unwrap()))
        .unwrap();
    let response = world.cluster.client_of(USER).send(request).await.unwrap();
    let warnings =
        response.headers().get_all("warning").iter().map(|value| value.to_str().unwrap().to_owned());
    let warnings = warnings.collect::<Vec<_>>().join("\n");
    let status = response.status();
    response.into_body().collect().await.unwrap();
    (status, warnings)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_webhook_down_share_pods_are_refused_and_all_others_live_as_ever() {
    let serving = Serving::start().await;
    let Some(world) = world(&serving).await else { return };
    let pods = world.pods(USER, "train");
    pods.create(&PostParams::default(), &parsed(share_pod("before", None))).await.unwrap();
    drop(serving);

    let words = refused(pods.create(&PostParams::default(), &parsed(share_pod("p", None))).await);
    assert!(words.contains("failed calling webhook \"mutate.berth.dev\""), "{words}");
    pods.create(&PostParams::default(), &parsed(plain_pod("ordinary", json!({"mine": "1"})))).await.unwrap();
    let elsewhere = world.pods(USER, "other");
    elsewhere.create(&PostParams::default(), &parsed(share_pod("p", None))).await.unwrap();

    // Agents, statuses, finalizers and notes of the pod that is there meet no webhook.
    let agent = world.pods(AGENT, "train");
    agent.patch("before", &patching(), &annotate("hami.io/bind-phase", json!("success"))).await.unwrap();
    let phase = Patch::Merge(json!({"status": {"phase": "Running"}}));
    agent.patch_status("before", &patching(), &phase).await.unwrap();
    for list in [json!(["example.com/wait"]), json!([])] {
        let finalizers =
            Patch::Merge(json!({"metadata": {"finalizers": list, "annotations": {"note": "x"}}}));
        pods.patch("before", &patching(), &finalizers).await.unwrap();
    }
    pods.delete("before", &kube::api::DeleteParams::default().grace_period(0)).await.unwrap();

    // A workload's author misses a warning, no more.
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": {
            "metadata": {"labels": {"app": "a"}}, "spec": share_pod("p", None)["spec"],
        }},
    });
    let (status, _) = post(&world, "/apis/apps/v1/namespaces/train/deployments", &deployment).await;
    assert_eq!(status, http::StatusCode::CREATED);
}
