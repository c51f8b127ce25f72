//! Taking and giving back a node's locks by compare-and-swap on the node's version.

use std::collections::BTreeMap;

use http::{Request, header::CONTENT_TYPE};
use jiff::Timestamp;
use kube::{Client, Resource};
use serde_json::{Value, json};

use super::send::{CLIENT_TIMEOUT, SERVER_TIMEOUT, SendError, send};
use crate::{
    cluster::informer::wire::Watched,
    device::LockOwner,
    dialect::LockSpec,
    object::Node,
    scheduling::{LockOutcome, PodKey},
};

/// Takes the locks in one write, if the node still has this version.
pub async fn take(
    client: Client,
    specs: &[&LockSpec],
    node: &str,
    pod: &PodKey,
    resource_version: &str,
    now: Timestamp,
) -> LockOutcome {
    let owner = LockOwner { namespace: pod.namespace.to_string(), name: pod.name.to_string() };
    let values = specs.iter().map(|spec| (spec.key.as_str(), Value::String(spec.value(&owner, now))));
    match write(client, values.collect(), node, resource_version).await {
        Ok(resource_version) => LockOutcome::Taken { resource_version },
        Err(error) if error.code() == Some(409) => LockOutcome::Stale,
        Err(error) if error.is_refusal() => LockOutcome::Refused(error.to_string()),
        Err(error) if error.is_throttled() => LockOutcome::Throttled(error.setback()),
        Err(error) => LockOutcome::Failed(error.setback()),
    }
}

/// Gives the locks back in one write, if the node still has this version; a node that is gone has no locks.
pub async fn release(
    client: Client,
    specs: &[&LockSpec],
    node: &str,
    resource_version: &str,
) -> Result<(), SendError> {
    let values = specs.iter().map(|spec| (spec.key.as_str(), Value::Null)).collect();
    match write(client, values, node, resource_version).await {
        Err(error) if error.code() == Some(404) => Ok(()),
        outcome => outcome.map(drop),
    }
}

/// Writes the locks' values, each under its key, by compare-and-swap; the node's new version.
async fn write(
    client: Client,
    values: BTreeMap<&str, Value>,
    node: &str,
    resource_version: &str,
) -> Result<String, SendError> {
    let metadata = json!({"resourceVersion": resource_version, "annotations": values});
    let timeout = SERVER_TIMEOUT.as_secs();
    let request = Request::patch(format!("/api/v1/nodes/{node}?timeout={timeout}s"))
        .header(CONTENT_TYPE, "application/merge-patch+json")
        .body(json!({"metadata": metadata}).to_string().into_bytes())
        .expect("names of Kubernetes objects are valid in a path");
    let written = send::<Watched<Node>>(client, request, CLIENT_TIMEOUT).await?;
    Ok(written.meta().resource_version.clone().unwrap_or_default())
}
