//! Which pods to move so that whole cards become free: each is evicted on trial, and the pod that its controller creates in its place is
//! decided as any pod is, so that a place is proven before it is shown.
//!
//! The cards that are to become free, and those that a pod must not be given, are closed meanwhile: `berth moves --apply` cordons them. Nothing is
//! known here of how a pod is evicted, or of when.

mod candidates;
mod deepening;
mod found;
mod proof;
mod search;
#[cfg(test)]
mod tests;
mod trial;
mod unmovable;

use std::collections::{BTreeMap, BTreeSet};

use crate::device::{CardId, ModelFilter};
use crate::scheduling::{
    decide::class::Classes,
    model::{
        name::{NodeName, Uid},
        pod::{Demand, PodInfo, PodKey},
        steps::PER_MILLISECOND,
        tdm::job::Readiness,
    },
    snapshot::Snapshot,
    world::{World, node_state::NodeState},
};

use candidates::Candidates;
use found::MoveGroup;
use proof::Proven;
use search::MoveSearch;
use trial::MoveTrial;
pub use unmovable::Unmovable;

/// Without a number of cards that are to become free, one pays for which at most so many pods are moved.
pub const PODS_PER_GPU: usize = 2;

/// So often a plan is made anew of which a place could not be proven, and so often moves are left out that can't.
const ROUNDS: usize = 4;

/// So many steps a plan takes at most, beside what proving it takes.
const STEPS: u64 = 350 * PER_MILLISECOND;

/// A pod that may be moved.
#[derive(Clone, Debug)]
pub struct MovablePod {
    /// The pod.
    pub info: PodInfo,
    /// What the pod asks for that its controller creates in its place.
    pub demand: Demand,
    /// Whether it is ready.
    pub readiness: Readiness,
}

/// The pods that hold cards.
#[derive(Clone, Debug, Default)]
pub struct MovablePods {
    /// Those that may be moved.
    pub movable: BTreeMap<Uid, MovablePod>,
    /// The others, and why not.
    pub unmovable: BTreeMap<Uid, Unmovable>,
}

/// Which cards are to become free.
#[derive(Clone, Debug, Default)]
pub struct MoveGoal {
    /// How many; `None`: as many as pay.
    pub free: Option<usize>,
    /// Cards of which models.
    pub models: ModelFilter,
    /// Cards of which node. Pods may then take other cards that are free; else what they take does not count as won.
    pub node: Option<NodeName>,
}

/// A card of a node.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct NodeCard {
    /// The node.
    pub node: NodeName,
    /// The card.
    pub card: CardId,
}

/// A pod that is to be moved.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PodMove {
    /// The pod.
    pub pod: PodKey,
    /// Its node.
    pub from: NodeName,
    /// The node that its successor would be given.
    pub to: NodeName,
    /// The cards that its successor would be given.
    pub cards: BTreeSet<CardId>,
    /// The moves without which its successor would find no room there.
    pub after: Vec<PodKey>,
    /// Cards that must be closed while this pod is moved, beside those that are to become free.
    pub closed: BTreeSet<NodeCard>,
}

/// Moves in their order, and what they win.
#[derive(Clone, Debug)]
pub struct MovePlan {
    /// The moves. One is begun when the successor of the one before stands.
    pub moves: Vec<PodMove>,
    /// The cards that become free.
    pub freed: BTreeSet<NodeCard>,
    /// How many more cards are free than before: pods may take some that were.
    pub won: usize,
    /// How many pods hold cards that were to become free and are not moved, by reason.
    pub kept: BTreeMap<Unmovable, usize>,
    /// Whether the search ended before everything was tried.
    pub is_cut_short: bool,
    /// The cluster with all moves done.
    pub after: World,
}

impl NodeCard {
    /// These cards by node.
    pub fn by_node(cards: &BTreeSet<Self>) -> BTreeMap<NodeName, BTreeSet<CardId>> {
        let mut found: BTreeMap<NodeName, BTreeSet<CardId>> = BTreeMap::new();
        for one in cards {
            found.entry(one.node.clone()).or_default().insert(one.card.clone());
        }
        found
    }
}

impl MoveGoal {
    /// The cards of a node that count: those that work and are of the models. On a cordoned node, a free card is of no use to new pods.
    fn counted<'a>(&'a self, state: &'a NodeState) -> impl Iterator<Item = &'a CardId> {
        let counts = match &self.node {
            Some(node) => *node == state.info.name,
            None => !state.info.cordoned,
        };
        let cards = state.info.devices.cards.iter().map(|counted| &counted.id);
        cards.filter(move |id| counts && self.admits(state, id))
    }

    fn admits(&self, state: &NodeState, id: &CardId) -> bool {
        state.info.devices.cards_named(id).next().is_some_and(|(_, card)| self.models.admits(&card.model))
    }

    /// Whether enough is won.
    fn is_met(&self, won: usize) -> bool {
        self.free.is_some_and(|free| won >= free)
    }
}

/// The moves that reach the goal with the fewest and cheapest pods; where it can't be reached, those that come closest. The cluster is as it was
/// afterwards.
pub fn plan(snapshot: &mut Snapshot, classes: &mut Classes, pods: &MovablePods, goal: &MoveGoal) -> MovePlan {
    let candidates = Candidates::of(snapshot, pods, goal);
    let mut banned = BTreeSet::new();
    let mut round = 0;
    let (proven, is_cut_short) = loop {
        round += 1;
        let mut trial = MoveTrial::new(snapshot, classes, pods, goal);
        let found = MoveSearch::new(&candidates, &banned).run(&mut trial);
        drop(trial);
        let (proven, unproven) = prove_most(snapshot, classes, (pods, goal), found.groups);
        let falls_short = goal.free.is_some() && !goal.is_met(proven.won);
        if round == ROUNDS || unproven.is_empty() || !falls_short {
            break (proven, found.is_cut_short);
        }
        banned.extend(unproven);
    };
    let Proven { moves, freed, won, after } = proven;
    MovePlan { moves, freed, won, kept: candidates.kept, is_cut_short, after }
}

/// As many of these groups of moves as can be proven together, and the pods of the others.
fn prove_most(
    snapshot: &mut Snapshot,
    classes: &mut Classes,
    (pods, goal): (&MovablePods, &MoveGoal),
    mut groups: Vec<MoveGroup>,
) -> (Proven, BTreeSet<Uid>) {
    let mut unproven = BTreeSet::new();
    for _ in 0..ROUNDS {
        match proof::prove(snapshot, classes, (pods, goal), &groups) {
            Ok(proven) => return (proven, unproven),
            Err(failed) => {
                for at in failed.into_iter().rev() {
                    unproven.extend(groups.remove(at).pods());
                }
            }
        }
    }
    (Proven::nothing(snapshot), unproven)
}
