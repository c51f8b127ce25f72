//! Quotas of namespaces: which bounds there are, what the ledger says is used of them, and what is left for one more pod.
//!
//! What is used is a fold over charges, pods that are being bound included. It evicts no pod: where a bound shrinks below what is used,
//! nothing is left.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use smallvec::SmallVec;

use super::ledger::{Held, Ledger, Used};
use crate::{
    device::{CardUsage, Dimension, ProfileName, Quota},
    scheduling::model::pod::Demand,
};

/// A bound that a ResourceQuota sets on shares of one dialect's cards.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Bound {
    /// Whose cards.
    pub profile: ProfileName,
    /// Which amount.
    pub dimension: Dimension,
    /// The key under which the ResourceQuota has it.
    pub key: Arc<str>,
    /// How many units.
    pub hard: u64,
    /// What a unit is, in what the dimension counts.
    pub unit: u32,
}

impl Bound {
    /// What is left of it, in what the dimension counts.
    fn left(&self, used: CardUsage) -> u64 {
        self.hard.saturating_mul(self.unit.max(1).into()).saturating_sub(self.dimension.of(used))
    }

    fn units(&self, usage: CardUsage) -> u64 {
        self.dimension.of(usage).div_ceil(self.unit.max(1).into())
    }
}

/// How a ResourceQuota is named.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct QuotaKey {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

/// A ResourceQuota, as far as it bounds shares of cards.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct QuotaInfo {
    /// Its names.
    pub key: QuotaKey,
    /// Its bounds; none: it bounds no shares.
    pub bounds: Vec<Bound>,
}

/// Every quota, and what is used of it.
#[derive(Clone, Debug, Default)]
pub struct Quotas {
    /// Those that bound something, by namespace and name.
    bounds: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Vec<Bound>>>,
    used: Used,
    version: u64,
}

impl Quotas {
    /// Takes in a quota, new or changed.
    pub(in crate::scheduling) fn set(&mut self, quota: QuotaInfo, ledger: &mut Ledger) {
        let QuotaKey { namespace, name } = quota.key.clone();
        if quota.bounds.is_empty() {
            return self.remove(&quota.key);
        }
        let quotas = self.bounds.entry(namespace.clone()).or_default();
        if quotas.get(&name) != Some(&quota.bounds) {
            quotas.insert(name, quota.bounds);
            self.version += 1;
        }
        self.refold([&namespace], ledger);
    }

    /// Every quota that bounds something, by namespace and name.
    pub(in crate::scheduling) fn infos(&self) -> impl Iterator<Item = QuotaInfo> {
        self.bounds.iter().flat_map(|(namespace, quotas)| {
            quotas.iter().map(|(name, bounds)| {
                let key = QuotaKey { namespace: namespace.clone(), name: name.clone() };
                QuotaInfo { key, bounds: bounds.clone() }
            })
        })
    }

    /// Whether a quota bounds the pods of this namespace.
    pub(in crate::scheduling) fn bound(&self, namespace: &str) -> bool {
        self.bounds.contains_key(namespace)
    }

    /// Takes a quota out.
    pub(in crate::scheduling) fn remove(&mut self, key: &QuotaKey) {
        let Some(quotas) = self.bounds.get_mut(&key.namespace) else { return };
        if quotas.remove(&key.name).is_some() {
            self.version += 1;
        }
        if quotas.is_empty() {
            self.bounds.remove(&key.namespace);
            self.used.remove(&key.namespace);
        }
    }

    /// Folds anew what the pods of these namespaces hold, where that matters.
    pub(in crate::scheduling) fn refold<'a>(
        &mut self,
        namespaces: impl IntoIterator<Item = &'a Arc<str>>,
        ledger: &mut Ledger,
    ) {
        for namespace in namespaces {
            if !self.bounds.contains_key(namespace) {
                continue;
            }
            let held = ledger.held_in(namespace);
            if self.used.get(namespace) != Some(&held) {
                self.used.insert(namespace.clone(), held);
                self.version += 1;
            }
        }
    }

    /// Puts back what the pods of a namespace held.
    pub(in crate::scheduling) fn restore(&mut self, namespace: &Arc<str>, held: Option<Held>) {
        if self.used.get(namespace) == held.as_ref() {
            return;
        }
        match held {
            Some(held) => drop(self.used.insert(namespace.clone(), held)),
            None => drop(self.used.remove(namespace)),
        }
        self.version += 1;
    }

    /// Every quota's name.
    pub(in crate::scheduling) fn keys(&self) -> BTreeSet<QuotaKey> {
        let of = |(namespace, quotas): (&Arc<str>, &BTreeMap<Arc<str>, Vec<Bound>>)| {
            let namespace = namespace.clone();
            let key = move |name: &Arc<str>| QuotaKey { namespace: namespace.clone(), name: name.clone() };
            quotas.keys().map(key).collect::<Vec<_>>()
        };
        self.bounds.iter().flat_map(of).collect()
    }

    /// What the pods of each namespace with a quota hold.
    pub fn used(&self) -> &Used {
        &self.used
    }

    /// Greater after every change of a bound or of what is used.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What a pod of this namespace may still take of this dialect's cards.
    pub fn left(&self, namespace: &str, profile: &ProfileName) -> Quota {
        self.left_beside(namespace, profile, CardUsage::default())
    }

    /// As [`Self::left`], with so much kept for other pods.
    fn left_beside(&self, namespace: &str, profile: &ProfileName, kept: CardUsage) -> Quota {
        let used = self.used_of(namespace, profile).and(kept);
        self.bounds_of(namespace, profile)
            .fold(Quota::default(), |quota, (_, bound)| quota.bounded(bound.dimension, bound.left(used)))
    }

    /// What the namespace of a pod may still take, one for each of its requests of cards, where so much is kept for other pods.
    pub fn left_for(&self, demand: &Demand, kept: &Held) -> SmallVec<[Quota; 1]> {
        let left = |profile| {
            let kept = kept.get(profile).copied().unwrap_or_default();
            self.left_beside(&demand.footprint.namespace, profile, kept)
        };
        demand.ask.profiles().map(left).collect()
    }

    /// The first quota that so much more would exceed, by name.
    pub fn exceeded(&self, namespace: &str, profile: &ProfileName, more: CardUsage) -> Option<Exceeded> {
        self.exceeded_beside(namespace, profile, more, CardUsage::default())
    }

    /// As [`Self::exceeded`], for what the pod takes at least, with so much kept for other pods.
    pub(in crate::scheduling) fn exceeded_by(&self, demand: &Demand, kept: &Held) -> Option<Exceeded> {
        demand.ask.devices.iter().find_map(|device| {
            let profile = &device.profile.name;
            let kept = kept.get(profile).copied().unwrap_or_default();
            self.exceeded_beside(&demand.footprint.namespace, profile, device.request.least(), kept)
        })
    }

    /// As [`Self::exceeded`], with so much kept for other pods, which counts as used.
    pub(super) fn exceeded_beside(
        &self,
        namespace: &str,
        profile: &ProfileName,
        more: CardUsage,
        kept: CardUsage,
    ) -> Option<Exceeded> {
        let used = self.used_of(namespace, profile).and(kept);
        let is_over = |bound: &Bound| {
            let more = bound.dimension.of(more);
            more > 0 && more > bound.left(used)
        };
        let (first, _) = self.bounds_of(namespace, profile).find(|(_, bound)| is_over(bound))?;
        let over =
            self.bounds_of(namespace, profile).filter(|(name, bound)| *name == first && is_over(bound));
        let row = |bound: &Bound| QuotaRow {
            key: bound.key.clone(),
            requested: bound.units(more),
            used: bound.units(used),
            limited: bound.hard,
        };
        Some(Exceeded { quota: first.clone(), rows: over.map(|(_, bound)| row(bound)).collect() })
    }

    /// Every quota of the namespace on these dialects as it stands, for a pod whose need depends on the cards that it would get.
    pub fn standing<'a>(
        &'a self,
        namespace: &str,
        profiles: impl Iterator<Item = &'a ProfileName>,
    ) -> QuotaStanding {
        let rows = profiles.flat_map(|profile| {
            let used = self.used_of(namespace, profile);
            self.bounds_of(namespace, profile).map(move |(name, bound)| {
                let (key, limited) = (bound.key.clone(), bound.hard);
                (name.clone(), QuotaRow { key, requested: 0, used: bound.units(used), limited })
            })
        });
        QuotaStanding(rows.collect())
    }

    /// Every bound with what is used of it, by namespace and quota.
    pub fn standings(&self) -> impl Iterator<Item = BoundStanding<'_>> {
        let bounds = self.bounds.iter().flat_map(|(namespace, quotas)| {
            quotas
                .iter()
                .flat_map(move |(quota, bounds)| bounds.iter().map(move |bound| (namespace, quota, bound)))
        });
        bounds.map(|(namespace, quota, bound)| BoundStanding {
            namespace,
            quota,
            profile: &bound.profile,
            dimension: bound.dimension,
            key: &bound.key,
            limit: bound.hard,
            used: bound.units(self.used_of(namespace, &bound.profile)),
        })
    }

    fn used_of(&self, namespace: &str, profile: &ProfileName) -> CardUsage {
        self.used.get(namespace).and_then(|held| held.get(profile)).copied().unwrap_or_default()
    }

    fn bounds_of<'a>(
        &'a self,
        namespace: &str,
        profile: &'a ProfileName,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Bound)> {
        let quotas = self.bounds.get(namespace).into_iter().flatten();
        quotas
            .flat_map(|(name, bounds)| bounds.iter().map(move |bound| (name, bound)))
            .filter(move |(_, bound)| bound.profile == *profile)
    }
}

/// One bound of a quota, and what is used of it.
#[derive(Clone, Copy, Debug)]
pub struct BoundStanding<'a> {
    /// The quota's namespace.
    pub namespace: &'a str,
    /// The quota's name.
    pub quota: &'a str,
    /// Whose cards it bounds.
    pub profile: &'a ProfileName,
    /// Which amount.
    pub dimension: Dimension,
    /// The key under which the ResourceQuota has it.
    pub key: &'a str,
    /// How many units are allowed.
    pub limit: u64,
    /// How many units are used; a part of a unit counts as a whole one.
    pub used: u64,
}

/// A quota that a pod would exceed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Exceeded {
    quota: Arc<str>,
    rows: Vec<QuotaRow>,
}

/// How much of each quota of a namespace is used: `team: requests.nvidia.com/gpumem=4000 of 8000 used`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct QuotaStanding(Vec<(Arc<str>, QuotaRow)>);

impl fmt::Display for QuotaStanding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, row)) in self.0.iter().enumerate() {
            let before = if at == 0 { "" } else { ", " };
            write!(formatter, "{before}{name}: {}={} of {} used", row.key, row.used, row.limited)?;
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct QuotaRow {
    key: Arc<str>,
    requested: u64,
    used: u64,
    limited: u64,
}

impl Exceeded {
    /// Whether both are of one quota, whatever is requested and used of it.
    pub fn is_of_quota_of(&self, other: &Self) -> bool {
        self.quota == other.quota
    }
}

/// The API server's own words (`k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go`).
impl fmt::Display for Exceeded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |amount: fn(&QuotaRow) -> u64| {
            let rows = self.rows.iter().map(|row| format!("{}={}", row.key, amount(row)));
            rows.collect::<Vec<_>>().join(",")
        };
        write!(
            formatter,
            "exceeded quota: {}, requested: {}, used: {}, limited: {}",
            self.quota,
            list(|row| row.requested),
            list(|row| row.used),
            list(|row| row.limited)
        )
    }
}
