//! Berth's manifests in a cluster in which HAMi runs: nothing that its accounts write is refused before they have the right to it.

use berth::cli::manifests::{self, Account, ManifestsArgs, Settings};
use k8s_openapi::api::{admissionregistration::v1::ValidatingAdmissionPolicyBinding, core::v1::Node};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::world::{Changes, USER, World, annotate, create, parsed, patching, plain_pod, refused, role};

const PLUGIN: &str = "system:serviceaccount:kube-system:hami-device-plugin";
const SCHEDULER: &str = "system:serviceaccount:kube-system:hami-scheduler";

/// What HAMi's device plugin writes on its node, and its scheduler too.
const NODE_KEYS: [&str; 3] = ["hami.io/node-handshake", "hami.io/node-nvidia-register", "hami.io/mutex.lock"];

/// What both write on pods.
const POD_KEYS: [&str; 4] = [
    "hami.io/bind-phase",
    "hami.io/vgpu-node",
    "hami.io/vgpu-devices-to-allocate",
    "hami.io/vgpu-devices-allocated",
];

/// The cluster as HAMi's chart leaves it, then what `berth manifests` prints without settings.
async fn world() -> Option<World> {
    let world = World::start().await?;
    let rules = json!([
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch", "update", "patch"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "update", "patch"]},
        {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]},
    ]);
    for account in [PLUGIN, SCHEDULER] {
        role(&world.cluster.client, None, account, &rules).await;
    }
    world.install(&Changes::default(), |kind| !kind.ends_with("WebhookConfiguration")).await;
    world.enforced().await;
    let nodes: Api<Node> = Api::all(world.cluster.client.clone());
    nodes.create(&PostParams::default(), &parsed(json!({"metadata": {"name": "n1"}}))).await.unwrap();
    let pods = world.pods("admin", "other");
    pods.create(&PostParams::default(), &parsed(plain_pod("p", json!({})))).await.unwrap();
    Some(world)
}

/// The warnings that come with writing this annotation; the write itself has to succeed.
async fn warnings(world: &World, user: &str, path: &str, key: &str, value: &str) -> String {
    let body = json!({"metadata": {"annotations": {key: value}}});
    let request = http::Request::patch(path)
        .header("content-type", "application/merge-patch+json")
        .body(kube::client::Body::from(serde_json::to_vec(&body).unwrap()))
        .unwrap();
    let response = world.cluster.client_of(user).send(request).await.unwrap();
    assert!(response.status().is_success(), "{user} writes {key}: {}", response.status());
    let warnings = response.headers().get_all("warning").iter();
    warnings.map(|text| text.to_str().unwrap().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Every write of both accounts, with its warnings.
async fn writes(world: &World, value: &str) -> Vec<(&'static str, &'static str, String)> {
    let mut written = Vec::new();
    for user in [PLUGIN, SCHEDULER] {
        let nodes = NODE_KEYS.map(|key| ("/api/v1/nodes/n1", key));
        for (path, key) in
            nodes.into_iter().chain(POD_KEYS.map(|key| ("/api/v1/namespaces/other/pods/p", key)))
        {
            let value = format!("{value}-{}", user.len());
            written.push((user, key, warnings(world, user, path, key, &value).await));
        }
    }
    written
}

async fn grant_to_hami(world: &World) {
    let account = |name: &str| Account { namespace: "kube-system".to_owned(), name: name.to_owned() };
    let agent = ["hami-device-plugin", "hami-scheduler"].map(account).into();
    let args = ManifestsArgs { agent, ..ManifestsArgs::default() };
    for object in manifests::objects(&args, &Settings::default()).unwrap() {
        if object["metadata"]["name"].as_str().is_some_and(|name| name.contains(":hami-")) {
            create(&world.cluster.client, object).await;
        }
    }
}

/// As `berth manifests` with `protection: deny`, applied again.
async fn deny(world: &World) {
    let (settings, _) = Settings::parse("protection: deny".to_owned(), "berth.yaml").unwrap();
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(world.cluster.client.clone());
    for object in manifests::objects(&ManifestsArgs::default(), &settings).unwrap() {
        if object["kind"] == "ValidatingAdmissionPolicyBinding" {
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            bindings.patch(&name, &PatchParams::default(), &Patch::Merge(object)).await.unwrap();
        }
    }
}

#[tokio::test]
async fn hami_goes_on_writing_and_each_account_is_told_its_binding() {
    let Some(world) = world().await else { return };
    for (user, key, warnings) in writes(&world, "first").await {
        let (_, name) = user.rsplit_once(':').unwrap();
        let grant = format!("berth manifests --agent kube-system/{name} | kubectl apply -f -");
        assert!(warnings.contains(&format!("{user} may not write {key}")), "{warnings}");
        assert!(warnings.contains(&grant), "{warnings}");
    }
    grant_to_hami(&world).await;
    until_granted(&world).await;
    for (user, key, warnings) in writes(&world, "second").await {
        assert_eq!(warnings, "", "{user} writes {key}");
    }
    deny(&world).await;
    until_denied(&world).await;
    for (user, key, warnings) in writes(&world, "third").await {
        assert_eq!(warnings, "", "{user} writes {key}");
    }
    let user = world.pods(USER, "other");
    let words = refused(user.patch("p", &patching(), &annotate(POD_KEYS[0], Value::Null)).await);
    assert!(words.contains("alice may not write hami.io/bind-phase"), "{words}");
    assert!(!words.contains("--agent"), "a person is no agent: {words}");
}

/// The authorizer reads bindings from a watch.
async fn until_granted(world: &World) {
    let mut value = 0;
    for user in [PLUGIN, SCHEDULER] {
        loop {
            value += 1;
            let path = "/api/v1/nodes/n1";
            if warnings(world, user, path, NODE_KEYS[0], &format!("try-{value}")).await.is_empty() {
                break;
            }
            crate::support::server::pause().await;
        }
    }
}

async fn until_denied(world: &World) {
    let pods = world.pods(USER, "other");
    let mut value = 0;
    loop {
        value += 1;
        if pods.patch("p", &patching(), &annotate(POD_KEYS[1], format!("try-{value}"))).await.is_err() {
            return;
        }
        crate::support::server::pause().await;
    }
}
