//! The facts about the cluster that admission reads. One follower keeps them up to date.

mod quotas;

use std::{collections::BTreeMap, sync::Arc};

use arc_swap::ArcSwap;
use kube::Client;
use tokio::sync::watch;

use super::{Parts, entrance, inventory};
use crate::{
    admission::{self, Facts, inventory::InventorySummary},
    api::what_if::AdmitPod,
    cluster::{
        Handoff,
        informer::keep::{ObjectKey, keep, keep_if_served},
    },
    config::Config,
    dialect::marks,
    object::{Namespace, PodGroup, workload::Places},
    scheduling::model::claim_use::DeviceClaims,
    webhook::{Judge, router::ServerReadiness},
};

/// The current facts; clones share them.
#[derive(Clone)]
pub(super) struct Shared(Arc<ArcSwap<Facts>>);

impl Shared {
    /// Facts with the settings, and without anything of the cluster yet.
    pub(super) fn new(config: &Config) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(Facts::new(config.admission_settings(), config.dialects()))))
    }

    /// A function that judges a pod by the facts at the time of the review.
    pub(super) fn judge(&self) -> Judge {
        let facts = self.0.clone();
        Arc::new(move |request| admission::review(request, &facts.load()))
    }

    /// A function that leads a pod through both stages by the facts at the time of the question.
    pub(super) fn admit(&self) -> AdmitPod {
        let facts = self.0.clone();
        Arc::new(move |pod, namespace, classes| {
            entrance::entered((pod, namespace, &Places::default()), &facts.load(), classes)
        })
    }

    /// Changes the facts; concurrent changes are kept.
    fn set(&self, change: impl Fn(&mut Facts)) {
        self.0.rcu(|facts| {
            let mut facts = Facts::clone(facts);
            change(&mut facts);
            facts
        });
    }
}

/// Watches the objects that the rules read: namespaces, nodes, quotas and PodGroups. The process is ready when the namespaces are
/// listed; until the other kinds are listed, no pod is denied because of them. A process without a webhook is ready at once.
pub(super) async fn follow(
    facts: Shared,
    client: Client,
    ready: watch::Sender<ServerReadiness>,
    (parts, claims): (Parts, DeviceClaims),
    handoff: Handoff,
) {
    if matches!(parts, Parts::Binder | Parts::Shadow { .. }) {
        ready.send_replace(ServerReadiness::Ready);
        return std::future::pending().await;
    }
    let namespaces = keep(&client, Namespace::clone, |known| {
        let by_name = |((_, name), namespace): (&ObjectKey, &Namespace)| (name.clone(), namespace.clone());
        let known = Arc::new(known.iter().map(by_name).collect::<BTreeMap<_, _>>());
        facts.set(|facts| facts.namespaces = known.clone());
        ready.send_if_modified(|readiness| {
            let starting = *readiness == ServerReadiness::Starting;
            if starting {
                *readiness = ServerReadiness::Ready;
            }
            starting
        });
    });
    let publish = |summary: InventorySummary| {
        let summary = Arc::new(summary);
        facts.set(|facts| facts.inventory = Some(summary.clone()));
    };
    let nodes = async {
        if parts == Parts::Both {
            inventory::seen(handoff.views(), publish).await;
        } else {
            Box::pin(inventory::watched(&client, claims, || facts.0.load().dialects.clone(), publish)).await;
        }
    };
    let mark = |group: &PodGroup| group.metadata.annotation(marks::PREEMPTABLE).map(str::to_owned);
    let groups = keep_if_served(&client, mark, |known| {
        let known = Arc::new(known.clone());
        facts.set(|facts| facts.pod_groups = known.clone());
    });
    tokio::join!(namespaces, nodes, groups, quotas::follow(&facts, &client, parts, &handoff));
}

/// Follows the settings until their sender is gone.
pub(super) async fn follow_settings(facts: Shared, mut settings: watch::Receiver<Arc<Config>>) {
    while settings.changed().await.is_ok() {
        let config = settings.borrow_and_update().clone();
        facts.set(|facts| {
            facts.settings = config.admission_settings();
            facts.dialects = config.dialects();
        });
    }
}
