//! Nodes from the highest score down: the best one that also passes what its verdict does not say is found without testing those below it.

use std::sync::Arc;

use super::shortlist::{UNFIT, highest_below, slots_with};
use crate::scheduling::world::{node_state::NodeState, nodes::Nodes};

/// So many groups are found by a look at all scores each: mostly a node of the first ones passes, and to bring nodes into order takes as long as many looks.
const LOOKED_FOR: usize = 4;

/// After these groups so many nodes are brought into order, and as many again as are in order each time when these are used up.
const FIRST: usize = 64;

/// The nodes that have a score, by slot, in groups of equal scores.
#[derive(Debug)]
pub(super) struct Descent<'a> {
    scores: &'a [f64],
    /// How many groups there were.
    groups: usize,
    /// The score of the last group that was looked for.
    last: f64,
    /// After those groups the other nodes, each with its score. The first `ordered` are the highest, in descending order, with all that are equal to
    /// the last of them.
    scored: Vec<(f64, usize)>,
    ordered: usize,
    /// Where the next group begins.
    next: usize,
}

/// Nodes with equal scores.
#[derive(Clone, Copy, Debug)]
pub(super) struct Equals<'d> {
    /// The score.
    pub(super) score: f64,
    of: EqualsOf<'d>,
}

/// Where nodes with equal scores are.
#[derive(Clone, Copy, Debug)]
enum EqualsOf<'d> {
    /// Anywhere among these scores, by slot.
    Scores(&'d [f64]),
    /// In these slots.
    Slots(&'d [(f64, usize)]),
}

impl Equals<'_> {
    /// The nodes in order of name.
    pub(super) fn in_order_of_name(self, nodes: &Nodes) -> impl Iterator<Item = &Arc<NodeState>> {
        let (all, few) = match self.of {
            // Most callers take the first ones alone.
            EqualsOf::Scores(scores) if nodes.are_many(count(self.score, scores)) => {
                (Some(nodes.in_order_of_name_where(move |slot| scores.get(slot) == Some(&self.score))), None)
            }
            _ => (None, Some(nodes.in_order_of_name(self.slots().collect()))),
        };
        all.into_iter().flatten().chain(few.into_iter().flatten())
    }

    /// Their slots.
    fn slots(&self) -> impl Iterator<Item = usize> {
        let (scores, listed): (&[f64], &[(f64, usize)]) = match self.of {
            EqualsOf::Scores(scores) => (scores, &[]),
            EqualsOf::Slots(listed) => (&[], listed),
        };
        slots_with(self.score, scores).chain(listed.iter().map(|(_, slot)| *slot))
    }
}

/// How many of these scores are this one.
fn count(score: f64, scores: &[f64]) -> usize {
    scores.iter().map(|one| usize::from(one.total_cmp(&score).is_eq())).sum()
}

/// These scores, by slot, as if the nodes in all slots but those of `fitting` did not fit.
pub(super) fn scores_of(scores: &[f64], fitting: &[bool]) -> Vec<f64> {
    scores.iter().zip(fitting).map(|(score, fits)| if *fits { *score } else { UNFIT }).collect()
}

impl<'a> Descent<'a> {
    /// The nodes with these scores, by slot; [`UNFIT`]: there is none, or it does not fit.
    pub(super) fn new(scores: &'a [f64]) -> Self {
        Self { scores, groups: 0, last: f64::INFINITY, scored: Vec::new(), ordered: 0, next: 0 }
    }

    /// The nodes with the highest score below those of the groups before; `None`: there is no other.
    pub(super) fn next_group(&mut self) -> Option<Equals<'_>> {
        self.groups += 1;
        if self.groups <= LOOKED_FOR {
            self.last = highest_below(self.last, self.scores);
            return (self.last > UNFIT)
                .then_some(Equals { score: self.last, of: EqualsOf::Scores(self.scores) });
        }
        if self.groups == LOOKED_FOR + 1 {
            let others = self.scores.iter().enumerate();
            let others = others.filter(|(_, score)| **score > UNFIT && **score < self.last);
            self.scored = others.map(|(slot, score)| (*score, slot)).collect();
        }
        if self.next == self.ordered {
            self.order_more();
        }
        let rest = &self.scored[self.next..self.ordered];
        let (highest, _) = *rest.first()?;
        let group = rest.iter().take_while(|(score, _)| score.total_cmp(&highest).is_eq()).count();
        let start = self.next;
        self.next += group;
        Some(Equals { score: highest, of: EqualsOf::Slots(&self.scored[start..self.next]) })
    }

    fn order_more(&mut self) {
        let rest = &mut self.scored[self.ordered..];
        let descending = |one: &(f64, usize), other: &(f64, usize)| other.0.total_cmp(&one.0);
        let first = rest.len().min(FIRST.max(self.ordered));
        let mut end = first;
        if first < rest.len() {
            let (_, &mut (last, _), _) = rest.select_nth_unstable_by(first - 1, descending);
            for at in first..rest.len() {
                if rest[at].0.total_cmp(&last).is_eq() {
                    rest.swap(at, end);
                    end += 1;
                }
            }
        }
        rest[..end].sort_unstable_by(descending);
        self.ordered += end;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_node_that_fits_comes_once_with_its_equals_and_after_those_with_higher_scores(
            scores in prop::collection::vec(prop_oneof![Just(UNFIT), (-9..9).prop_map(f64::from), -1e9..1e9], 0..400),
        ) {
            let mut expected: BTreeMap<i64, BTreeSet<usize>> = BTreeMap::new();
            for (slot, score) in scores.iter().enumerate().filter(|(_, score)| **score > UNFIT) {
                // The bits of two floats, as whole numbers, are in the order of `f64::total_cmp` once those of negative ones are turned over.
                let bits = score.to_bits().cast_signed();
                let key = if bits < 0 { bits ^ i64::MAX } else { bits };
                expected.entry(key).or_default().insert(slot);
            }
            let mut descent = Descent::new(&scores);
            let mut found = Vec::new();
            while let Some(group) = descent.next_group() {
                let slots: BTreeSet<usize> = group.slots().collect();
                prop_assert_eq!(slots.len(), group.slots().count());
                prop_assert!(slots.iter().all(|slot| scores[*slot].total_cmp(&group.score).is_eq()));
                found.push(slots);
            }
            prop_assert_eq!(found, expected.into_values().rev().collect::<Vec<_>>());
        }
    }
}
