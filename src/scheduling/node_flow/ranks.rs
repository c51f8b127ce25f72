//! Which nodes come after others because pods would wait there.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::surge::Surge;
use crate::scheduling::model::{name::NodeName, node::FULL_LINE};

/// A node that is held up comes after every other, however long their lines are.
const HELD_UP: usize = usize::MAX / 2;

/// In a surge, pods are spread over so many nodes.
const SPREAD: usize = 4;

/// Who waits at a node.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Occupancy {
    /// How many pods wait or are served.
    pub(super) length: usize,
    /// Whether the node serves none and is not known to begin soon.
    pub(super) held_up: bool,
}

impl Occupancy {
    /// How many pods the node serves, one after the other.
    fn served(self) -> usize {
        if self.held_up { 0 } else { self.length }
    }

    /// Where the node stands among those that fit: 0, unless its line has reached the limit or it is held up; then the longer the line, the later.
    fn rank(self, limit: usize) -> usize {
        let held_up = if self.held_up { HELD_UP } else { 0 };
        held_up + if self.length < limit { 0 } else { self.length }
    }
}

/// Where nodes stand among those that fit.
#[derive(Debug)]
pub(super) struct NodeRanks {
    /// The nodes at which pods wait, and those that are held up.
    occupied: BTreeMap<NodeName, Occupancy>,
    /// The nodes that come after others, with their ranks.
    passed_over: BTreeMap<NodeName, usize>,
    /// How many pods nodes serve that are not held up.
    served: usize,
    surge: Surge,
    /// A node with so many pods in line is passed over for the next best.
    limit: usize,
    /// Grows whenever `passed_over` changes.
    changes: u64,
}

impl Default for NodeRanks {
    fn default() -> Self {
        Self {
            occupied: BTreeMap::new(),
            passed_over: BTreeMap::new(),
            served: 0,
            surge: Surge::default(),
            limit: FULL_LINE,
            changes: 0,
        }
    }
}

impl NodeRanks {
    /// So many pods wait at a node from now on.
    pub(super) fn set(&mut self, node: &NodeName, occupancy: Occupancy, now: Timestamp) {
        let before = if occupancy == Occupancy::default() {
            self.occupied.remove(node)
        } else {
            self.occupied.insert(node.clone(), occupancy)
        };
        self.served = self.served + occupancy.served() - before.unwrap_or_default().served();
        self.set_rank(node, occupancy.rank(self.limit));
        self.watch(now);
    }

    /// Finds out anew how many pods may wait at a node before others are taken.
    pub(super) fn watch(&mut self, now: Timestamp) {
        let is_surge = self.surge.watch(self.served, now);
        let limit = if is_surge { FULL_LINE.min(self.served / SPREAD + 1) } else { FULL_LINE };
        if std::mem::replace(&mut self.limit, limit) != limit {
            let rank = |(node, occupancy): (&NodeName, &Occupancy)| (node.clone(), occupancy.rank(limit));
            for (node, rank) in self.occupied.iter().map(rank).collect::<Vec<_>>() {
                self.set_rank(&node, rank);
            }
        }
    }

    /// When ranks are others although no pod comes or goes.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.surge.deadline()
    }

    fn set_rank(&mut self, node: &NodeName, rank: usize) {
        if self.rank(node) != rank {
            self.changes += 1;
            if rank == 0 {
                self.passed_over.remove(node);
            } else {
                self.passed_over.insert(node.clone(), rank);
            }
        }
    }

    /// Where a node stands among those that fit: 0, unless it is passed over for others; then the length of its line, and more than any line has where it is
    /// held up.
    pub(super) fn rank(&self, node: &str) -> usize {
        self.passed_over.get(node).copied().unwrap_or_default()
    }

    /// The nodes that are passed over for others, with their ranks.
    pub(super) fn passed_over(&self) -> &BTreeMap<NodeName, usize> {
        &self.passed_over
    }

    /// Grows whenever a node is passed over or no longer is.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// Whether the node serves no pod and is not known to begin soon.
    pub(super) fn is_held_up(&self, node: &str) -> bool {
        self.occupied.get(node).is_some_and(|occupancy| occupancy.held_up)
    }

    /// The nodes of which that is so.
    pub(super) fn held_up(&self) -> impl Iterator<Item = &NodeName> {
        self.passed_over.iter().filter(|(_, rank)| **rank >= HELD_UP).map(|(node, _)| node)
    }
}
