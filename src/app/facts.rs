//! What admission may know of the cluster, kept up to date beside it: the judge reads, one follower writes.

use std::{collections::BTreeMap, sync::Arc};

use arc_swap::ArcSwap;
use kube::Client;
use tokio::sync::watch;

use super::Parts;
use crate::{
    admission::{self, Facts},
    cluster::watch::namespaces,
    config::Config,
    object::Namespace,
    webhook::{Judge, router::Readiness},
};

/// The facts as they are now; clones share them.
#[derive(Clone)]
pub(super) struct Shared(Arc<ArcSwap<Facts>>);

impl Shared {
    /// The settings, and nothing yet of the cluster.
    pub(super) fn new(config: &Config) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(Facts {
            settings: config.admission_settings(),
            dialects: config.dialects(),
            namespaces: Arc::default(),
        })))
    }

    /// Judges by the facts as they are at each review.
    pub(super) fn judge(&self) -> Judge {
        let facts = self.0.clone();
        Arc::new(move |request| admission::review(request, &facts.load()))
    }

    /// New settings; what is known of the cluster stays.
    fn set_config(&self, config: &Config) {
        let now = Facts {
            settings: config.admission_settings(),
            dialects: config.dialects(),
            namespaces: self.0.load().namespaces.clone(),
        };
        self.0.store(Arc::new(now));
    }

    fn set_namespaces(&self, namespaces: &BTreeMap<String, Namespace>) {
        let now = Facts { namespaces: Arc::new(namespaces.clone()), ..Facts::clone(&self.0.load()) };
        self.0.store(Arc::new(now));
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

/// Follows the settings for as long as anybody can change them.
pub(super) async fn follow_settings(facts: Shared, mut settings: watch::Receiver<Arc<Config>>) {
    while settings.changed().await.is_ok() {
        let config = settings.borrow_and_update().clone();
        facts.set_config(&config);
    }
}
