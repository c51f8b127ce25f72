//! A transaction over the cluster: pods are placed and evicted on trial, and all of it is undone unless it is committed.
//!
//! Undoing puts back the very node states that were there, generations included: what classes remember of them stays valid, so that
//! a trial costs only the nodes that it touched.

pub mod eviction;
pub mod extension;
pub mod gang;
pub mod held_places;
pub mod kept_nodes;
pub mod kept_room;
pub mod moves;
pub mod preemption;

use std::{collections::BTreeSet, ops::Deref, sync::Arc};

use super::{
    model::{
        name::{NodeName, Uid},
        pod::Demand,
    },
    snapshot::{Before, Snapshot, begin_trial, end_trial, release_with_claims},
    world::ledger::Charge,
};
use crate::device::CardId;

/// A transaction over the cluster. Dropping it undoes it.
#[derive(Debug)]
pub struct Plan<'a> {
    snapshot: &'a mut Snapshot,
    /// What was before each step.
    done: Vec<Before>,
}

/// A point of a plan that can be gone back to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Savepoint(usize);

impl<'a> Plan<'a> {
    /// A plan in which nothing is done yet.
    pub fn new(snapshot: &'a mut Snapshot) -> Self {
        begin_trial(snapshot);
        Self { snapshot, done: Vec::new() }
    }

    /// Charges a pod with what it would hold, in place of what it holds.
    pub fn place(&mut self, pod: &Uid, charge: impl Into<Arc<Charge>>) {
        let charge = charge.into();
        self.note(pod, Some(&charge));
        self.snapshot.charge(pod.clone(), charge);
    }

    /// Takes from a pod what it holds, and returns it.
    pub fn evict(&mut self, pod: &Uid) -> Option<Arc<Charge>> {
        self.note(pod, None);
        self.snapshot.release(pod)
    }

    /// As [`Self::evict`], for a pod that ends so that another fits: claims that only pods use which end so become free, but for those that the
    /// other uses too. They stay as they are for it.
    pub fn end(&mut self, pod: &Uid, other: &Demand) -> Option<Arc<Charge>> {
        self.end_beside(pod, &other.footprint.claims_of_devices().collect())
    }

    /// As [`Self::end`], for a pod that ends so that others fit which use these claims.
    fn end_beside(&mut self, pod: &Uid, kept: &BTreeSet<Arc<str>>) -> Option<Arc<Charge>> {
        self.note(pod, None);
        release_with_claims(self.snapshot, pod, kept)
    }

    /// As [`Self::evict`], for a pod that is decided again: nominated pods keep the cards that were chosen for them beside it. If they chose
    /// anew, they could take those that it holds, and both would take turns without end.
    pub(super) fn evict_beside_kept(&mut self, pod: &Uid) -> Option<Arc<Charge>> {
        let charge = self.evict(pod);
        if let Some(step) = self.done.last() {
            step.restore_kept_cards(self.snapshot);
        }
        charge
    }

    /// Cordons cards of a node.
    pub(super) fn cordon(&mut self, node: &NodeName, cards: &BTreeSet<CardId>) {
        let before = Before::cordoning(self.snapshot, node, cards);
        self.done.push(before);
    }

    /// Keeps no node for the pod any more.
    pub(super) fn end_nomination(&mut self, pod: &Uid) {
        self.note(pod, None);
        self.snapshot.end_nomination(pod);
    }

    /// The point that has been reached.
    pub fn mark(&self) -> Savepoint {
        Savepoint(self.done.len())
    }

    /// Undoes every step since that point.
    pub fn undo(&mut self, to: Savepoint) {
        while self.done.len() > to.0 {
            if let Some(before) = self.done.pop() {
                before.restore(self.snapshot);
            }
        }
    }

    /// Makes every step final.
    pub fn commit(mut self) {
        self.done.clear();
    }

    fn note(&mut self, pod: &Uid, to: Option<&Charge>) {
        self.done.push(Before::of(self.snapshot, pod, to));
    }
}

impl Drop for Plan<'_> {
    fn drop(&mut self) {
        self.undo(Savepoint(0));
        end_trial(self.snapshot);
    }
}

/// The cluster as the plan has it so far.
impl Deref for Plan<'_> {
    type Target = Snapshot;

    fn deref(&self) -> &Snapshot {
        self.snapshot
    }
}
