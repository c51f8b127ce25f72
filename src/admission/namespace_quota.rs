//! The quotas of a namespace on shares: the smallest limits, and what its pods hold.
//!
//! Keys are HAMi's: `limits.<memory>` and `limits.<cores>` of ResourceQuotas (v2.10 `pkg/device/quota.go`), and `limits.<count>`
//! beside them. All quotas of a namespace apply. Other modules collect what is used.

use std::collections::BTreeMap;

use crate::{
    device::{CardUsage, CountedAmount, ProfileName},
    dialect::{Dialects, Unreadable, bounds::HardLimit},
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
    pub(super) fn amount(&self) -> u64 {
        self.units.saturating_mul(self.unit.max(1).into())
    }

    /// How many units so much takes up, begun ones included.
    pub(super) fn units_of(&self, amount: u64) -> u64 {
        amount.div_ceil(self.unit.max(1).into())
    }

    /// How many whole units so much is.
    pub(super) fn whole_units_of(&self, amount: u64) -> u64 {
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
    standing: HolderStanding,
}

/// Whether a pod that holds some of a quota is to go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HolderStanding {
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
        for HardLimit { counted: CountedAmount { resource, unit, .. }, units, .. } in bounds {
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
    pub fn note_holder(&mut self, pod: &str, standing: HolderStanding, needs: &BTreeMap<String, u64>) {
        for (resource, amount) in needs {
            self.add_holder((pod, standing), resource, *amount);
        }
    }

    /// Of the pods only one more than a denial names is kept, which tells that there are others.
    fn add_holder(&mut self, (pod, standing): (&str, HolderStanding), resource: &str, amount: u64) {
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
    pub(super) fn held_by(&self, resource: &str, limit: &Limit) -> String {
        let Some(holders) = self.holders.get(resource).filter(|holders| !holders.is_empty()) else {
            return String::new();
        };
        let name = |Holder { pod, amount, standing }: &Holder| {
            let leaves = match standing {
                HolderStanding::Alive => "",
                HolderStanding::Terminating => ", terminating",
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
