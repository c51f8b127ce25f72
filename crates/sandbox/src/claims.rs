//! The claims of devices of a simulated cluster: kube-controller-manager's resourceclaim controller, and what DRA drivers publish,
//! working on any API server through a client.
//!
//! They must not know Berth: they read what is on claims and pods and act as the real programs do.

mod allocation;
mod audit;
mod cards;
mod controller;
pub mod driver;

use std::sync::Arc;

use futures::{Stream, stream};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimTemplate, ResourceSlice};
use kube::Client;
use tokio::task::JoinSet;

use super::controller::{Violations, watched};

/// The controller, gone when dropped; claims stay.
pub struct DeviceClaims {
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

struct Shared {
    client: Client,
    violations: Violations,
}

impl DeviceClaims {
    /// Starts the controller on the API server of this client.
    pub fn start(client: Client) -> Self {
        let shared = Arc::new(Shared { client, violations: Violations::default() });
        let mut tasks = JoinSet::new();
        tasks.spawn(controller::run(Arc::clone(&shared)));
        Self { shared, _tasks: tasks }
    }

    /// What a scheduler wrote that kubelet or a driver could not use, and devices that were given twice; each once.
    pub fn violations(&self) -> Vec<String> {
        self.shared.violations.all()
    }
}

impl Shared {
    /// One item for each change of a claim, a template, a slice or a pod.
    fn changes(&self) -> impl Stream<Item = ()> + Send + use<> {
        let client = &self.client;
        let watches = [
            watched::<Pod>(client),
            watched::<ResourceClaim>(client),
            watched::<ResourceClaimTemplate>(client),
            watched::<ResourceSlice>(client),
        ];
        stream::select_all(watches)
    }
}
