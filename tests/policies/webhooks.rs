//! The webhook configurations in front of a webhook that answers, and of one that is down.
#![expect(clippy::disallowed_methods, reason = "the API server judges certificates by the clock on the wall")]

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{extract::State, middleware::Next, response::IntoResponse as _};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use berth::{
    admission::{self, Facts},
    config::Config,
    webhook::{
        Certificates, Limits, Listener, ServerReadiness, Webhook, WebhookMetrics,
        certificate::mint::{self, Lifetimes, ServingNames},
        router, verified_router,
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
    /// So many requests are told to come again from now on.
    busy: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Serving {
    pub(crate) async fn start() -> Self {
        Self::of(None, None).await
    }

    /// As [`Self::start`], with this `berth.yaml`.
    pub(crate) async fn with(settings: &'static str) -> Self {
        Self::of(Some(settings), None).await
    }

    /// As [`Self::start`], for clients with a certificate of this authority.
    pub(crate) async fn for_clients_of(authority: &str) -> Self {
        Self::of(None, Some(authority)).await
    }

    async fn of(settings: Option<&'static str>, clients: Option<&str>) -> Self {
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
        let metrics = WebhookMetrics::register(&mut registry);
        let (_, readiness) = watch::channel(ServerReadiness::Ready);
        let judge = Arc::new(move |request: &admission::Request<'_>| admission::review(request, &facts));
        let webhook = Webhook {
            workloads: Arc::new(config.workloads()),
            ..Webhook::new(judge, metrics, Arc::new(registry), readiness)
        };
        let busy = Arc::new(AtomicUsize::new(0));
        let router = match clients {
            Some(_) => verified_router(webhook),
            None => router(webhook).layer(axum::middleware::from_fn_with_state(Arc::clone(&busy), turn_away)),
        };
        let tls = match clients {
            Some(authority) => certificates.server_config_for(authority, "the clients").unwrap(),
            None => certificates.server_config(),
        };
        let bound =
            Listener::new(Limits::default()).bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let changes = Changes {
            webhook_url: Some(format!("https://{}", bound.local_addr())),
            settings,
            ca_bundle: Some(STANDARD.encode(&bundle.authority.certificate)),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(bound.serve(router, tls, std::future::pending()));
        Self { changes, busy, _tasks: tasks }
    }
}

/// Answers as a webhook does that has no room.
async fn turn_away(
    State(busy): State<Arc<AtomicUsize>>,
    request: axum::extract::Request,
    next: Next,
) -> axum::response::Response {
    let one_less = |left: usize| left.checked_sub(1);
    if busy.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
        return (http::StatusCode::TOO_MANY_REQUESTS, [("retry-after", "1")]).into_response();
    }
    next.run(request).await
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

/// Has the API server serve a kind whose objects may hold anything.
async fn define(world: &World, group: &str, kind: &str, plural: &str) {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]},
    });
    let rbac = "rbac.authorization.k8s.io";
    let metadata = json!({"name": plural, "namespace": "train"});
    let rules = json!([{"apiGroups": [group], "resources": [plural], "verbs": ["*"]}]);
    let role =
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": metadata, "rules": rules});
    let binding = json!({
        "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": rbac, "kind": "Role", "name": plural},
        "subjects": [{"kind": "User", "apiGroup": rbac, "name": USER}],
    });
    for object in [definition, role, binding] {
        super::world::create(&world.cluster.client, object).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn authors_of_workloads_of_other_projects_and_of_the_settings_are_warned_by_their_own_fields() {
    let settings = "workloads:\n- apiGroup: example.com\n  kind: TrainingRun\n  templates: [{path: 'spec.roles[*].template'}]\n";
    let serving = Serving::with(settings).await;
    let Some(world) = world(&serving).await else { return };
    let mut pod = share_pod("p", None);
    pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"] = "16Gi".into();
    let template = json!({"spec": pod["spec"]});
    let cases = [
        (
            "ray.io",
            "RayCluster",
            "rayclusters",
            json!({"workerGroupSpecs": [{"groupName": "a", "template": template}],
            "headGroupSpec": {"template": {"spec": {"containers": [{"name": "head"}]}}}}),
            "spec.workerGroupSpecs[0].template.spec.containers[0]",
        ),
        (
            "example.com",
            "TrainingRun",
            "trainingruns",
            json!({"roles": [{"template": template}]}),
            "spec.roles[0].template.spec.containers[0]",
        ),
    ];
    for (group, kind, plural, spec, field) in cases {
        define(&world, group, kind, plural).await;
        let object = json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"generateName": "w-"}, "spec": spec});
        let path = format!("/apis/{group}/v1/namespaces/train/{plural}");
        // A kind is served some time after its definition.
        let (status, warnings) = loop {
            match post(&world, &path, &object).await {
                (http::StatusCode::NOT_FOUND | http::StatusCode::FORBIDDEN, _) => pause().await,
                answer => break answer,
            }
        };
        assert_eq!(status, http::StatusCode::CREATED);
        assert!(warnings.contains(field) && warnings.contains("its pods would be refused"), "{warnings}");
    }
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_server_comes_again_when_a_busy_webhook_says_so() {
    let serving = Serving::start().await;
    let Some(world) = world(&serving).await else { return };
    serving.busy.store(1, Ordering::SeqCst);
    let made = world.pods(USER, "train").create(&PostParams::default(), &parsed(share_pod("p", None))).await;
    assert_eq!(made.unwrap().spec.unwrap().scheduler_name.as_deref(), Some("berth"));
    assert_eq!(serving.busy.load(Ordering::SeqCst), 0, "it was turned away once");
}

/// What the API server needs to show a client certificate to its webhooks, as `webhook-config/README.md` has it.
fn admission_configuration(folder: &std::path::Path, client: &rcgen::CertifiedKey<rcgen::KeyPair>) -> String {
    let written = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let certificate = written("client.crt", client.cert.pem());
    let key = written("client.key", client.signing_key.serialize_pem());
    let user = json!({"name": "*", "user": {"client-certificate": certificate, "client-key": key}});
    let kubeconfig = written(
        "webhooks.kubeconfig",
        json!({"apiVersion": "v1", "kind": "Config", "users": [user]}).to_string(),
    );
    let group = "apiserver.config.k8s.io/v1";
    let plugins = ["MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"].map(|name| {
        let kind = "WebhookAdmissionConfiguration";
        json!({"name": name, "configuration": {"apiVersion": group, "kind": kind, "kubeConfigFile": kubeconfig}})
    });
    let configuration = json!({"apiVersion": group, "kind": "AdmissionConfiguration", "plugins": plugins});
    written("admission.yaml", configuration.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_with_a_client_certificate_is_answered_and_one_without_is_not() {
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = rcgen::CertifiedIssuer::self_signed(params, rcgen::KeyPair::generate().unwrap()).unwrap();
    let mut params = rcgen::CertificateParams::default();
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let signing_key = rcgen::KeyPair::generate().unwrap();
    let cert = params.signed_by(&signing_key, &authority).unwrap();
    let folder = tempfile::TempDir::new().unwrap();
    let file = admission_configuration(folder.path(), &rcgen::CertifiedKey { cert, signing_key });

    let serving = Serving::for_clients_of(&authority.pem()).await;
    let Some(world) = World::start_with(vec![format!("--admission-control-config-file={file}")]).await else {
        return;
    };
    world.install(&serving.changes, |_| true).await;
    called(&world, &share_pod("probe", None), "berth").await;

    let Some(world) = World::start().await else { return };
    world.install(&serving.changes, |kind| kind.ends_with("WebhookConfiguration")).await;
    let pods = world.pods(USER, "train");
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let mut made = pods.create(&dry, &parsed(share_pod("p", None))).await;
    while made.is_ok() {
        pause().await;
        made = pods.create(&dry, &parsed(share_pod("p", None))).await;
    }
    let refusal = refused(made);
    let read = "failed calling webhook \"mutate.berth.dev\": failed to call webhook: \
        reviews are answered to clients with a certificate of the configured authority only";
    assert!(refusal.contains(read), "{refusal}");
}
