//! What HAMi's chart leaves in a cluster, beside what its pods do: roles, settings, the webhook's configuration, nodes and served pods.
//!
//! Sources: `charts/hami/templates` of HAMi v2.10.0, with the chart's default values and the release name `hami`.

use berth_sandbox::agent::{card::Card, node::Node, wire::Release};
use k8s_openapi::api::{
    admissionregistration::v1::MutatingWebhookConfiguration,
    core::v1::{ConfigMap, Namespace, Pod},
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::take_over::{LABELLED, UNLABELLED};

pub(crate) const SCHEDULER: &str = "system:serviceaccount:kube-system:hami-scheduler";

const WEBHOOK: &str = "hami-webhook";
const RELEASES: [(&str, Release, u32); 5] = [
    ("v2-4", Release::V2_4, 1),
    ("v2-7", Release::V2_7, 1),
    ("v2-8", Release::V2_8, 2),
    ("v2-9", Release::V2_9, 1),
    ("v2-10", Release::V2_10, 2),
];

/// MiB of each card.
pub(crate) const MEMORY: u64 = 16_384;
/// Into how many shares a card is cut (`deviceSplitCount`).
pub(crate) const SLOTS: u64 = 10;

/// Each node with its cards.
pub(crate) fn cards() -> Vec<(&'static str, Vec<String>)> {
    let uuids = |name: &str, cards| (0..cards).map(|index| format!("GPU-{name}-{index}")).collect();
    RELEASES.iter().map(|(name, _, cards)| (*name, uuids(name, *cards))).collect()
}

/// A node of each release of the device plugin.
pub(crate) fn nodes() -> Vec<Node> {
    let card = |(index, uuid): (usize, &String)| Card::new(uuid, u32::try_from(index).unwrap(), MEMORY);
    let nodes = RELEASES.iter().zip(cards());
    nodes
        .map(|((name, release, _), (_, uuids))| {
            uuids.iter().enumerate().map(card).fold(Node::new(name), Node::card).hami(*release)
        })
        .collect()
}

/// Namespaces, roles and settings.
pub(crate) async fn install(client: &Client) {
    for name in [LABELLED, UNLABELLED] {
        create::<Namespace>(&Api::all(client.clone()), json!({"metadata": {"name": name}})).await;
    }
    let rule = |groups: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [groups], "resources": resources, "verbs": verbs});
    let scheduler = json!([
        rule("", &["pods", "configmaps"], &["get", "list", "watch", "patch"]),
        rule("", &["pods/binding"], &["create"]),
        rule("", &["nodes"], &["get", "list", "patch", "watch"]),
        rule("", &["events"], &["create", "get", "list"]),
        rule("", &["resourcequotas"], &["get", "list", "watch"]),
    ]);
    let plugin = json!([
        rule("", &["pods"], &["get", "create", "watch", "list", "update", "patch"]),
        rule("", &["nodes"], &["get", "update", "list", "patch"]),
        rule("", &["events"], &["list", "create", "update"]),
    ]);
    // What the kubelets of the nodes do, which run under the plugin's account here.
    let kubelet = json!([
        rule("", &["pods"], &["delete"]),
        rule("", &["nodes"], &["create", "watch"]),
        rule("", &["pods/status", "nodes/status"], &["patch", "update"]),
    ]);
    role(client, "hami-scheduler", "hami-scheduler", scheduler).await;
    role(client, "hami-device-plugin-monitor", "hami-device-plugin", plugin).await;
    role(client, "kubelet-of-the-test", "hami-device-plugin", kubelet).await;
    let settings = json!({
        "metadata": {"name": "hami-scheduler-device", "labels": {"app.kubernetes.io/component": "hami-scheduler"}},
        "data": {"device-config.yaml": "nvidia:\n  resourceCountName: nvidia.com/gpu\n  resourceMemoryName: nvidia.com/gpumem\n  \
            resourceMemoryPercentageName: nvidia.com/gpumem-percentage\n  resourceCoreName: nvidia.com/gpucores\n  \
            resourcePriorityName: nvidia.com/priority\n  defaultGPUNum: 1\n  deviceSplitCount: 10\n"},
    });
    create::<ConfigMap>(&Api::namespaced(client.clone(), "kube-system"), settings).await;
}

async fn role(client: &Client, name: &str, account: &str, rules: Value) {
    let metadata = json!({"name": name});
    create::<ClusterRole>(&Api::all(client.clone()), json!({"metadata": metadata, "rules": rules})).await;
    let binding = json!({
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "kube-system"}],
    });
    create::<ClusterRoleBinding>(&Api::all(client.clone()), binding).await;
}

/// Pods that each release has placed, with the devices string as that release writes it; they run since before the test.
pub(crate) async fn running_pods(client: &Client) {
    let asking = |limits: Value| json!({"image": "none", "resources": {"limits": limits}});
    let one = asking(json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000"}));
    let two =
        asking(json!({"nvidia.com/gpu": "2", "nvidia.com/gpumem": "3000", "nvidia.com/gpucores": "30"}));
    let plain = json!({"image": "none"});
    let served = [
        // A blank share for the plain container; later only what asks, then one segment for each container, init containers first.
        ("v2-4", json!([]), json!([one, plain]), "GPU-v2-4-0,NVIDIA,4000,0:;,,0,0:;"),
        ("v2-7", json!([plain]), json!([one]), "GPU-v2-7-0,NVIDIA,4000,0:;"),
        ("v2-8", json!([]), json!([one, one]), "GPU-v2-8-0,NVIDIA,4000,0:;GPU-v2-8-1,NVIDIA,4000,0:;"),
        ("v2-9", json!([plain]), json!([one]), ";GPU-v2-9-0,NVIDIA,4000,0:;"),
        (
            "v2-10",
            json!([plain]),
            json!([two, plain]),
            ";GPU-v2-10-0,NVIDIA,3000,30:GPU-v2-10-1,NVIDIA,3000,30:;;",
        ),
    ];
    let pods: Api<Pod> = Api::namespaced(client.clone(), UNLABELLED);
    for (node, inits, containers, devices) in served {
        let name = format!("served-on-{node}");
        let spec = json!({"schedulerName": "hami-scheduler", "nodeName": node,
            "initContainers": named(inits, "init"), "containers": named(containers, "app")});
        let annotations = json!({
            "hami.io/vgpu-node": node, "hami.io/vgpu-time": "1700000000", "hami.io/vgpu-devices-allocated": devices,
            "hami.io/vgpu-devices-to-allocate": ";", "hami.io/bind-phase": "success", "hami.io/bind-time": "1700000000",
        });
        let metadata =
            json!({"name": name, "labels": {"hami.io/vgpu-node": node}, "annotations": annotations});
        create::<Pod>(&pods, json!({"metadata": metadata, "spec": spec})).await;
        let status = Patch::Merge(json!({"status": {"phase": "Running"}}));
        pods.patch_status(&name, &PatchParams::default(), &status).await.unwrap();
    }
}

fn named(mut containers: Value, prefix: &str) -> Value {
    for (at, container) in containers.as_array_mut().unwrap().iter_mut().enumerate() {
        container["name"] = format!("{prefix}-{at}").into();
    }
    containers
}

/// `templates/scheduler/webhook.yaml`, with a URL instead of the Service, since no pod serves here.
pub(crate) fn webhook_configuration(url: &str, authority: &str) -> MutatingWebhookConfiguration {
    let not_ignored =
        json!({"matchExpressions": [{"key": "hami.io/webhook", "operator": "NotIn", "values": ["ignore"]}]});
    let configuration = json!({
        "metadata": {"name": WEBHOOK},
        "webhooks": [{
            "name": "vgpu.hami.io", "admissionReviewVersions": ["v1beta1"], "clientConfig": {"url": url},
            "failurePolicy": "Ignore", "matchPolicy": "Equivalent", "reinvocationPolicy": "Never", "sideEffects": "None",
            "timeoutSeconds": 10, "namespaceSelector": not_ignored, "objectSelector": not_ignored,
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"], "scope": "*"}],
        }],
    });
    let mut configuration: MutatingWebhookConfiguration = serde_json::from_value(configuration).unwrap();
    let bundle = k8s_openapi::ByteString(authority.as_bytes().to_vec());
    configuration.webhooks.as_mut().unwrap()[0].client_config.ca_bundle = Some(bundle);
    configuration
}

pub(crate) async fn remove_webhook(client: &Client) {
    let configurations: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    configurations.delete(WEBHOOK, &DeleteParams::default()).await.unwrap();
}

pub(crate) async fn restore_webhook(client: &Client, configuration: &MutatingWebhookConfiguration) {
    let configurations: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    configurations.create(&PostParams::default(), configuration).await.unwrap();
}

pub(crate) async fn create<K>(api: &Api<K>, object: Value)
where
    K: Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    let object: K = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap_or_else(|error| panic!("{object:?}: {error}"));
}
