//! Binding a pod: node and assignment in one write.

use std::time::Duration;

use http::Request;
use kube::{Client, core::Status};
use serde_json::json;

use crate::{
    dialect::Record,
    scheduling::{BindOutcome, PodKey},
};

/// After this time the API server gives the Binding up by itself.
const SERVER_TIMEOUT: Duration = Duration::from_secs(5);
/// After this time from its sending nothing can come of a Binding any more: the API server's own limit and a second for the way to
/// it, for timers and for clocks that run at different speeds.
pub const REACH: Duration = Duration::from_secs(6);
/// After this time nobody waits for its answer any more; it is in doubt.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(8);

/// Sends the Binding: `POST …/pods/{name}/binding` with the pod's uid as precondition and the assignment's annotations, which the API
/// server merges into the pod in the same write (kubernetes `pkg/registry/core/pod/storage/storage.go`).
pub async fn bind(client: Client, pod: &PodKey, node: &str, record: Record) -> BindOutcome {
    let sent = client.request::<Status>(request(pod, node, &record));
    match tokio::time::timeout(CLIENT_TIMEOUT, sent).await {
        Ok(Ok(_)) => BindOutcome::Bound,
        Ok(Err(kube::Error::Api(status))) if is_refusal(status.code) => {
            BindOutcome::Refused(status.message.clone())
        }
        Ok(Err(error)) => BindOutcome::Doubtful(error.to_string()),
        Err(elapsed) => BindOutcome::Doubtful(elapsed.to_string()),
    }
}

/// The request itself is not acceptable: it was not carried out and never will be.
pub(super) fn is_refusal(code: u16) -> bool {
    matches!(code, 400 | 401 | 403 | 405 | 413 | 415 | 422)
}

fn request(pod: &PodKey, node: &str, record: &Record) -> Request<Vec<u8>> {
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "name": &*pod.name,
            "namespace": &*pod.namespace,
            "uid": &*pod.uid,
            "annotations": record.annotations,
            "labels": record.labels,
        },
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    let (namespace, name, timeout) = (&pod.namespace, &pod.name, SERVER_TIMEOUT.as_secs());
    Request::post(format!("/api/v1/namespaces/{namespace}/pods/{name}/binding?timeout={timeout}s"))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(binding.to_string().into_bytes())
        .expect("names of Kubernetes objects are valid in a path")
}
