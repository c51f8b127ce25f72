//! The writes of a preemption: the nominated node in the status of the pod that needs room, and the deletion of a pod that must go.

use http::{Request, header::CONTENT_TYPE};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

use super::{
    read::PREEMPTION_BY_SCHEDULER,
    send::{CLIENT_TIMEOUT, SERVER_TIMEOUT, SendError, send},
};
use crate::scheduling::{PodKey, WriteOutcome};

/// Writes which node is kept for a pod; `None`: none is any more. A pod that is gone counts as written.
pub(super) async fn nominate(client: Client, pod: &PodKey, node: Option<&str>) -> WriteOutcome {
    let body = json!({"metadata": {"uid": &*pod.uid}, "status": {"nominatedNodeName": node}});
    outcome(send::<Value>(client, status(pod, &body), CLIENT_TIMEOUT).await)
}

/// Deletes a pod with its own grace period, after its condition says why (v1.36 `pkg/scheduler/framework/preemption/executor.go`). A pod
/// that is gone, or whose name another pod has by now, counts as written.
pub(super) async fn preempt(client: Client, pod: &PodKey, scheduler: &str, now: Timestamp) -> WriteOutcome {
    let condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": PREEMPTION_BY_SCHEDULER,
        "message": format!("{scheduler}: preempting to accommodate a higher priority pod"),
        "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    });
    let body = json!({"metadata": {"uid": &*pod.uid}, "status": {"conditions": [condition]}});
    match outcome(send::<Value>(client.clone(), status(pod, &body), CLIENT_TIMEOUT).await) {
        WriteOutcome::Written { .. } => outcome(send::<Value>(client, deletion(pod), CLIENT_TIMEOUT).await),
        failed => failed,
    }
}

fn outcome(answer: Result<Value, SendError>) -> WriteOutcome {
    match answer {
        Ok(object) => {
            let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
            WriteOutcome::Written { resource_version: version.to_owned() }
        }
        // The uid in the request makes another pod of the name a conflict.
        Err(error) if matches!(error.code(), Some(404 | 409)) => {
            WriteOutcome::Written { resource_version: String::new() }
        }
        Err(error) if error.is_refusal() => WriteOutcome::Refused(error.to_string()),
        Err(error) => WriteOutcome::Failed(error.setback()),
    }
}

fn status(pod: &PodKey, body: &Value) -> Request<Vec<u8>> {
    let (path, timeout) = (path(pod), SERVER_TIMEOUT.as_secs());
    Request::patch(format!("{path}/status?timeout={timeout}s"))
        .header(CONTENT_TYPE, "application/strategic-merge-patch+json")
        .body(body.to_string().into_bytes())
        .expect("names of Kubernetes objects are valid in a path")
}

fn deletion(pod: &PodKey) -> Request<Vec<u8>> {
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": &*pod.uid}});
    let (path, timeout) = (path(pod), SERVER_TIMEOUT.as_secs());
    Request::delete(format!("{path}?timeout={timeout}s"))
        .header(CONTENT_TYPE, "application/json")
        .body(options.to_string().into_bytes())
        .expect("names of Kubernetes objects are valid in a path")
}

fn path(pod: &PodKey) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", pod.namespace, pod.name)
}
