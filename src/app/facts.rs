//! What admission may know of the cluster, kept up to date beside it: the judge reads, a follower of each kind writes.

use std::{collections::BTreeMap, sync::Arc};

use arc_swap::ArcSwap;
use kube::Client;
use tokio::sync::watch;

use super::Parts;
use crate::{
    admission::{self, Facts, InventorySummary},
    cluster::watch::namespaces,
    config::Config,
    dialect::Dialects,
    object::Namespace,
    webhook::{Judge, router::Readiness},
};

/// The facts as they are now; clones share them.
#[derive(Clone)]
pub(super) struct Shared(Arc<ArcSwap<Facts>>);

impl Shared {
    /// The settings, and nothing yet of the cluster.
    pub(super) fn new(config: &Config) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(Facts::new(config.admission_settings(), config.dialects()))))
    }

    /// Judges by the facts as they are at each review.
    pub(super) fn judge(&self) -> Judge {
        let facts = self.0.clone();
        Arc::new(move |request| admission::review(request, &facts.load()))
    }

    /// The dialects that are spoken.
    pub(super) fn dialects(&self) -> Dialects {
        self.0.load().dialects.clone()
    }

    /// Nodes and cards as they are now.
    pub(super) fn set_inventory(&self, inventory: InventorySummary) {
        let inventory = Some(Arc::new(inventory));
        self.0.rcu(|facts| Facts { inventory: inventory.clone(), ..Facts::clone(facts) });
    }

    fn set_namespaces(&self, namespaces: &BTreeMap<String, Namespace>) {
        let namespaces = Arc::new(namespaces.clone());
        self.0.rcu(|facts| Facts { namespaces: Arc::clone(&namespaces), ..Facts::clone(facts) });
    }
}

/// Follows the namespaces; reviews are answered once they are known. A process that admits nothing is ready at once.
pub(super) async fn follow(facts: Shared, client: Client, ready: watch::Sender<Readiness>, parts: Parts) {
    if parts == Parts::Binder {
        ready.send_replace(Readiness::Ready);
        return std::future::pending().await;
    }
    namespaces(&client, |known| {
        facts.set_namespaces(known);
        ready.send_if_modified(|readiness| {
            let starting = *readiness == Readiness::Starting;
            if starting {
                *readiness = Readiness::Ready;
            }
            starting
        });
    })
    .await;
}
