//! What admission may know of quotas: the limits that are watched, and what is used of them as this process's binder knows it.
//!
//! Where no binder has seen the cluster here, the limits stand alone: only what can never fit is refused.

use std::{collections::BTreeMap, sync::Arc};

use kube::Client;
use tokio::sync::watch;

use super::Shared;
use crate::{
    admission::{
        Facts, NamespaceQuota,
        namespace_quota::{HolderStanding, amounts},
    },
    app::Parts,
    cluster::{Handoff, informer::keep::keep},
    dialect::Dialects,
    object::{Metadata, ResourceQuota},
    scheduling::world::{ledger::Used, quota_holder::QuotaHolders},
};

/// The ResourceQuotas there are.
type Known = Arc<Vec<ResourceQuota>>;

/// Follows ResourceQuotas and what is used of them.
pub(super) async fn follow(facts: &Shared, client: &Client, parts: Parts, handoff: &Handoff) {
    let (mut used, mut holders) = (handoff.used(), handoff.quota_holders());
    let known = watch::Sender::<Known>::default();
    let read = |quota: &ResourceQuota| {
        // In a process with a binder, the binder logs it.
        if parts == Parts::Webhook {
            report(quota, &facts.0.load().dialects);
        }
        // What changes beside the limits, such as the annotation with what is used, makes no other facts.
        let Metadata { name, namespace, .. } = quota.metadata.clone();
        ResourceQuota {
            metadata: Metadata { name, namespace, ..Metadata::default() },
            spec: quota.spec.clone(),
        }
    };
    let limits = keep(client, read, |quotas| {
        known.send_replace(Arc::new(quotas.values().cloned().collect()));
    });
    let mut limits_known = known.subscribe();
    let joined = async {
        loop {
            let (limits, held) = (limits_known.borrow_and_update().clone(), used.borrow_and_update().clone());
            let by = holders.borrow_and_update().clone();
            facts.set(|facts| facts.quotas = Arc::new(quotas(&limits, (&held, &by), facts)));
            // A sender that is gone tells nothing more; the other may.
            tokio::select! {
                Ok(()) = limits_known.changed() => {}
                Ok(()) = used.changed() => {}
                Ok(()) = holders.changed() => {}
                else => std::future::pending().await,
            }
        }
    };
    tokio::join!(limits, joined);
}

/// The quotas of each namespace that has some on shares.
fn quotas(
    limits: &[ResourceQuota],
    (used, holders): (&Used, &QuotaHolders),
    facts: &Facts,
) -> BTreeMap<String, NamespaceQuota> {
    let mut quotas: BTreeMap<String, NamespaceQuota> = BTreeMap::new();
    for quota in limits {
        let namespace = quota.metadata.namespace.clone();
        quotas.entry(namespace).or_default().limit(quota, &facts.dialects);
    }
    quotas.retain(|_, quota| !quota.limits.is_empty());
    for (namespace, quota) in &mut quotas {
        for (profile, usage) in used.get(namespace.as_str()).into_iter().flatten() {
            quota.hold(profile, *usage, &facts.dialects);
        }
        for holder in holders.get(namespace.as_str()).into_iter().flatten() {
            let standing =
                if holder.terminating { HolderStanding::Terminating } else { HolderStanding::Alive };
            for (profile, usage) in &holder.held {
                quota.note_holder(&holder.pod, standing, &amounts(profile, *usage, &facts.dialects));
            }
        }
    }
    quotas
}

/// Says what can't be read of a quota.
fn report(quota: &ResourceQuota, dialects: &Dialects) {
    let (namespace, name) = (&quota.metadata.namespace, &quota.metadata.name);
    for trouble in NamespaceQuota::default().limit(quota, dialects) {
        tracing::warn!(
            resource_quota = %format!("{namespace}/{name}"),
            field = trouble.field,
            "{}",
            trouble.message
        );
    }
}
