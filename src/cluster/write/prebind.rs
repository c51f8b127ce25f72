//! The writes for a pod's claims before the pod is bound.
//!
//! Each write to a claim or a volume is a compare-and-swap on the object's resource version, so that a write of the volume controller or of
//! another scheduler makes it a conflict.

mod claim;
mod extended;
mod node_resources;
mod volume;

use http::{Request, header::CONTENT_TYPE};
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;

use super::send::{CLIENT_TIMEOUT, SERVER_TIMEOUT, send};
use crate::scheduling::{PodKey, WriteOutcome, effect::PrebindWrite};

/// Sends the write, if the object still has the known resource version.
pub async fn write(client: Client, pod: &PodKey, write: &PrebindWrite, now: Timestamp) -> WriteOutcome {
    match send::<Value>(client, request(pod, write, now), CLIENT_TIMEOUT).await {
        Ok(object) if !extended::is_kept(write, &object) => {
            WriteOutcome::Refused(extended::NOT_KEPT.to_owned())
        }
        Ok(object) if !node_resources::is_kept(write, &object) => {
            WriteOutcome::Refused(node_resources::NOT_KEPT.to_owned())
        }
        Ok(object) => WriteOutcome::Written {
            resource_version: object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned(),
        },
        // What is to be deleted is gone.
        Err(error) if error.code() == Some(404) && matches!(write, PrebindWrite::DeleteClaim { .. }) => {
            WriteOutcome::Written { resource_version: String::new() }
        }
        Err(error) if error.is_refusal() => WriteOutcome::Refused(error.to_string()),
        Err(error) => WriteOutcome::Failed(error.setback()),
    }
}

/// One patch: the object's path, the kind of the patch, and its body.
#[derive(Debug)]
struct Patch {
    path: String,
    kind: &'static str,
    body: Value,
}

const MERGE: &str = "application/merge-patch+json";
/// Adds to lists and takes from them, whatever else is in them.
const STRATEGIC: &str = "application/strategic-merge-patch+json";

fn request(pod: &PodKey, write: &PrebindWrite, now: Timestamp) -> Request<Vec<u8>> {
    let Patch { path, kind, body } = match write {
        PrebindWrite::BindVolume { volume, claim: Some(claim) } => volume::bound(volume, claim),
        PrebindWrite::BindVolume { volume, claim: None } => volume::released(volume),
        PrebindWrite::SelectNode { claim, node } => volume::for_node(claim, node.as_deref()),
        PrebindWrite::ProtectClaim { claim } => claim::protected(claim),
        PrebindWrite::ReserveClaim { claim, consumer, allocation } => {
            claim::reserved(claim, allocation.as_deref(), (pod, consumer), now)
        }
        PrebindWrite::ReleaseClaim { claim, consumer, deallocate } => {
            claim::released(claim, *deallocate, consumer.uid(&pod.uid))
        }
        PrebindWrite::UnprotectClaim { claim } => claim::unprotected(claim),
        PrebindWrite::StateClaim { status, .. } => extended::stated(pod, status.as_deref()),
        PrebindWrite::StateNodeResources { version, statuses } => {
            node_resources::stated(pod, version, statuses)
        }
        PrebindWrite::CreateClaim { claim, made } => return extended::creation(pod, claim, made),
        PrebindWrite::DeleteClaim { claim } => return extended::deletion(claim),
    };
    Request::patch(format!("{path}?timeout={}s", SERVER_TIMEOUT.as_secs()))
        .header(CONTENT_TYPE, kind)
        .body(body.to_string().into_bytes())
        .expect("names of Kubernetes objects are valid in a path")
}
