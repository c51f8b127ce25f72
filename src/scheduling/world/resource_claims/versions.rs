//! When the devices of each pool, what is held of them, and which nodes reach them changed last.

use std::{borrow::Borrow, collections::BTreeSet, sync::Arc};

use crate::{
    dra::PoolId,
    persistent::{PersistentMap, PersistentSet},
};

/// Versions of devices and of what claims hold of them: greater after every change.
#[derive(Clone, Debug, Default)]
pub(super) struct DeviceVersions {
    now: u64,
    /// When the devices of each pool or what is held of them changed last.
    pools: LastChanges<PoolId>,
    /// When each node last began or ceased to reach a pool that names its nodes.
    nodes: LastChanges<Arc<str>>,
    /// The version at which nodes last ceased to reach a pool that may be reached by any.
    reach: u64,
    /// The version at which a class changed last.
    classes: u64,
}

/// The version at which each of some things changed last.
#[derive(Clone, Debug, Default)]
struct LastChanges<K: Ord> {
    of: PersistentMap<K, u64>,
    /// The same, the latest change last.
    in_order: PersistentSet<(u64, K)>,
}

impl<K: Clone + Default + Ord> LastChanges<K> {
    fn note(&mut self, key: K, version: u64) {
        if let Some(before) = self.of.get(&key) {
            self.in_order.remove_mut(&(*before, key.clone()));
        }
        self.of.insert_mut(key.clone(), version);
        self.in_order.insert_mut((version, key));
    }

    fn of<Q: Ord + ?Sized>(&self, key: &Q) -> Option<u64>
    where
        K: Borrow<Q>,
    {
        self.of.get(key).copied()
    }

    /// What has changed since this version.
    fn since(&self, version: u64) -> impl Iterator<Item = &K> {
        self.in_order.range((version + 1, K::default())..).map(|(_, key)| key)
    }
}

impl DeviceVersions {
    /// Something changes.
    pub(super) fn move_on(&mut self) {
        self.now += 1;
    }

    /// With what was noted last, a pool may be reached from other nodes than before; `None`: it may be any node.
    pub(super) fn note_reach(&mut self, before: Option<BTreeSet<Arc<str>>>, now: Option<BTreeSet<Arc<str>>>) {
        match (before, now) {
            (Some(before), Some(now)) => {
                before.symmetric_difference(&now).for_each(|node| self.nodes.note(node.clone(), self.now));
            }
            (None, Some(_)) => self.reach = self.now,
            // From now on, a change of the pool may be one of any node.
            (_, None) => {}
        }
    }

    /// A class changes.
    pub(super) fn note_class(&mut self) {
        self.now += 1;
        self.classes = self.now;
    }

    /// The devices of the pool, or what is held of them, change with what was noted last.
    pub(super) fn note_pool(&mut self, pool: PoolId) {
        self.pools.note(pool, self.now);
    }

    /// Greater after every change.
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// Moves whenever a class changes.
    pub(super) fn classes(&self) -> u64 {
        self.classes
    }

    /// Moves whenever one of these pools, which the node reaches, or which pools it reaches may have changed.
    pub(super) fn of<'a>(&self, node: &str, pools: impl Iterator<Item = &'a PoolId>) -> u64 {
        let changes = pools.filter_map(|pool| self.pools.of(pool)).chain(self.nodes.of(node));
        changes.fold(self.reach, u64::max)
    }

    /// The pools that have changed since this version, and the nodes that reach others of those that name their nodes; `None`: any node may reach others.
    pub(super) fn since(
        &self,
        version: u64,
    ) -> Option<(impl Iterator<Item = &PoolId>, impl Iterator<Item = &Arc<str>>)> {
        (self.reach <= version).then(|| (self.pools.since(version), self.nodes.since(version)))
    }
}
