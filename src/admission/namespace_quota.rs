//! The quotas of a namespace on shares: the smallest limits, and what its pods hold.
//!
//! Keys are HAMi's: `limits.<memory>` and `limits.<cores>` of ResourceQuotas (v2.10 `pkg/device/quota.go`), and `limits.<count>`
//! beside them. All quotas of a namespace apply. Other modules collect what is used.

use std::collections::BTreeMap;

use crate::{
    device::{CardUsage, Counted, ProfileName},
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

    /// Sets what its pods hold of the cards of one dialect.
    pub fn hold(&mut self, profile: &ProfileName, usage: CardUsage, dialects: &Dialects) {
        for counted in dialects.named(profile).into_iter().flat_map(|dialect| dialect.counted()) {
            self.used.insert(counted.resource.to_owned(), counted.dimension.of(usage));
        }
    }
}
