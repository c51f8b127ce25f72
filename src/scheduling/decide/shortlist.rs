//! The nodes of which it is found out exactly what they cost a pod by their rooms. That takes long, so it is guessed roughly for every node first, and
//! only those with the highest scores by that are on the list.

use std::{cmp::Ordering, collections::BTreeMap};

/// So many different scores are on the list. Nodes that are alike have one score.
pub(super) const LISTED: usize = 16;

/// The score of a node that does not fit.
pub(super) const UNFIT: f64 = f64::NEG_INFINITY;

/// So many slots are looked at together.
pub(super) const LANES: usize = 16;

/// The scores of nodes, those that are equal counted: what is on the list is known at once where few of them have changed.
#[derive(Clone, Debug, Default)]
pub(super) struct CountedScores(BTreeMap<Score, u32>);

/// A score, in the order of [`f64::total_cmp`].
#[derive(Clone, Copy, Debug)]
struct Score(f64);

impl CountedScores {
    /// Whether no node is counted.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Counts so many more nodes with this score.
    pub(super) fn add(&mut self, score: f64, nodes: u32) {
        *self.0.entry(Score(score)).or_default() += nodes;
    }

    /// Counts one node less with this score.
    pub(super) fn remove(&mut self, score: f64) {
        if let Some(nodes) = self.0.get_mut(&Score(score)) {
            *nodes -= 1;
            if *nodes == 0 {
                self.0.remove(&Score(score));
            }
        }
    }

    /// The least score of those that are on the list: the [`LISTED`] highest different ones, or all that are there. Where there is none, more than any.
    pub(super) fn least_listed(&self) -> f64 {
        let last = LISTED.min(self.0.len()).saturating_sub(1);
        self.0.keys().nth_back(last).map_or(f64::INFINITY, |score| score.0)
    }

    /// The least of so many highest different scores below this one, or of all that are there; `None`: there is none.
    pub(super) fn least_below(&self, below: f64, highest: usize) -> Option<f64> {
        let scores = self.0.range(..Score(below)).rev().map(|(score, _)| score.0);
        scores.take(highest).last()
    }

    /// The least of so many highest different scores; `None`: there are fewer.
    pub(super) fn least_of(&self, highest: usize) -> Option<f64> {
        self.0.keys().nth_back(highest.saturating_sub(1)).map(|score| score.0)
    }
}

/// The least of these scores that is on their list, as [`CountedScores::least_listed`] has it.
pub(super) fn least_listed(scores: impl IntoIterator<Item = f64>) -> f64 {
    least_of_highest(LISTED, scores)
}

/// The least of so many highest different scores among these, or of all that are there. Where there is none, more than any.
pub(super) fn least_of_highest(count: usize, scores: impl IntoIterator<Item = f64>) -> f64 {
    let mut listed: Vec<f64> = Vec::with_capacity(count + 1);
    for score in scores {
        if listed.len() == count && score.total_cmp(&listed[0]).is_le() {
            continue;
        }
        if let Err(place) = listed.binary_search_by(|known| known.total_cmp(&score)) {
            listed.insert(place, score);
            if listed.len() > count {
                listed.remove(0);
            }
        }
    }
    listed.first().copied().unwrap_or(f64::INFINITY)
}

/// The highest of these; [`UNFIT`]: there is none.
pub(super) fn highest(scores: &[f64]) -> f64 {
    highest_of(scores, |score| score)
}

/// The highest of these that is below `bound`; [`UNFIT`]: there is none. No score is -0, as sums that begin with 0 never are.
pub(super) fn highest_below(bound: f64, scores: &[f64]) -> f64 {
    highest_of(scores, |score| if score < bound { score } else { UNFIT })
}

/// The highest that `counted` makes of these.
fn highest_of(scores: &[f64], counted: impl Fn(f64) -> f64) -> f64 {
    let (chunks, rest) = scores.as_chunks::<LANES>();
    let mut highest = [UNFIT; LANES];
    for chunk in chunks {
        for (highest, score) in highest.iter_mut().zip(chunk) {
            let score = counted(*score);
            *highest = if score > *highest { score } else { *highest };
        }
    }
    highest.into_iter().chain(rest.iter().copied().map(counted)).fold(UNFIT, f64::max)
}

/// The slots with this score, in their order: chunks without it are passed over at once.
pub(super) fn slots_with(score: f64, scores: &[f64]) -> impl Iterator<Item = usize> {
    let chunks = scores.chunks(LANES).enumerate().filter(move |(_, scores)| scores.contains(&score));
    chunks.flat_map(move |(at, scores)| {
        let equals = scores.iter().enumerate().filter(move |(_, one)| one.total_cmp(&score).is_eq());
        equals.map(move |(lane, _)| at * LANES + lane)
    })
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Score {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Score {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_highest_different_scores_are_listed(
            scores in prop::collection::vec(prop_oneof![Just(UNFIT), (-60..60).prop_map(f64::from), -1e9..1e9], 0..200),
        ) {
            let mut highest: Vec<f64> = scores.iter().copied().filter(|score| *score > UNFIT).collect();
            highest.sort_unstable_by(|one, other| other.total_cmp(one));
            highest.dedup();
            highest.truncate(LISTED);
            let least = highest.last().copied().unwrap_or(f64::INFINITY);
            let fitting = || scores.iter().copied().filter(|score| *score > UNFIT);
            let mut counted = CountedScores::default();
            fitting().for_each(|score| counted.add(score, 1));
            prop_assert!(counted.least_listed().total_cmp(&least).is_eq());
            prop_assert!(least_listed(fitting()).total_cmp(&least).is_eq());
            for gone in [-7.0, 0.5, 1e6] {
                counted.add(gone, 2);
                counted.remove(gone);
                counted.remove(gone);
            }
            prop_assert!(counted.least_listed().total_cmp(&least).is_eq());
            fitting().for_each(|score| counted.remove(score));
            prop_assert!(counted.is_empty());
        }
    }

    #[test]
    fn where_no_node_fits_none_is_listed() {
        assert!(CountedScores::default().least_listed() > f64::MAX);
    }
}
