//! When the devices of each pool, and what is held of them, changed last.

use std::collections::{BTreeMap, BTreeSet};

use crate::dra::PoolId;

/// Versions of devices and of what claims hold of them: greater after every change.
#[derive(Clone, Debug, Default)]
pub(super) struct DeviceVersions {
    now: u64,
    /// By pool, the version at which its devices or what is held of them changed last.
    of_pools: BTreeMap<PoolId, u64>,
    /// The same, the latest change last.
    in_order: BTreeSet<(u64, PoolId)>,
    /// The version at which a pool last began or ceased to be reached by some node.
    reach: u64,
    /// The version at which a class changed last.
    classes: u64,
}

impl DeviceVersions {
    /// Something changes.
    pub(super) fn move_on(&mut self) {
        self.now += 1;
    }

    /// Drivers publish other devices: nodes may reach others.
    pub(super) fn note_published(&mut self) {
        self.now += 1;
        self.reach = self.now;
    }

    /// A class changes.
    pub(super) fn note_class(&mut self) {
        self.now += 1;
        self.classes = self.now;
    }

    /// The devices of the pool, or what is held of them, change with what was noted last.
    pub(super) fn note_pool(&mut self, pool: PoolId) {
        if let Some(before) = self.of_pools.insert(pool.clone(), self.now) {
            self.in_order.remove(&(before, pool.clone()));
        }
        self.in_order.insert((self.now, pool));
    }

    /// Greater after every change.
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// Moves whenever a class changes.
    pub(super) fn classes(&self) -> u64 {
        self.classes
    }

    /// Moves whenever one of these pools, or which pools nodes reach, may have changed.
    pub(super) fn of<'a>(&self, pools: impl Iterator<Item = &'a PoolId>) -> u64 {
        pools.filter_map(|pool| self.of_pools.get(pool)).copied().fold(self.reach, u64::max)
    }

    /// The pools that have changed since this version; `None`: nodes may reach others than then.
    pub(super) fn since(&self, version: u64) -> Option<impl Iterator<Item = &PoolId>> {
        let first = (version + 1, PoolId::default());
        (self.reach <= version).then(|| self.in_order.range(first..).map(|(_, pool)| pool))
    }
}
