//! Which cards to empty, and in which order their pods move: the cheapest cards first, and for a small number of pods whether fewer would do.

use std::collections::BTreeSet;

use super::{
    MoveGoal, NodeCard, PODS_PER_GPU, STEPS,
    candidates::{Candidate, Candidates},
    deepening::Deepening,
    found::{Found, MoveGroup, StagedMove},
    trial::MoveTrial,
};
use crate::scheduling::model::name::Uid;

/// A search under way.
pub(super) struct MoveSearch<'a> {
    candidates: &'a Candidates,
    banned: &'a BTreeSet<Uid>,
    moved: BTreeSet<Uid>,
    found: Found,
}

impl Candidate {
    /// The cards that become free.
    pub(super) fn freed(&self) -> BTreeSet<NodeCard> {
        let card = |card: &crate::device::CardId| NodeCard { node: self.node.clone(), card: card.clone() };
        self.cards.iter().map(card).collect()
    }
}

impl<'a> MoveSearch<'a> {
    /// A search among these. Candidates with pods that are banned are left out.
    pub(super) fn new(candidates: &'a Candidates, banned: &'a BTreeSet<Uid>) -> Self {
        Self { candidates, banned, moved: BTreeSet::new(), found: Found::default() }
    }

    /// What is found, with nothing moved afterwards.
    pub(super) fn run(mut self, trial: &mut MoveTrial<'_>) -> Found {
        let begin = trial.mark();
        for candidate in &self.candidates.all {
            if trial.goal.is_met(self.found.won) {
                break;
            }
            if trial.steps() > STEPS {
                self.found.is_cut_short = true;
                break;
            }
            if pays(candidate, trial.goal) && self.may_go(candidate) {
                self.empty(candidate, trial);
            }
        }
        trial.undo(begin);
        let Some(free) = trial.goal.free else { return self.found };
        Deepening::new(self.candidates, self.banned, free).improve(self.found, trial)
    }

    fn may_go(&self, candidate: &Candidate) -> bool {
        !candidate.pods.iter().any(|uid| self.banned.contains(uid) || self.moved.contains(uid))
    }

    /// Moves the pods of a candidate, if that wins a card.
    fn empty(&mut self, candidate: &Candidate, trial: &mut MoveTrial<'_>) {
        let begin = trial.mark();
        let freed = candidate.freed();
        let Some((moves, taken)) = place_all(candidate, &freed, trial) else {
            trial.undo(begin);
            return;
        };
        self.moved.extend(candidate.pods.iter().cloned());
        self.found.won += freed.len() - taken;
        self.found.groups.push(MoveGroup { cards: freed, moves });
    }
}

/// Whether the cards are worth so many moves. Where a number of cards or a node is asked for, any card is.
fn pays(candidate: &Candidate, goal: &MoveGoal) -> bool {
    goal.free.is_some() || goal.node.is_some() || candidate.pods.len() <= PODS_PER_GPU * candidate.cards.len()
}

/// Moves the pods of a candidate one after the other, with the cards closed that they free. Returns the moves and how many free cards they take; `None`: one
/// finds no place, or no card is won.
fn place_all(
    candidate: &Candidate,
    freed: &BTreeSet<NodeCard>,
    trial: &mut MoveTrial<'_>,
) -> Option<(Vec<StagedMove>, usize)> {
    trial.close(freed);
    let (mut moves, mut taken) = (Vec::new(), 0);
    for uid in &candidate.pods {
        trial.evict(uid)?;
        let demand = &trial.pods.movable.get(uid)?.demand;
        let (closed, decision) = trial.find(demand, &BTreeSet::new())?;
        taken += trial.taken(&decision).len();
        if taken >= freed.len() {
            return None;
        }
        trial.place(uid, decision);
        moves.push(StagedMove { uid: uid.clone(), closed });
    }
    trial.are_free(&candidate.node, candidate.cards.iter()).then_some((moves, taken))
}
