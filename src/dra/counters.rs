//! Shared counters of pools: what is left of them, with devices that are in use and those that an attempt takes (KEP-4815).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    device::{CounterName, SetUse},
    held::HeldDevices,
    pool::VisiblePool,
};
use crate::object::Amount;

/// What is left of each counter of one pool. Below 0: more was given than there is.
#[derive(Clone, Debug)]
pub(super) struct Counters {
    left: BTreeMap<CounterName, Amount>,
    /// By set, what the devices that take of it have in common: after all that are in use, and after each that the attempt has taken.
    groups: BTreeMap<Arc<str>, Vec<SharedGroups>>,
}

/// The groups that all devices have that take of one set (1.37, `DRADeviceCompatibilityGroups`).
#[derive(Clone, Debug, Eq, PartialEq)]
enum SharedGroups {
    /// None of them has a group.
    Ungrouped,
    /// These.
    Grouped(BTreeSet<Arc<str>>),
}

impl SharedGroups {
    fn of(device: &SetUse) -> Self {
        if device.groups.is_empty() { Self::Ungrouped } else { Self::Grouped(device.groups.clone()) }
    }

    /// What is common with one more device; `None`: nothing, and so the device can't take of the set beside the others.
    fn with(&self, device: &SetUse) -> Option<Self> {
        match self {
            Self::Ungrouped => device.groups.is_empty().then_some(Self::Ungrouped),
            Self::Grouped(common) => {
                let common: BTreeSet<_> = common.intersection(&device.groups).cloned().collect();
                (!common.is_empty()).then_some(Self::Grouped(common))
            }
        }
    }
}

impl Counters {
    /// What the pool publishes, without what its devices in use take, on other nodes too. A shared device takes its counters once.
    pub(super) fn of(pool: &VisiblePool<'_>, held: &HeldDevices) -> Self {
        let mut counters = Self { left: pool.counters().clone(), groups: BTreeMap::new() };
        let taking = pool.all_devices().filter(|device| !device.consumes.is_empty());
        for device in taking.filter(|device| held.is_claimed(&device.id)) {
            counters.subtract(&device.consumes);
            for taken in &device.consumes {
                let states = counters.groups.entry(taken.set.clone()).or_default();
                // Where the driver has changed the groups of devices in use, those that were first count.
                let common = states
                    .pop()
                    .map_or_else(|| SharedGroups::of(taken), |common| common.with(taken).unwrap_or(common));
                states.push(common);
            }
        }
        counters
    }

    /// The counters of which more was given than there is.
    pub(super) fn exceeded(&self) -> Vec<CounterName> {
        let beyond = self.left.iter().filter(|(_, left)| **left < Amount::default());
        beyond.map(|(name, _)| name.clone()).collect()
    }

    /// Takes what a device consumes; `false`, and nothing is taken, where a counter of the pool has too little, or where the device has no group
    /// in common with others that take of a set.
    pub(super) fn take(&mut self, uses: &[SetUse]) -> bool {
        let common: Option<Vec<SharedGroups>> = uses.iter().map(|taken| self.common_with(taken)).collect();
        let Some(common) = common else { return false };
        self.subtract(uses);
        let enough = self.left.values().all(|left| *left >= Amount::default());
        if !enough {
            self.change(uses, Amount::plus);
            return false;
        }
        for (taken, common) in uses.iter().zip(common) {
            self.groups.entry(taken.set.clone()).or_default().push(common);
        }
        true
    }

    /// Gives back what a device consumed: the last that was taken.
    pub(super) fn give_back(&mut self, uses: &[SetUse]) {
        self.change(uses, Amount::plus);
        for taken in uses {
            if let Some(states) = self.groups.get_mut(&taken.set) {
                states.pop();
            }
        }
    }

    fn common_with(&self, taken: &SetUse) -> Option<SharedGroups> {
        let common = self.groups.get(&taken.set).and_then(|states| states.last());
        common.map_or_else(|| Some(SharedGroups::of(taken)), |common| common.with(taken))
    }

    fn subtract(&mut self, uses: &[SetUse]) {
        self.change(uses, Amount::minus);
    }

    fn change(&mut self, uses: &[SetUse], change: fn(Amount, Amount) -> Amount) {
        for SetUse { set, counters, .. } in uses {
            for (counter, amount) in counters {
                if let Some(left) = self.left.get_mut(&(set.clone(), counter.clone())) {
                    *left = change(*left, *amount);
                }
            }
        }
    }
}
