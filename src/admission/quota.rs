//! Quotas of shares: what a namespace may use, what a pod needs at its peak, and whether that still fits.
//!
//! Keys are HAMi's: `limits.<memory>` and `limits.<cores>` of ResourceQuotas (v2.10 `pkg/device/quota.go`), and `limits.<count>`
//! beside them. All quotas of a namespace apply. Other modules collect what is used.

use std::collections::BTreeMap;

use super::{facts::Facts, findings::Findings, rules, shares::Shares};
use crate::{
    device::{
        Card, CardUsage, CoreRequest, Counted, Dimension, Inventory, MemoryRequest, PodRequest, ProfileName,
        Role, ShareRequest,
    },
    dialect::{Dialect, Dialects, Unreadable, bounds::HardLimit},
    object::ResourceQuota,
};

/// The smallest limit on a resource, and the quota that sets it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limit {
    /// The ResourceQuota.
    pub quota: String,
    /// Units of the resource.
    pub units: u64,
    /// What a unit is: so many MiB, or 1 share or 1 of compute.
    pub unit: u32,
}

impl Limit {
    /// The limit in shares, MiB, or compute in percent or units.
    ///
    /// Amounts are compared in these and not in units, as the binder does and as HAMi does (v2.10 `pkg/device/quota.go`: the limit times
    /// the memory factor): the API server compares quantities exactly too, and a comparison in units would have to round what pods hold.
    fn amount(&self) -> u64 {
        self.units.saturating_mul(self.unit.max(1).into())
    }

    /// How many units so much takes up, begun ones included.
    fn units_of(&self, amount: u64) -> u64 {
        amount.div_ceil(self.unit.max(1).into())
    }

    /// How many whole units so much is.
    fn whole_units_of(&self, amount: u64) -> u64 {
        amount / u64::from(self.unit.max(1))
    }
}

/// The quotas of one namespace, and what its pods hold.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NamespaceQuota {
    /// The smallest limit, by resource.
    pub limits: BTreeMap<String, Limit>,
    /// What the namespace's pods hold, by resource: shares, MiB, or compute in percent or units.
    pub used: BTreeMap<String, u64>,
    /// The pods that hold most of it, by resource, the largest first.
    holders: BTreeMap<String, Vec<Holder>>,
}

/// How many pods a denial names.
const NAMED: usize = 3;

/// A pod that holds some of a quota.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Holder {
    pod: String,
    amount: u64,
    standing: Standing,
}

/// Whether a pod that holds some of a quota is to go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// It is not.
    Alive,
    /// It is being deleted, and holds its share until it has ended.
    Terminating,
}

impl NamespaceQuota {
    /// Adds the limits of one ResourceQuota on shares of these dialects: of several the smallest counts. What can't be read is left out
    /// and returned.
    pub fn limit(&mut self, quota: &ResourceQuota, dialects: &Dialects) -> Vec<Unreadable> {
        let (bounds, troubles) = dialects.bounds(quota);
        for HardLimit { counted: Counted { resource, unit, .. }, units, .. } in bounds {
            if self.limits.get(resource).is_none_or(|known| units < known.units) {
                let quota = quota.metadata.name.clone();
                self.limits.insert(resource.to_owned(), Limit { quota, units, unit });
            }
        }
        troubles
    }

    /// Adds what one pod holds, in shares, MiB, or compute in percent or units.
    pub fn charge(&mut self, needs: &BTreeMap<String, u64>) {
        for (resource, amount) in needs {
            let used = self.used.entry(resource.clone()).or_default();
            *used = used.saturating_add(*amount);
        }
    }

    /// Notes which pod holds so much of what is used.
    pub fn note_holder(&mut self, pod: &str, standing: Standing, needs: &BTreeMap<String, u64>) {
        for (resource, amount) in needs {
            self.add_holder((pod, standing), resource, *amount);
        }
    }

    /// Of the pods only one more than a denial names is kept, which tells that there are others.
    fn add_holder(&mut self, (pod, standing): (&str, Standing), resource: &str, amount: u64) {
        if amount == 0 {
            return;
        }
        let holders = self.holders.entry(resource.to_owned()).or_default();
        let place = holders.partition_point(|known| (known.amount, pod) > (amount, known.pod.as_str()));
        if place <= NAMED {
            holders.insert(place, Holder { pod: pod.to_owned(), amount, standing });
            holders.truncate(NAMED + 1);
        }
    }

    /// Which pods hold most of a resource, as the end of a sentence; empty where that is not known.
    fn held_by(&self, resource: &str, limit: &Limit) -> String {
        let Some(holders) = self.holders.get(resource).filter(|holders| !holders.is_empty()) else {
            return String::new();
        };
        let name = |Holder { pod, amount, standing }: &Holder| {
            let leaves = match standing {
                Standing::Alive => "",
                Standing::Terminating => ", terminating",
            };
            format!("{pod} ({}{leaves})", limit.units_of(*amount))
        };
        let named: Vec<_> = holders.iter().take(NAMED).map(name).collect();
        let others = if holders.len() > NAMED { " and others" } else { "" };
        format!("; held by {}{others}", named.join(", "))
    }

    /// Sets what its pods hold of the cards of one dialect.
    pub fn hold(&mut self, profile: &ProfileName, usage: CardUsage, dialects: &Dialects) {
        self.used.extend(amounts(profile, usage, dialects));
    }
}

/// What of cards of one dialect is in use, by resource.
pub fn amounts(profile: &ProfileName, usage: CardUsage, dialects: &Dialects) -> BTreeMap<String, u64> {
    let counted = dialects.named(profile).into_iter().flat_map(|dialect| dialect.counted());
    counted.map(|counted| (counted.resource.to_owned(), counted.dimension.of(usage))).collect()
}

/// What a pod needs at its peak of each resource, in shares, MiB, or compute in percent or units; a part of a card counts by the smallest
/// card that could serve.
pub fn needs(shares: &Shares<'_>, facts: &Facts) -> BTreeMap<String, u64> {
    let mut needs = BTreeMap::new();
    for (dialect, request) in shares.requests() {
        let memory = least(request, dialect, facts, |share| is_part(share.memory), |card| card.memory);
        let cores = least(request, dialect, facts, |share| is_part_of_units(share.cores), |card| card.cores);
        for Counted { resource, dimension, .. } in dialect.counted() {
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
pub fn judge(findings: &mut Findings, shares: &Shares<'_>, namespace: &str, facts: &Facts) {
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
    for card in nodes.flat_map(Inventory::cards) {
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
