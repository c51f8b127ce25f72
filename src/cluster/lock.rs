//! Taking and giving back a node's lock by compare-and-swap on the node's version.

use std::time::Duration;

use http::{Request, header::CONTENT_TYPE};
use jiff::Timestamp;
use kube::{Client, Resource};
use serde_json::{Value, json};

use super::{bind, wire::Watched};
use crate::{
    device::LockOwner,
    dialect::LockSpec,
    object::Node,
    scheduling::{LockOutcome, PodKey},
};

/// After this time the API server gives a write up by itself.
const SERVER_TIMEOUT: Duration = Duration::from_secs(5);
/// After this time nobody waits for its answer any more.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(8);

/// Why a lock was not written.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The API server could not be asked, or refused.
    #[error(transparent)]
    Refused(#[from] kube::Error),
    /// No answer came in time.
    #[error("no answer within {CLIENT_TIMEOUT:?}")]
    Unanswered,
}

/// Takes the lock, if the node still has this version.
pub async fn take(
    client: Client,
    spec: &LockSpec,
    node: &str,
    pod: &PodKey,
    resource_version: &str,
    now: Timestamp,
) -> LockOutcome {
    let owner = LockOwner { namespace: pod.namespace.to_string(), name: pod.name.to_string() };
    match write(client, spec, node, resource_version, Value::String(spec.value(&owner, now))).await {
        Ok(resource_version) => LockOutcome::Taken { resource_version },
        Err(LockError::Refused(kube::Error::Api(status))) if status.code == 409 => LockOutcome::Stale,
        Err(LockError::Refused(kube::Error::Api(status))) if bind::is_refusal(status.code) => {
            LockOutcome::Refused(status.message.clone())
        }
        Err(error) => LockOutcome::Failed(error.to_string()),
    }
}

/// Gives the lock back, if the node still has this version; a node that is gone has no lock.
pub async fn release(
    client: Client,
    spec: &LockSpec,
    node: &str,
    resource_version: &str,
) -> Result<(), LockError> {
    match write(client, spec, node, resource_version, Value::Null).await {
        Err(LockError::Refused(kube::Error::Api(status))) if status.code == 404 => Ok(()),
        outcome => outcome.map(drop),
    }
}

/// Writes the lock's value by compare-and-swap; the node's new version.
async fn write(
    client: Client,
    spec: &LockSpec,
    node: &str,
    resource_version: &str,
    value: Value,
) -> Result<String, LockError> {
    let metadata = json!({"resourceVersion": resource_version, "annotations": {spec.key.as_str(): value}});
    let timeout = SERVER_TIMEOUT.as_secs();
    let request = Request::patch(format!("/api/v1/nodes/{node}?timeout={timeout}s"))
        .header(CONTENT_TYPE, "application/merge-patch+json")
        .body(json!({"metadata": metadata}).to_string().into_bytes())
        .expect("names of Kubernetes objects are valid in a path");
    let sent = client.request::<Watched<Node>>(request);
    let written = tokio::time::timeout(CLIENT_TIMEOUT, sent).await.map_err(|_| LockError::Unanswered)??;
    Ok(written.meta().resource_version.clone().unwrap_or_default())
}
