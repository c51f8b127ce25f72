//! Whether moves come out as they were found: one after the other, with the cards cordoned that are to become free, each pod decided on the
//! cluster as it is then.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    MovablePods, MoveGoal, NodeCard, PodMove,
    candidates::free,
    found::{MoveGroup, StagedMove},
    trial::{self, MoveTrial},
};
use crate::scheduling::{
    decide::class::Classes,
    model::{
        name::{NodeName, Uid},
        node::NodeInfo,
        pod::Demand,
    },
    snapshot::Snapshot,
    world::{World, ledger::Charge},
};

/// Moves of which each has been proven.
#[derive(Debug)]
pub(super) struct Proven {
    pub(super) moves: Vec<PodMove>,
    pub(super) freed: BTreeSet<NodeCard>,
    pub(super) won: usize,
    pub(super) after: World,
}

/// A move that has been made on trial, and what the pod held before.
struct Done {
    uid: Uid,
    held: Arc<Charge>,
}

impl Proven {
    /// No moves at all.
    pub(super) fn nothing(snapshot: &Snapshot) -> Self {
        Self { moves: Vec::new(), freed: BTreeSet::new(), won: 0, after: snapshot.world().clone() }
    }
}

/// The moves with their places.
///
/// # Errors
///
/// The places of the groups of which a pod finds no place, or which win no card.
pub(super) fn prove(
    snapshot: &mut Snapshot,
    classes: &mut Classes,
    (pods, goal): (&MovablePods, &MoveGoal),
    groups: &[MoveGroup],
) -> Result<Proven, BTreeSet<usize>> {
    let free = free(snapshot, goal);
    let freed: BTreeSet<NodeCard> = groups.iter().flat_map(|group| group.cards.iter().cloned()).collect();
    let before = cordon(snapshot, &freed);
    let (failed, moves, taken, after) = {
        let mut proof = Proof {
            trial: MoveTrial::new(snapshot, classes, pods, goal),
            free,
            done: Vec::new(),
            moves: Vec::new(),
            taken: 0,
        };
        let failed: BTreeSet<usize> = groups
            .iter()
            .enumerate()
            .filter_map(|(at, group)| proof.group(group).is_none().then_some(at))
            .collect();
        let after = proof.trial.snapshot().world().clone();
        (failed, proof.moves, proof.taken, after)
    };
    for node in before {
        snapshot.set_node(node);
    }
    if !failed.is_empty() {
        return Err(failed);
    }
    Ok(Proven { moves, won: freed.len().saturating_sub(taken), freed, after })
}

/// Cordons these cards; returns their nodes as they were.
fn cordon(snapshot: &mut Snapshot, cards: &BTreeSet<NodeCard>) -> Vec<NodeInfo> {
    let mut before = Vec::new();
    for (node, cards) in NodeCard::by_node(cards) {
        let Some(state) = snapshot.node(&node) else { continue };
        let info = NodeInfo::clone(&state.info);
        let mut cordoned = info.clone();
        cordoned.devices.cordon(&cards);
        snapshot.set_node(cordoned);
        before.push(info);
    }
    before
}

/// A proof under way.
struct Proof<'a> {
    trial: MoveTrial<'a>,
    /// The cards that were free and count.
    free: BTreeSet<NodeCard>,
    done: Vec<Done>,
    moves: Vec<PodMove>,
    /// How many of those are in use since.
    taken: usize,
}

impl Proof<'_> {
    /// Makes the moves of a group; `None`: one finds no place, or no card is won, and nothing is moved.
    fn group(&mut self, group: &MoveGroup) -> Option<()> {
        let (begin, done) = (self.trial.mark(), self.done.len());
        let made = self.make_all(group);
        if made.is_none() {
            self.trial.undo(begin);
            self.done.truncate(done);
            self.moves.truncate(done);
        }
        made
    }

    fn make_all(&mut self, group: &MoveGroup) -> Option<()> {
        for staged in &group.moves {
            self.make(staged)?;
        }
        let is_free = |one: &NodeCard| self.trial.are_free(&one.node, [&one.card].into_iter());
        let taken = self.free.iter().filter(|card| !is_free(card)).count();
        let wins = group.cards.iter().all(is_free) && taken - self.taken < group.cards.len();
        if wins {
            self.taken = taken;
        }
        wins.then_some(())
    }

    fn make(&mut self, StagedMove { uid, closed }: &StagedMove) -> Option<()> {
        let pod = self.trial.pods.movable.get(uid)?;
        let held = self.trial.evict(uid)?;
        let (closed, decision) = self.trial.find(&pod.demand, closed)?;
        let after = self.needed(&pod.demand, &decision.node);
        let key = |uid: &Uid| Some(self.trial.pods.movable.get(uid)?.info.key.clone());
        self.moves.push(PodMove {
            pod: pod.info.key.clone(),
            from: held.node.clone(),
            to: decision.node.clone(),
            cards: trial::cards(&decision).cloned().collect(),
            after: after.iter().filter_map(key).collect(),
            closed,
        });
        self.trial.place(uid, decision);
        self.done.push(Done { uid: uid.clone(), held });
        Some(())
    }

    /// The moves from this node without which the pod would find no room there.
    fn needed(&mut self, demand: &Demand, node: &NodeName) -> Vec<Uid> {
        let from: Vec<&Done> = self.done.iter().filter(|done| done.held.node == *node).collect();
        if from.is_empty() {
            return Vec::new();
        }
        let begin = self.trial.mark();
        for done in &from {
            self.trial.restore(&done.uid, done.held.clone());
        }
        let fits = self.trial.fits(demand, node);
        self.trial.undo(begin);
        if fits { Vec::new() } else { from.iter().map(|done| done.uid.clone()).collect() }
    }
}
