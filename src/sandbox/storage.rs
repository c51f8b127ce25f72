//! The volumes of a simulated cluster: kube-controller-manager's volume controller and an external provisioner, working on any API
//! server through a client.
//!
//! They must not know Berth: they read what is on claims and volumes and act as the real programs do.

mod audit;
mod controller;
mod provisioner;
mod view;

use std::{
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{Stream, StreamExt as _, stream};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::{
    Api, Client,
    runtime::{WatchStreamExt as _, watcher},
};
use serde::de::DeserializeOwned;
use tokio::{sync::watch, task::JoinSet};

use super::agent::Second;

/// The name of the provisioner, as a storage class gives it.
pub const PROVISIONER: &str = "storage.example.com";

/// After this time a round that failed is tried again although nothing has changed.
const RETRY: Duration = Duration::from_secs(1);

/// As many changes are taken together as have come meanwhile, up to so many.
const AT_ONCE: usize = 256;

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
    violations: Mutex<Vec<String>>,
}

impl Storage {
    /// Starts both on the API server of this client.
    pub fn start(client: Client) -> Self {
        let (conduct, violations) = (watch::Sender::default(), Mutex::default());
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
        self.shared.violations.lock().expect("no holder of this lock panics").clone()
    }
}

impl Shared {
    fn violation(&self, violation: String) {
        let mut known = self.violations.lock().expect("no holder of this lock panics");
        if !known.contains(&violation) {
            known.push(violation);
        }
    }

    /// One item for each change of a claim, a volume, a class or a pod.
    fn changes(&self) -> impl Stream<Item = ()> + Send + use<> {
        let watches = [
            self.watched::<PersistentVolumeClaim>(),
            self.watched::<PersistentVolume>(),
            self.watched::<StorageClass>(),
            self.watched::<Pod>(),
        ];
        stream::select_all(watches)
    }

    fn watched<K>(&self) -> stream::BoxStream<'static, ()>
    where
        K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
    {
        let all = Api::<K>::all(self.client.clone());
        watcher(all, watcher::Config::default()).backoff(Second).map(drop).boxed()
    }
}

/// Calls `round` for each change and, where it has failed, after a while without one.
async fn at_each_change<F>(changes: impl Stream<Item = ()>, mut round: impl FnMut() -> F)
where
    F: Future<Output = kube::Result<()>>,
{
    let mut changes = pin!(changes.ready_chunks(AT_ONCE));
    let mut failed = false;
    loop {
        let pause = if failed { RETRY } else { Duration::MAX };
        // A pause that has passed asks for a round as a change does.
        if let Ok(None) = tokio::time::timeout(pause, changes.next()).await {
            return;
        }
        let outcome = round().await;
        if let Err(error) = &outcome {
            tracing::debug!(%error, "a round over claims and volumes is repeated");
        }
        failed = outcome.is_err();
    }
}
