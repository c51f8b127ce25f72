//! How many pods of a selector stand on each node, and in which domains the nodes are: found anew where a node has changed, kept
//! everywhere else.
//!
//! A count is a function of one node's state, so nothing has to be undone when a pod is placed on trial.

use std::{collections::HashMap, sync::Arc};

use foldhash::fast::FixedState;

use super::claim_fits::ClaimFits;
use crate::scheduling::{
    model::{
        footprint::Footprint,
        pod_selector::PodSelector,
        steps::{Allowance, COMPARE, LOOK, Steps},
    },
    world::{World, by_slot::BySlot, object::Objects, topology::Topology, weighing_terms::WeighingTerms},
};

/// Whether pods that are being deleted are counted.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Terminating {
    /// They are.
    Counted,
    /// They are not.
    Skipped,
}

/// Which pods are counted: those that match every selector.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct CountedPods {
    /// The selectors.
    pub selectors: Vec<PodSelector>,
    /// Whether pods that are being deleted are among them.
    pub terminating: Terminating,
}

impl CountedPods {
    /// How many requirements are compared with a pod.
    fn cost(&self) -> u64 {
        u64::try_from(self.selectors.iter().map(PodSelector::cost).sum::<usize>()).unwrap_or(u64::MAX)
    }

    /// Whether the pod is counted.
    pub fn matches(&self, pod: &Footprint, objects: &Objects) -> bool {
        (self.terminating == Terminating::Counted || !pod.terminating)
            && self.selectors.iter().all(|selector| selector.matches(pod, objects))
    }
}

/// The counts of one selector.
#[derive(Debug, Default)]
struct Counts {
    /// How many there are on each node.
    by_slot: BySlot<i64>,
    /// When the counts were last asked for.
    asked: u64,
    /// Of which version the labels of namespaces were.
    namespaces: u64,
}

/// The counts of every selector that was asked for lately.
#[derive(Debug, Default)]
pub struct PodCounts {
    by_selector: HashMap<CountedPods, Counts, FixedState>,
    asked: u64,
    topologies: HashMap<Arc<str>, Arc<Topology>>,
    weighing: Arc<WeighingTerms>,
    claim_fits: ClaimFits,
    /// How much one decision may take to compare claims with devices.
    claim_allowance: Allowance,
    /// The one node that is looked at for claims; `None`: every one.
    one_node: Option<OneNode>,
    /// What decisions have cost.
    steps: Steps,
    /// Nothing is counted any more after so many steps.
    limit: Option<u64>,
    /// Whether something was not counted for that.
    has_given_up: bool,
}

/// A look at the devices of one node alone.
#[derive(Clone, Copy, Debug)]
struct OneNode {
    slot: usize,
    /// How many steps it may still take.
    left: Allowance,
}

/// Selectors beyond this number are forgotten, those first that were not asked for longest.
const REMEMBERED: usize = 512;

/// Beyond this number of topology keys all of them are forgotten: few clusters have more than a handful.
const KEYS: usize = 32;

impl PodCounts {
    /// The slots of the nodes on which some of these pods stand, each with how many, in their order.
    pub fn of<'s>(
        &'s mut self,
        counted: &CountedPods,
        world: &World,
    ) -> impl Iterator<Item = (usize, i64)> + use<'s> {
        self.asked += 1;
        if !self.by_selector.contains_key(counted) {
            self.forget_oldest();
            self.by_selector.insert(counted.clone(), Counts::default());
        }
        let counts = self.by_selector.get_mut(counted).expect("it was just put there");
        counts.asked = self.asked;
        if counts.namespaces != world.objects().namespaces_version() {
            counts.namespaces = world.objects().namespaces_version();
            counts.by_slot.outdate();
        }
        let slots = world.nodes.slots();
        self.steps.add(LOOK, slots.len());
        counts.by_slot.refresh(slots, world.nodes.generations(), |state, _| {
            if self.limit.is_some_and(|limit| self.steps.count() > limit) {
                self.has_given_up = true;
                return None;
            }
            let pods = state.map_or(&[][..], |state| &state.pods);
            self.steps.add(COMPARE * counted.cost(), pods.len());
            let matching = pods.iter().filter(|pod| counted.matches(pod, world.objects())).count();
            Some(i64::try_from(matching).unwrap_or(i64::MAX))
        });
        counts.by_slot.counted()
    }

    /// Counts that compare claims with devices for so many steps in one decision at most: what is left has to be compared beside it.
    pub fn bounded(claim_allowance: Allowance) -> Self {
        Self { claim_allowance, ..Self::default() }
    }

    /// Counts that give up after so many steps.
    #[must_use]
    pub fn up_to(self, steps: u64) -> Self {
        Self { limit: Some(steps), ..self }
    }

    /// Whether pods were left uncounted: what follows from the counts is wrong then.
    pub fn has_given_up(&self) -> bool {
        self.has_given_up
    }

    /// How much one decision may take to compare claims with devices.
    pub(in crate::scheduling) fn claim_allowance(&self) -> Allowance {
        self.one_node.map_or(self.claim_allowance, |one| one.left)
    }

    /// As `look` says, with claims compared with the devices of the node in this slot alone, for as many steps as `allowance` has left; what other nodes
    /// make of them is found out later.
    pub(in crate::scheduling) fn on_one_node<T>(
        &mut self,
        slot: usize,
        allowance: &mut Allowance,
        look: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let before = self.one_node.replace(OneNode { slot, left: *allowance });
        let found = look(self);
        *allowance = self.one_node.map_or(*allowance, |one| one.left);
        self.one_node = before;
        found
    }

    /// The slot of the one node that is looked at for claims; `None`: every one is.
    pub(in crate::scheduling) fn one_slot(&self) -> Option<usize> {
        self.one_node.map(|one| one.slot)
    }

    /// What earlier decisions have left to be compared is no longer asked for.
    pub(in crate::scheduling) fn forget_unfinished(&mut self) {
        self.claim_fits.forget_unfinished();
    }

    /// Counts what a decision has taken to compare claims with devices, where so much is left.
    pub(in crate::scheduling) fn take_claim_steps(&mut self, left: Allowance) {
        let taken = self.claim_allowance().left() - left.left();
        self.steps.add(taken, 1);
        if let Some(one) = &mut self.one_node {
            one.left = left;
        }
    }

    /// What decisions have cost, to be added to.
    pub(in crate::scheduling) fn steps(&mut self) -> &mut Steps {
        &mut self.steps
    }

    /// On which nodes there are devices for claims.
    pub(in crate::scheduling) fn claim_fits(&mut self) -> &mut ClaimFits {
        &mut self.claim_fits
    }

    /// The domains of a topology key.
    pub fn topology(&mut self, key: &Arc<str>, world: &World) -> Arc<Topology> {
        if self.topologies.len() >= KEYS && !self.topologies.contains_key(key) {
            self.topologies.clear();
        }
        let known = self.topologies.remove(key).unwrap_or_else(|| Arc::new(Topology::of_key(key)));
        let topology = known.refreshed(world.nodes.slots(), world.nodes.generations());
        self.topologies.insert(key.clone(), topology.clone());
        topology
    }

    /// By which terms the pods of each node attract or repel others.
    pub(in crate::scheduling) fn weighing(&mut self, world: &World) -> Arc<WeighingTerms> {
        let known = std::mem::take(&mut self.weighing);
        self.weighing = known.refreshed(world.nodes.slots(), world.nodes.generations());
        self.weighing.clone()
    }

    fn forget_oldest(&mut self) {
        if self.by_selector.len() < REMEMBERED {
            return;
        }
        let mut asked: Vec<u64> = self.by_selector.values().map(|counts| counts.asked).collect();
        asked.sort_unstable();
        let middle = asked[asked.len() / 2];
        self.by_selector.retain(|_, counts| counts.asked > middle);
    }
}
