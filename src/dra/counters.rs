//! Shared counters of pools: what is left of them, with devices that are in use and those that an attempt takes (KEP-4815).

use std::collections::BTreeMap;

use super::{
    device::{CounterName, CounterUse},
    held::HeldDevices,
    pool::VisiblePool,
};
use crate::object::Amount;

/// What is left of each counter of one pool. Below 0: more was given than there is.
#[derive(Clone, Debug)]
pub(super) struct Counters {
    left: BTreeMap<CounterName, Amount>,
}

impl Counters {
    /// What the pool publishes, without what its devices in use take, on other nodes too. A shared device takes its counters once.
    pub(super) fn of(pool: &VisiblePool<'_>, held: &HeldDevices) -> Self {
        let mut counters = Self { left: pool.counters().clone() };
        for device in pool.all_devices().filter(|device| held.is_claimed(&device.id)) {
            counters.subtract(&device.consumes);
        }
        counters
    }

    /// Takes what a device consumes; `false`, and nothing is taken, where a counter of the pool has too little.
    pub(super) fn take(&mut self, uses: &[CounterUse]) -> bool {
        self.subtract(uses);
        let enough = self.left.values().all(|left| *left >= Amount::default());
        if !enough {
            self.give_back(uses);
        }
        enough
    }

    /// Gives back what a device consumed.
    pub(super) fn give_back(&mut self, uses: &[CounterUse]) {
        self.change(uses, Amount::plus);
    }

    fn subtract(&mut self, uses: &[CounterUse]) {
        self.change(uses, Amount::minus);
    }

    fn change(&mut self, uses: &[CounterUse], change: fn(Amount, Amount) -> Amount) {
        for CounterUse { set, counter, amount } in uses {
            if let Some(left) = self.left.get_mut(&(set.clone(), counter.clone())) {
                *left = change(*left, *amount);
            }
        }
    }
}
