//! A real API server with Berth's manifests applied and five callers of different rights.

use berth::cli::manifests::{self, InstallationSettings, ManifestsArgs};
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::support::{
    controlplane::Options,
    floor::{Cluster, Floor},
    identity::Identity,
    server::pause,
};

/// The binder: the ServiceAccount that the manifests install.
pub(crate) const BINDER: &str = "system:serviceaccount:berth-system:berth";
/// A device plugin that is bound to `berth:assignment-writer`.
pub(crate) const AGENT: &str = "system:serviceaccount:gpu:agent";
/// May create and change pods in `train`.
pub(crate) const USER: &str = "alice";
/// May do anything in `train`.
pub(crate) const NAMESPACE_ADMIN: &str = "boss";
/// May change nodes and pods as kubelet does, and nothing of ours.
pub(crate) const KUBELET: &str = "kubelet";

pub(crate) struct World {
    pub(crate) cluster: Cluster,
}

/// What is different of the manifests in a test.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) webhook_url: Option<String>,
    pub(crate) ca_bundle: Option<String>,
    /// The text of `berth.yaml`.
    pub(crate) settings: Option<&'static str>,
}

impl World {
    /// `None`, said aloud, where there is no API server to be had.
    pub(crate) async fn start() -> Option<Self> {
        Self::start_with(Vec::new()).await
    }

    /// As [`Self::start`], with more flags of kube-apiserver.
    pub(crate) async fn start_with(apiserver_flags: Vec<String>) -> Option<Self> {
        let identities = vec![
            Identity::service_account("berth-system", "berth"),
            Identity::service_account("gpu", "agent"),
            Identity::service_account("kube-system", "hami-device-plugin"),
            Identity::service_account("kube-system", "hami-scheduler"),
            Identity::new(USER, &["system:authenticated"]),
            Identity::new(NAMESPACE_ADMIN, &["system:authenticated"]),
            Identity::new(KUBELET, &["system:authenticated"]),
        ];
        let options = Options { identities, apiserver_flags, ..Options::default() };
        let cluster = Cluster::start_with(Floor::Real, options).await?;
        let world = Self { cluster };
        world.people().await;
        Some(world)
    }

    /// Applies what `berth manifests` prints; policies are in force when this returns.
    pub(crate) async fn install(&self, changes: &Changes, wanted: impl Fn(&str) -> bool) {
        let args = ManifestsArgs { webhook_url: changes.webhook_url.clone(), ..ManifestsArgs::default() };
        let read = |text: &str| InstallationSettings::parse(text.to_owned(), "berth.yaml").unwrap().0;
        let settings = changes.settings.map(read).unwrap_or_default();
        for mut object in manifests::objects(&args, &settings).unwrap() {
            if !wanted(object["kind"].as_str().unwrap()) {
                continue;
            }
            if let (Some(bundle), Some(webhooks)) =
                (&changes.ca_bundle, object.get_mut("webhooks").and_then(Value::as_array_mut))
            {
                for webhook in webhooks {
                    webhook["clientConfig"]["caBundle"] = bundle.as_str().into();
                }
            }
            create(&self.cluster.client, object).await;
        }
    }

    /// Waits until the API server has taken the policies into force: until the one that was created last acts, in a namespace in
    /// which no other does.
    pub(crate) async fn enforced(&self) {
        let mut pod = share_pod("probe", Some("unheard-of"));
        pod["spec"]["containers"][0]["resources"]["limits"]["example.com/share"] = "1".into();
        loop {
            let request = http::Request::post("/api/v1/namespaces/quiet/pods?dryRun=All")
                .header("content-type", "application/json")
                .body(kube::client::Body::from(serde_json::to_vec(&pod).unwrap()))
                .unwrap();
            let response = self.cluster.client_of(USER).send(request).await.unwrap();
            let mut said = format!("{:?}", response.headers().get_all("warning").iter().collect::<Vec<_>>());
            let body = response.into_body().collect().await.unwrap().to_bytes();
            said.push_str(&String::from_utf8_lossy(&body));
            if said.contains("no known scheduler of shares") {
                return;
            }
            pause().await;
        }
    }

    pub(crate) fn pods(&self, user: &str, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.cluster.client_of(user), namespace)
    }

    pub(crate) fn nodes(&self, user: &str) -> Api<Node> {
        Api::all(self.cluster.client_of(user))
    }

    async fn people(&self) {
        let client = &self.cluster.client;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespaces_and_labels = [
            ("train", json!({"berth.dev/admission": "enabled"})),
            ("other", json!({})),
            ("quiet", json!({"berth.dev/admission": "ignore"})),
        ];
        for (name, labels) in namespaces_and_labels {
            let namespace = parsed(json!({"metadata": {"name": name, "labels": labels}}));
            namespaces.create(&PostParams::default(), &namespace).await.unwrap();
        }
        let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
        let everyday = json!([
            {"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["get", "list", "create", "update", "patch", "delete"]},
            {"apiGroups": [""], "resources": ["pods/status", "nodes/status"], "verbs": ["patch", "update"]},
            {"apiGroups": [""], "resources": ["pods/resize", "pods/ephemeralcontainers"], "verbs": ["patch"]},
            {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["create"]},
        ]);
        for namespace in ["train", "other", "quiet", "kube-system"] {
            role(client, Some(namespace), NAMESPACE_ADMIN, &all).await;
            role(client, Some(namespace), USER, &everyday).await;
        }
        role(client, None, KUBELET, &everyday).await;
        role(client, None, AGENT, &everyday).await;
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "agent-writes-assignments"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "berth:assignment-writer"},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": AGENT}],
        });
        create(client, binding).await;
    }
}

pub(crate) async fn role(client: &Client, namespace: Option<&str>, user: &str, rules: &Value) {
    let name = format!("test-{}", user.replace(':', "-"));
    let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
    let group = "rbac.authorization.k8s.io";
    let metadata = json!({"name": name, "namespace": namespace});
    let version = format!("{group}/v1");
    create(client, json!({"apiVersion": version, "kind": kind, "metadata": metadata, "rules": rules})).await;
    let binding = json!({
        "apiVersion": version, "kind": format!("{kind}Binding"), "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": kind, "name": name},
        "subjects": [{"kind": "User", "apiGroup": group, "name": user}],
    });
    create(client, binding).await;
}

pub(crate) async fn create(client: &Client, object: impl Into<Value>) {
    let object: Value = object.into();
    let (group, version) = object["apiVersion"].as_str().unwrap().split_once('/').unwrap_or_else(|| {
        let version = object["apiVersion"].as_str().unwrap();
        ("", version)
    });
    let resource =
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, object["kind"].as_str().unwrap()));
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let what = format!("{} {}", object["kind"], object["metadata"]["name"]);
    let created = api.create(&PostParams::default(), &parsed(object)).await;
    created.unwrap_or_else(|error| panic!("{what}: {error}"));
}

pub(crate) fn parsed<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

pub(crate) fn plain_pod(name: &str, annotations: impl Into<Value>) -> Value {
    let annotations: Value = annotations.into();
    json!({
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    })
}

pub(crate) fn share_pod(name: &str, scheduler: Option<&str>) -> Value {
    let mut pod = json!({
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
    });
    if let Some(scheduler) = scheduler {
        pod["spec"]["schedulerName"] = scheduler.into();
    }
    pod
}

pub(crate) fn annotate(key: &str, value: impl Into<Value>) -> Patch<Value> {
    let value: Value = value.into();
    Patch::Merge(json!({"metadata": {"annotations": {key: value}}}))
}

/// The refusal's words.
pub(crate) fn refused<T: std::fmt::Debug>(result: kube::Result<T>) -> String {
    match result {
        Err(kube::Error::Api(status)) => status.message,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

pub(crate) fn patching() -> PatchParams {
    PatchParams::default()
}
