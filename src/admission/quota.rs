//! Quotas of shares: what a namespace may use, what a pod needs at its peak, and whether that still fits.
//!
//! Keys are HAMi's: `limits.<memory>` and `limits.<cores>` of ResourceQuotas (v2.10 `pkg/device/quota.go`), and `limits.<count>`
//! beside them. Several quotas in one namespace all hold. Who has used what is gathered outside.

use std::collections::BTreeMap;

use super::{facts::Facts, findings::Findings, rules, settings::ResourceNames};
use crate::{
    device::{Card, Inventory, MemoryRequest, PodRequest, Role, ShareRequest},
    dialect::Dialect,
    object::{Pod, Quantity},
};

/// What stands before a resource's name.
const PREFIX: &str = "limits.";

/// The smallest limit on a resource, and who set it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limit {
    /// The ResourceQuota.
    pub quota: String,
    /// Units of the resource.
    pub units: u64,
}

/// The quotas of one namespace, and what its pods hold.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NamespaceQuota {
    /// The smallest limit, by resource.
    pub limits: BTreeMap<String, Limit>,
    /// Units that the namespace's pods hold, by resource.
    pub used: BTreeMap<String, u64>,
}

impl NamespaceQuota {
    /// Adds the limits of one ResourceQuota: of several the smallest counts. What is no whole number is left out.
    pub fn limit(&mut self, quota: &str, hard: &BTreeMap<String, Quantity>) {
        for (key, quantity) in hard {
            let Some(resource) = key.strip_prefix(PREFIX) else { continue };
            let whole = quantity.amount().ok().and_then(crate::object::Amount::whole);
            let Some(units) = whole.and_then(|units| u64::try_from(units).ok()) else { continue };
            let smaller = self.limits.get(resource).is_none_or(|known| units < known.units);
            if smaller {
                self.limits.insert(resource.to_owned(), Limit { quota: quota.to_owned(), units });
            }
        }
    }

    /// Adds what one pod holds.
    pub fn charge(&mut self, needs: &BTreeMap<String, u64>) {
        for (resource, units) in needs {
            let used = self.used.entry(resource.clone()).or_default();
            *used = used.saturating_add(*units);
        }
    }
}

/// Units of each resource that a pod needs at its peak; a part of a card counts by the smallest card that could serve.
pub fn needs(pod: &Pod, facts: &Facts) -> BTreeMap<String, u64> {
    let mut needs = BTreeMap::new();
    for dialect in facts.dialects.asked(pod) {
        let (Some(names), Ok(Some(request))) =
            (facts.settings.resources.get(&dialect.mode()), dialect.request(pod))
        else {
            continue;
        };
        let memory = |share: ShareRequest| units_of_memory(share, &request, dialect.as_ref(), names, facts);
        let cores = |share: ShareRequest| u64::from(share.cores.get());
        needs.insert(names.count.clone(), peak(&request, |_| 1));
        needs.insert(names.memory.clone(), peak(&request, memory));
        needs.insert(names.cores.clone(), peak(&request, cores));
    }
    needs
}

/// Judges whether the pod still fits.
pub fn judge(findings: &mut Findings, pod: &Pod, namespace: &str, facts: &Facts) {
    let Some(quota) = facts.quotas.get(namespace).filter(|quota| !quota.limits.is_empty()) else { return };
    for (resource, need) in needs(pod, facts) {
        let Some(limit) = quota.limits.get(&resource).filter(|_| need > 0) else { continue };
        let used = quota.used.get(&resource).copied().unwrap_or(0);
        if used.saturating_add(need) <= limit.units {
            continue;
        }
        let left = limit.units.saturating_sub(used);
        let message = format!(
            "the pod needs {need} of {resource} at its peak; ResourceQuota {} of namespace {namespace} allows {}, of which \
             {used} are used: {left} are left",
            limit.quota, limit.units
        );
        findings.report(facts.settings.guards.quota, rules::QUOTA, "spec", message);
    }
}

fn units_of_memory(
    share: ShareRequest,
    request: &PodRequest,
    dialect: &dyn Dialect,
    names: &ResourceNames,
    facts: &Facts,
) -> u64 {
    let mebibytes = match share.memory {
        MemoryRequest::Exact(amount) => amount.get(),
        MemoryRequest::Part(_) => {
            let nodes = facts.inventory.iter().flat_map(|inventory| inventory.shapes(dialect.mode()));
            let cards = nodes.flat_map(Inventory::cards);
            let admitted = cards.filter(|card: &&Card| request.selection.models.admits(&card.model));
            admitted.map(|card| share.memory.of(card.memory).get()).min().unwrap_or(0)
        }
    };
    mebibytes / u64::from(names.memory_factor.max(1))
}

/// The most that the pod holds at a time: init containers one after another beside the sidecars that began before them, then
/// sidecars and apps together. Each share counts once for each of its cards.
fn peak(request: &PodRequest, of_a_card: impl Fn(ShareRequest) -> u64) -> u64 {
    let (mut during_init, mut sidecars, mut apps) = (0_u64, 0_u64, 0_u64);
    for container in &request.containers {
        let Some(share) = container.share else { continue };
        let units = of_a_card(share).saturating_mul(share.cards.get().into());
        match container.role {
            Role::Init => during_init = during_init.max(sidecars.saturating_add(units)),
            Role::Sidecar => sidecars = sidecars.saturating_add(units),
            Role::App => apps = apps.saturating_add(units),
        }
    }
    during_init.max(sidecars.saturating_add(apps))
}
