//! A way to the API server whose user dies at one of its writes: it never hears of that write, which has been carried out or not.
//!
//! It must not change a request.

use std::{future::pending, sync::Arc};

use http::{Method, Request};
use kube::{Client, client::Body};
use serde_json::Value;
use tokio::sync::Notify;
use tower::service_fn;

use crate::world::World;

/// One of the writes that bring a pod to its node, in their order, and of those that make room for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Write {
    /// The node that the claim's volume is made for.
    SelectNode,
    /// The claim of a volume.
    BindVolume,
    /// A claim that serves extended resources.
    CreateClaim,
    /// The name of that claim in the pod's status.
    StateClaim,
    /// What claims take of the node, in the pod's status.
    StateNodeResources,
    /// The deletion of a claim of devices.
    DeleteClaim,
    /// The finalizer of a claim of devices.
    ProtectClaim,
    /// The devices and users of a claim of devices.
    ReserveClaim,
    /// The node's lock.
    Lock,
    /// The pod's Binding.
    Binding,
    /// The node that is kept for a pod.
    Nomination,
    /// The condition of a pod that is deleted for another.
    Disruption,
    /// The deletion of a pod.
    Deletion,
    /// The pod's eviction.
    Eviction,
}

/// On which side of the write the user dies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Moment {
    Before,
    After,
}

/// The way to the API server.
pub(crate) struct Death {
    client: Client,
    reached: Arc<Notify>,
}

impl World {
    /// Starts a binder for this pod, which is created then, and kills it at its first write of this kind.
    pub(crate) async fn kill_berth_at(&mut self, write: Write, moment: Moment, pod: Value) {
        let death = Death::at(self.cluster.client.clone(), write, moment);
        self.start_berth_through(death.client());
        self.create(pod).await;
        death.reached().await;
        self.kill_berth().await;
    }
}

impl Death {
    /// At the first write of this kind.
    pub(crate) fn at(client: Client, write: Write, moment: Moment) -> Self {
        let reached: Arc<Notify> = Arc::default();
        let is_reached = reached.clone();
        let service = service_fn(move |request: Request<Body>| {
            let (client, reached) = (client.clone(), is_reached.clone());
            async move {
                if write_of(&request) != Some(write) {
                    return client.send(request).await;
                }
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await?;
                let request = Request::from_parts(parts, Body::from(body.to_vec()));
                if write == Write::Nomination && !nominates(&body) {
                    return client.send(request).await;
                }
                if moment == Moment::After {
                    let answer = client.send(request).await?;
                    assert!(answer.status().is_success(), "{write:?} was refused: {}", answer.status());
                }
                reached.notify_one();
                pending().await
            }
        });
        Self { client: Client::new(service, "default"), reached }
    }

    /// What the user is to be started with.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns once the user is dead.
    pub(crate) async fn reached(&self) {
        self.reached.notified().await;
    }
}

/// Whether a write of a pod's status says which node is kept for the pod. An earlier one may say why the pod waits.
fn nominates(status: &[u8]) -> bool {
    let status: Value = serde_json::from_slice(status).expect("a patch is JSON");
    status["status"]["nominatedNodeName"].is_string()
}

pub(crate) fn write_of(request: &Request<Body>) -> Option<Write> {
    let path = request.uri().path();
    if request.method() == Method::POST && path.ends_with("/binding") {
        return Some(Write::Binding);
    }
    if request.method() == Method::DELETE && path.contains("/pods/") {
        return Some(Write::Deletion);
    }
    if request.method() == Method::PATCH && path.contains("/pods/") && path.ends_with("/status") {
        return Some(match path {
            _ if path.contains("/urgent") => Write::Nomination,
            _ if path.contains("/extended-") => Write::StateClaim,
            _ if path.contains("/taking-") => Write::StateNodeResources,
            _ => Write::Disruption,
        });
    }
    if request.method() == Method::POST && path.ends_with("/eviction") {
        return Some(Write::Eviction);
    }
    if request.method() == Method::POST && path.ends_with("/resourceclaims") {
        return Some(Write::CreateClaim);
    }
    if request.method() == Method::DELETE && path.contains("/resourceclaims/") {
        return Some(Write::DeleteClaim);
    }
    if request.method() == Method::PATCH && path.contains("/resourceclaims/") {
        return Some(if path.ends_with("/status") { Write::ReserveClaim } else { Write::ProtectClaim });
    }
    let patched = |kind: &str| request.method() == Method::PATCH && path.contains(kind);
    let kinds = [
        ("/persistentvolumeclaims/", Write::SelectNode),
        ("/persistentvolumes/", Write::BindVolume),
        ("/nodes/", Write::Lock),
    ];
    kinds.into_iter().find(|(kind, _)| patched(kind)).map(|(_, write)| write)
}
