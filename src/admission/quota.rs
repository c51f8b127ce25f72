//! What a pod needs of its namespace's quotas at its peak, and whether that still fits.

use std::collections::BTreeMap;

use super::{facts::Facts, findings::ReviewFindings, rules, shares::PodShares};
use crate::{
    device::{Card, CoreRequest, CountedAmount, Dimension, MemoryRequest, PodRequest, Role, ShareRequest},
    dialect::Dialect,
};

/// What a pod needs at its peak of each resource, in shares, MiB, or compute in percent or units; a part of a card counts by the smallest
/// card that could serve.
pub fn needs(shares: &PodShares<'_>, facts: &Facts) -> BTreeMap<String, u64> {
    let mut needs = BTreeMap::new();
    for (dialect, request) in shares.requests() {
        let memory = least(request, dialect, facts, |share| is_part(share.memory), |card| card.memory);
        let cores = least(request, dialect, facts, |share| is_part_of_units(share.cores), |card| card.cores);
        for CountedAmount { resource, dimension, .. } in dialect.counted() {
            let amount = match dimension {
                Dimension::Cards => peak(request, |_| 1),
                Dimension::Memory => peak(request, |share| share.memory.of(memory).get()),
                Dimension::Cores => peak(request, |share| share.cores.of(cores).get().into()),
            };
            needs.insert(resource.to_owned(), amount);
        }
    }
    needs
}

/// Judges whether the pod still fits.
pub fn judge(findings: &mut ReviewFindings, shares: &PodShares<'_>, namespace: &str, facts: &Facts) {
    let Some(quota) = facts.quotas.get(namespace).filter(|quota| !quota.limits.is_empty()) else { return };
    for (resource, need) in needs(shares, facts) {
        let Some(limit) = quota.limits.get(&resource).filter(|_| need > 0) else { continue };
        let used = quota.used.get(&resource).copied().unwrap_or(0);
        if used.saturating_add(need) <= limit.amount() {
            continue;
        }
        let message = format!(
            "the pod needs {} of {resource} at its peak; ResourceQuota {} of namespace {namespace} allows {}, of which \
             {} are used: {} are left{}",
            limit.units_of(need),
            limit.quota,
            limit.units,
            limit.units_of(used),
            limit.whole_units_of(limit.amount().saturating_sub(used)),
            quota.held_by(&resource, limit),
        );
        findings.report(facts.settings.guards.quota, rules::QUOTA, "spec", message);
    }
}

fn is_part(memory: MemoryRequest) -> bool {
    matches!(memory, MemoryRequest::Part(_))
}

fn is_part_of_units(cores: CoreRequest) -> bool {
    matches!(cores, CoreRequest::Part(_))
}

/// The least that a card that could serve the pod has of an amount, none where no such card is known. It is looked for where a container
/// asks for a part of a card, once for all of them: of less a part is less.
fn least<T: Copy + Default + Ord>(
    request: &PodRequest,
    dialect: &dyn Dialect,
    facts: &Facts,
    asks_for_a_part: impl Fn(ShareRequest) -> bool,
    amount: impl Fn(&Card) -> T,
) -> T {
    let mut shares = request.containers.iter().filter_map(|container| container.share);
    if !shares.any(asks_for_a_part) {
        return T::default();
    }
    let mut least: BTreeMap<&str, T> = BTreeMap::new();
    let nodes = facts.inventory.iter().flat_map(|inventory| inventory.shapes(dialect.mode()));
    for card in nodes.flat_map(|inventory| inventory.cards()) {
        let known = least.entry(&card.model).or_insert(amount(card));
        *known = amount(card).min(*known);
    }
    let admitted = least.into_iter().filter(|(model, _)| request.selection.models.admits(model));
    admitted.map(|(_, amount)| amount).min().unwrap_or_default()
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
