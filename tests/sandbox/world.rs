//! The sandbox and the objects that the tests share.

use berth_sandbox::{Options, Sandbox};
use k8s_openapi::api::core::v1::{Binding, Pod};
use kube::{
    Api, Client, Error,
    api::{PostParams, Request},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A sandbox whose seed is 1, and its client.
pub(crate) fn start() -> (Sandbox, Client) {
    let sandbox = Sandbox::new(Options { seed: 1, ..Options::default() });
    let client = sandbox.client();
    (sandbox, client)
}

/// Any object from its JSON.
pub(crate) fn object<K: DeserializeOwned>(json: Value) -> K {
    serde_json::from_value(json).unwrap()
}

/// The smallest pod.
pub(crate) fn pod_json(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "spec": { "containers": [{ "name": "c", "image": "i:1" }] } })
}

/// Creates the smallest pod.
pub(crate) async fn create_pod(client: &Client, name: &str) -> Pod {
    pods(client).create(&PostParams::default(), &object(pod_json(name))).await.unwrap()
}

/// Pods of the namespace `default`.
pub(crate) fn pods(client: &Client) -> Api<Pod> {
    Api::default_namespaced(client.clone())
}

/// Binds a pod, with metadata beside its name.
pub(crate) async fn bind(client: &Client, pod: &str, node: &str, metadata: Value) -> Result<Value, Error> {
    let mut metadata = metadata;
    metadata["name"] = json!(pod);
    let binding: Binding =
        object(json!({ "metadata": metadata, "target": { "kind": "Node", "name": node } }));
    let request = Request::new("/api/v1/namespaces/default/pods");
    let body = serde_json::to_vec(&binding).unwrap();
    let request = request.create_subresource("binding", pod, &PostParams::default(), body).unwrap();
    client.request(request).await
}

/// Code, reason and message of a refusal.
pub(crate) fn refusal<T: std::fmt::Debug>(result: Result<T, Error>) -> (u16, String, String) {
    match result.unwrap_err() {
        Error::Api(status) => (status.code, status.reason.clone(), status.message.clone()),
        other => panic!("not an answer of the server: {other}"),
    }
}
