//! Berth's manifests in a cluster in which HAMi runs: nothing that its accounts write is refused before they have the right to it.

use berth::cli::manifests::{self, Account, InstallationSettings, ManifestsArgs};
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

/// What `berth manifests --agent` prints beside the installation.
fn bindings() -> Vec<Value> {
    let account = |name: &str| Account { namespace: "kube-system".to_owned(), name: name.to_owned() };
    let agent = ["hami-device-plugin", "hami-scheduler"].map(account).into();
    let args = ManifestsArgs { agent, ..ManifestsArgs::default() };
    let objects = manifests::objects(&args, &InstallationSettings::default()).unwrap();
    let is_ours =
        |object: &Value| object["metadata"]["name"].as_str().is_some_and(|name| name.contains(":hami-"));
    objects.into_iter().filter(is_ours).collect()
}

/// The one object that the command at the end of a warning creates, by the words of `kubectl create clusterrolebinding`.
fn advised(warning: &str) -> Value {
    let (_, command) =
        warning.split_once("to grant it: kubectl create clusterrolebinding ").expect("a command");
    let mut words = command.split_whitespace();
    let name = words.next().unwrap();
    let mut option =
        |option: &str| words.next().and_then(|word| word.strip_prefix(option)).unwrap().to_owned();
    let (role, account) = (option("--clusterrole="), option("--serviceaccount="));
    // The warning stands in quotes.
    let (namespace, account) = account.trim_end_matches('"').split_once(':').unwrap();
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    })
}

/// As `berth manifests` with `protection: deny`, applied again.
async fn deny(world: &World) {
    let (settings, _) = InstallationSettings::parse("protection: deny".to_owned(), "berth.yaml").unwrap();
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
    let printed = bindings();
    let mut granted = Vec::new();
    for (user, key, warnings) in writes(&world, "first").await {
        assert!(warnings.contains(&format!("{user} may not write {key}")), "{warnings}");
        let binding = advised(&warnings);
        let same = |other: &&Value| ["roleRef", "subjects"].iter().all(|part| other[part] == binding[part]);
        let printed = printed.iter().find(same).unwrap_or_else(|| panic!("{warnings}"));
        assert_eq!(printed["metadata"]["name"], binding["metadata"]["name"], "one object, whichever way");
        if !granted.contains(&binding) {
            granted.push(binding);
        }
    }
    assert_eq!(granted.len(), 2);
    for binding in granted {
        create(&world.cluster.client, binding).await;
    }
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
    assert!(!words.contains("clusterrolebinding"), "a person is no agent: {words}");
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
