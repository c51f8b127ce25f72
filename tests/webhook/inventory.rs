//! What a webhook apart from the binder knows of nodes: their cards, and what their Devices list.

use std::time::Duration;

use berth::app::CertificateSource;
use berth_sandbox::Sandbox;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, PostParams},
};
use serde_json::{Value, json};
use tokio::time::{interval, timeout};

use super::{
    app::{LIMIT, Processes, register, until_published},
    client::{Client, Protocol},
    server::names,
};

/// A node that HAMi's plugin has registered a card of.
fn node() -> Node {
    let card = json!([{"id": "GPU-0", "index": 0, "count": 10, "devmem": 16384, "devcore": 100,
        "type": "NVIDIA A100", "numa": 0, "mode": "hami-core", "health": true}]);
    let node = json!({"metadata": {
        "name": "gpu-1", "labels": {"kubernetes.io/hostname": "gpu-1"},
        "annotations": {"hami.io/node-nvidia-register": card.to_string()},
    }});
    serde_json::from_value(node).unwrap()
}

fn device() -> DynamicObject {
    let gpu = json!({"type": "gpu", "minor": 0, "id": "GPU-0", "health": true, "resources": {
        "koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": "16Gi", "koordinator.sh/gpu-memory-ratio": "100"}});
    let device = json!({
        "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device",
        "metadata": {"name": "gpu-1"}, "spec": {"devices": [gpu]},
    });
    serde_json::from_value(device).unwrap()
}

/// A review of a pod that asks for half a card of that node by Koordinator's names.
fn review() -> Vec<u8> {
    let pod = json!({"metadata": {"name": "half"}, "spec": {
        "schedulerName": "berth", "nodeSelector": {"kubernetes.io/hostname": "gpu-1"},
        "containers": [{"name": "main", "image": "i", "resources": {"limits": {"koordinator.sh/gpu": "50"}}}],
    }});
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "train", "operation": "CREATE", "object": pod,
    }});
    serde_json::to_vec(&review).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_known_by_its_device_too() {
    let sandbox = Sandbox::new(berth_sandbox::Options::default());
    let client = sandbox.client();
    register(&client).await;
    Api::<Node>::all(client.clone()).create(&PostParams::default(), &node()).await.unwrap();
    let mut processes = Processes::default();
    let address = processes.start(&client, CertificateSource::Minted(names()), None).await;
    let authority = until_published(&client).await;
    let mut asked = Client::connect_to(address, &authority, Protocol::Http1, None).await.unwrap();
    let mut judged = async || -> Value { asked.post("/validate", review()).await.json()["response"].clone() };
    let mut again = interval(Duration::from_millis(20));
    let denied = async {
        while judged().await["allowed"] != false {
            again.tick().await;
        }
        judged().await["status"]["message"].as_str().unwrap().to_owned()
    };
    let message = timeout(LIMIT, denied).await.expect("the node is known in time");
    assert!(message.ends_with("(mode-of-node)"), "{message}");
    let kind = GroupVersionKind::gvk("scheduling.koordinator.sh", "v1alpha1", "Device");
    let devices: Api<DynamicObject> = Api::all_with(client, &ApiResource::from_gvk(&kind));
    devices.create(&PostParams::default(), &device()).await.unwrap();
    let allowed = async {
        while judged().await["allowed"] != true {
            again.tick().await;
        }
    };
    timeout(LIMIT, allowed).await.expect("the node's Device is known in time");
}
