//! The volumes of a simulated cluster: kube-controller-manager's volume controller and an external provisioner, working on any API
//! server through a client.
//!
//! They must not know Berth: they read what is on claims and volumes and act as the real programs do.

mod audit;
mod controller;
mod provisioner;
mod view;

use std::sync::Arc;

use futures::{Stream, stream};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::Client;
use tokio::{sync::watch, task::JoinSet};

use super::controller::{Violations, watched};

/// The name of the provisioner, as a storage class gives it.
pub const PROVISIONER: &str = "storage.example.com";

/// How the provisioner answers a claim that is selected for a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Conduct {
    /// It makes the volume at once.
    #[default]
    Provide,
    /// It does nothing until this changes.
    Hold,
    /// It can make no volume on the node of this name and gives each claim back that is selected for it.
    GiveUpOn(String),
}

/// Volume controller and provisioner, gone when dropped; claims and volumes stay.
pub struct Storage {
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

struct Shared {
    client: Client,
    conduct: watch::Sender<Conduct>,
    violations: Violations,
}

impl Storage {
    /// Starts both on the API server of this client.
    pub fn start(client: Client) -> Self {
        let (conduct, violations) = (watch::Sender::default(), Violations::default());
        let shared = Arc::new(Shared { client, conduct, violations });
        let mut tasks = JoinSet::new();
        tasks.spawn(controller::run(Arc::clone(&shared)));
        tasks.spawn(provisioner::run(Arc::clone(&shared)));
        Self { shared, _tasks: tasks }
    }

    /// Changes what the provisioner does from now on.
    pub fn behave(&self, conduct: Conduct) {
        self.shared.conduct.send_replace(conduct);
    }

    /// What a scheduler wrote that the volume controller can't make use of, and pods that were bound before their claims; each once.
    pub fn violations(&self) -> Vec<String> {
        self.shared.violations.all()
    }
}

impl Shared {
    /// One item for each change of a claim, a volume, a class or a pod.
    fn changes(&self) -> impl Stream<Item = ()> + Send + use<> {
        let client = &self.client;
        let watches = [
            watched::<PersistentVolumeClaim>(client),
            watched::<PersistentVolume>(client),
            watched::<StorageClass>(client),
            watched::<Pod>(client),
        ];
        stream::select_all(watches)
    }
}
