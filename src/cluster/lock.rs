//! Taking and giving back a node's lock by compare-and-swap on the node's version.

use jiff::Timestamp;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::wire::Watched;
use crate::{
    device::LockOwner,
    dialect::LockSpec,
    object::Node,
    scheduling::{LockOutcome, PodKey},
};

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
        Ok(()) => LockOutcome::Taken,
        Err(kube::Error::Api(status)) if status.code == 409 => LockOutcome::Stale,
        Err(error) => LockOutcome::Failed(error.to_string()),
    }
}

/// Gives the lock back, if the node still has this version; who changed it meanwhile has seen the lock.
pub async fn release(
    client: Client,
    spec: &LockSpec,
    node: &str,
    resource_version: &str,
) -> Result<(), kube::Error> {
    match write(client, spec, node, resource_version, Value::Null).await {
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        outcome => outcome,
    }
}

async fn write(
    client: Client,
    spec: &LockSpec,
    node: &str,
    resource_version: &str,
    value: Value,
) -> Result<(), kube::Error> {
    let metadata = json!({"resourceVersion": resource_version, "annotations": {spec.key.as_str(): value}});
    let patch = json!({"metadata": metadata});
    let nodes: Api<Watched<Node>> = Api::all(client);
    nodes.patch(node, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
}
