//! Whether fewer moves reach the goal: every way of so many moves is tried, for one number after the other, as long as steps are left.
//!
//! On a small cluster the fewest moves are found so. On a large one the steps end before, and what was found first stays.

use std::{collections::BTreeSet, ops::ControlFlow};

use super::{
    NodeCard,
    candidates::{Candidate, Candidates},
    found::{Found, MoveGroup, StagedMove},
    trial::{self, MoveTrial},
};
use crate::scheduling::model::{
    name::{NodeName, Uid},
    steps::PER_MILLISECOND,
};

/// So many steps are taken.
const STEPS: u64 = 250 * PER_MILLISECOND;

/// So many places of one pod are tried.
const PLACES: usize = 16;

/// Plans of more moves are not searched for.
const DEEPEST: usize = 12;

/// A search for a plan of so many moves.
pub(super) struct Deepening<'a> {
    candidates: Vec<&'a Candidate>,
    movable: Vec<&'a Uid>,
    free: usize,
    moved: BTreeSet<Uid>,
    groups: Vec<MoveGroup>,
    end: u64,
}

/// What is left to do.
#[derive(Clone, Copy)]
struct Rest {
    /// How many more pods may move.
    moves: usize,
    /// How many more cards are to become free.
    cards: usize,
    /// The first candidate that has not been looked at.
    next: usize,
}

/// Found, or there are no steps left; else it goes on.
type Tried = ControlFlow<Option<Vec<MoveGroup>>>;

impl<'a> Deepening<'a> {
    /// A search for so many cards, in which these pods do not move.
    pub(super) fn new(candidates: &'a Candidates, banned: &BTreeSet<Uid>, free: usize) -> Self {
        let is_free = |one: &&Candidate| one.pods.iter().all(|uid| !banned.contains(uid));
        Self {
            candidates: candidates.all.iter().filter(is_free).collect(),
            movable: candidates.movable.iter().filter(|uid| !banned.contains(*uid)).collect(),
            free,
            moved: BTreeSet::new(),
            groups: Vec::new(),
            end: 0,
        }
    }

    /// What was found before, or a plan of fewer moves.
    pub(super) fn improve(mut self, found: Found, trial: &mut MoveTrial<'_>) -> Found {
        let is_met = trial.goal.is_met(found.won);
        let most = if is_met { found.moves().saturating_sub(1) } else { self.movable.len() };
        self.end = trial.steps().saturating_add(STEPS);
        for moves in self.fewest()..=most.min(DEEPEST) {
            let rest = Rest { moves, cards: self.free, next: 0 };
            match self.empty_next(rest, trial) {
                ControlFlow::Break(Some(groups)) => {
                    return Found { groups, won: self.free, ..found };
                }
                ControlFlow::Break(None) => {
                    return Found { is_cut_short: !is_met || found.is_cut_short, ..found };
                }
                ControlFlow::Continue(()) => {}
            }
        }
        found
    }

    /// Fewer moves can't free so many cards.
    fn fewest(&self) -> usize {
        let mut each: Vec<_> = self.candidates.iter().map(|one| (one.pods.len(), one.cards.len())).collect();
        each.sort_by(|(pods, cards), (other_pods, other_cards)| {
            (pods * other_cards).cmp(&(other_pods * cards))
        });
        let (mut pods, mut cards) = (0, 0);
        for (more_pods, more_cards) in each {
            if cards >= self.free {
                break;
            }
            (pods, cards) = (pods + more_pods, cards + more_cards);
            if cards > self.free {
                // Of a candidate of several cards only a part may be needed.
                return 1;
            }
        }
        pods.max(1)
    }

    /// Empties one more candidate.
    fn empty_next(&mut self, rest: Rest, trial: &mut MoveTrial<'_>) -> Tried {
        if rest.cards == 0 {
            return ControlFlow::Break(Some(self.groups.clone()));
        }
        if trial.steps() > self.end {
            return ControlFlow::Break(None);
        }
        for at in rest.next..self.candidates.len() {
            let candidate = self.candidates[at];
            let is_moved = candidate.pods.iter().any(|uid| self.moved.contains(uid));
            if is_moved || candidate.pods.len() > rest.moves {
                continue;
            }
            let begin = trial.mark();
            let freed = candidate.freed();
            trial.close(&freed);
            self.moved.extend(candidate.pods.iter().cloned());
            self.groups.push(MoveGroup { cards: freed, moves: Vec::new() });
            let rest = Rest {
                moves: rest.moves - candidate.pods.len(),
                cards: rest.cards.saturating_sub(candidate.cards.len()),
                next: at + 1,
            };
            let mut pending: Vec<Uid> = candidate.pods.iter().rev().cloned().collect();
            self.place_next(&mut pending, rest, trial)?;
            self.groups.pop();
            for uid in &candidate.pods {
                self.moved.remove(uid);
            }
            trial.undo(begin);
        }
        ControlFlow::Continue(())
    }

    /// Gives the last of these pods a place, and then the others.
    fn place_next(&mut self, pending: &mut Vec<Uid>, rest: Rest, trial: &mut MoveTrial<'_>) -> Tried {
        let Some(uid) = pending.pop() else {
            let is_free = |one: &NodeCard| trial.are_free(&one.node, [&one.card].into_iter());
            let is_empty = self.groups.last().is_some_and(|group| group.cards.iter().all(is_free));
            return if is_empty { self.empty_next(rest, trial) } else { ControlFlow::Continue(()) };
        };
        let begin = trial.mark();
        trial.evict(&uid);
        self.place_each(&uid, None, trial, |search, trial| search.place_next(pending, rest, trial))?;
        trial.undo(begin);
        if rest.moves > 0 {
            self.make_room(&uid, pending, rest, trial)?;
        }
        pending.push(uid);
        ControlFlow::Continue(())
    }

    /// Moves one more pod before this one, which may then take its place.
    fn make_room(
        &mut self,
        uid: &Uid,
        pending: &mut Vec<Uid>,
        rest: Rest,
        trial: &mut MoveTrial<'_>,
    ) -> Tried {
        for at in 0..self.movable.len() {
            let other = self.movable[at];
            if self.moved.contains(other) {
                continue;
            }
            let begin = trial.mark();
            let Some(charge) = trial.evict(other) else { continue };
            self.moved.insert(other.clone());
            let before: BTreeSet<_> = charge.shares().map(|share| share.card.clone()).collect();
            let rest = Rest { moves: rest.moves - 1, ..rest };
            self.place_each(other, Some((&charge.node, &before)), trial, |search, trial| {
                pending.push(uid.clone());
                let tried = search.place_next(pending, rest, trial);
                pending.pop();
                tried
            })?;
            self.moved.remove(other);
            trial.undo(begin);
        }
        ControlFlow::Continue(())
    }

    /// Gives a pod one place after the other, but for these cards, and tries what follows from each.
    fn place_each(
        &mut self,
        uid: &Uid,
        before: Option<(&NodeName, &BTreeSet<crate::device::CardId>)>,
        trial: &mut MoveTrial<'_>,
        mut then: impl FnMut(&mut Self, &mut MoveTrial<'_>) -> Tried,
    ) -> Tried {
        let Some(pod) = trial.pods.movable.get(uid) else { return ControlFlow::Continue(()) };
        let mut closed: BTreeSet<NodeCard> = BTreeSet::new();
        for _ in 0..PLACES {
            if trial.steps() > self.end {
                return ControlFlow::Break(None);
            }
            let begin = trial.mark();
            trial.close(&closed);
            let decision = trial.decide(&pod.demand);
            trial.undo(begin);
            let Some(decision) = decision else { break };
            let card =
                |card: &crate::device::CardId| NodeCard { node: decision.node.clone(), card: card.clone() };
            let next: BTreeSet<NodeCard> = trial::cards(&decision).map(card).collect();
            let stays = before.is_some_and(|(node, cards)| {
                *node == decision.node && trial::cards(&decision).all(|card| cards.contains(card))
            });
            if !stays && trial.taken(&decision).is_empty() {
                trial.place(uid, decision);
                let group = self.groups.len() - 1;
                self.groups[group].moves.push(StagedMove { uid: uid.clone(), closed: closed.clone() });
                then(self, trial)?;
                self.groups[group].moves.pop();
                trial.undo(begin);
            }
            closed.extend(next);
        }
        ControlFlow::Continue(())
    }
}
