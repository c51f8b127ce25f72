//! How well the nodes that fit suit a pod: a score from 0 to 100 by each plugin, and their weighted sum.
//!
//! A plugin's raw score of a node is normalised over the nodes that fit, as in kube-scheduler v1.36 (`pkg/scheduler/framework/runtime`,
//! `RunScorePlugins`). Which nodes fit is not decided here.

pub mod cards;
pub mod range;
pub mod weights;

use std::sync::Arc;

use super::{
    Plugin, TABLE,
    contract::{NodeScore, Normalisation, Placement, PreScored},
    cycle::Preferences,
};
use crate::scheduling::{
    packing::{Packing, vacancy::Vacancy},
    world::node_state::NodeState,
};
use range::{MOST, float, whole};
use weights::{SCORING, ScoreWeights, place};

pub use cards::{fullness, of_request};

/// The lines of the table that score a node by itself, in its order.
const SCORERS: [usize; count()] = scorers();

const fn count() -> usize {
    let (mut at, mut found) = (0, 0);
    while at < TABLE.len() {
        found += scores_by_itself(at) as usize;
        at += 1;
    }
    found
}

/// The place of each of [`SCORERS`] among the plugins that score.
const PLACES: [usize; SCORERS.len()] = places();

const fn places() -> [usize; SCORERS.len()] {
    let (mut at, mut places) = (0, [0; SCORERS.len()]);
    while at < SCORERS.len() {
        places[at] = place(SCORERS[at]);
        at += 1;
    }
    places
}

/// Whether the plugin in this line scores a node by itself.
const fn scores_by_itself(row: usize) -> bool {
    TABLE[row].score.is_some() || TABLE[row].room_score.is_some()
}

/// What becomes of the scores of the plugin in this line.
fn normalisation(row: usize) -> Option<Normalisation> {
    let of_room = TABLE[row].room_score.map(|_| Normalisation::AboveLeast);
    TABLE[row].score.map(|(_, normalisation)| normalisation).or(of_room)
}

const fn scorers() -> [usize; count()] {
    let (mut at, mut found, mut scorers) = (0, 0, [0; count()]);
    while at < TABLE.len() {
        if scores_by_itself(at) {
            scorers[found] = at;
            found += 1;
        }
        at += 1;
    }
    scorers
}

/// The scores of one node by the plugins that score a node by itself, before normalisation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RawScores {
    /// In the order of [`SCORERS`]; 0 where a plugin has nothing to score for the pod.
    scores: [f64; SCORERS.len()],
    /// A bit for each of them: whether the plugin has something to score.
    scored: u16,
    /// Whether one of them depends on those of other nodes.
    is_relative: bool,
}

impl RawScores {
    /// The scores of a node that the pod would be on, and the room that would be left there, where a plugin scores by it.
    pub(in crate::scheduling) fn of(placement: &Placement<'_>) -> (Self, Option<Arc<Vacancy>>) {
        let (mut raw, mut vacant) = (Self::default(), None);
        for (place, row) in SCORERS.into_iter().enumerate() {
            if let Some((vacancy, _)) = TABLE[row].room_score {
                vacant = vacancy(placement);
                continue;
            }
            let Some((score, normalisation)) = TABLE[row].score else { continue };
            let Some(score) = score(placement) else { continue };
            raw.set(place, score);
            raw.is_relative |= normalisation != Normalisation::AsIs && score > 0.0;
        }
        if let Some(vacancy) = &vacant {
            raw.value(vacancy, placement.packing);
        }
        (raw, vacant)
    }

    /// Scores anew what depends on the mix of pods that may come.
    pub(in crate::scheduling) fn value(&mut self, vacancy: &Vacancy, packing: &Packing) {
        for (place, row) in SCORERS.into_iter().enumerate() {
            if let Some((_, cost)) = TABLE[row].room_score {
                self.set(place, cost(vacancy, packing));
            }
        }
    }

    fn set(&mut self, place: usize, score: f64) {
        self.scores[place] = score;
        self.scored |= 1 << place;
    }

    fn get(&self, place: usize) -> Option<f64> {
        (self.scored & (1 << place) != 0).then_some(self.scores[place])
    }

    /// Whether the score depends on those of other nodes.
    pub(in crate::scheduling) fn is_relative(&self) -> bool {
        self.is_relative
    }
}

/// A node that fits, with its raw scores.
#[derive(Clone, Copy, Debug)]
pub struct Feasible<'a> {
    /// The node.
    pub node: &'a NodeState,
    /// What the plugins that look at one node make of it.
    pub raw: RawScores,
}

/// By what the raw scores of one decision are normalised, over the nodes that fit.
pub struct Scale<'a> {
    /// The highest raw score of each of [`SCORERS`] whose scores are relative.
    highest: [i64; SCORERS.len()],
    /// The lowest raw score of each whose scores are costs; 0 over no nodes.
    lowest: [f64; SCORERS.len()],
    /// The scores of the plugins that have found something out for the pod, each with its place among those that score.
    prepared: Vec<(usize, NodeScore<'a>)>,
}

impl<'a> Scale<'a> {
    /// The scale over these nodes. Without nodes it is the scale of those whose raw scores depend on no other node.
    pub fn of(preferences: &'a Preferences<'a>, feasible: &[Feasible<'_>]) -> Self {
        let (mut highest, mut lowest) = ([0; SCORERS.len()], [0.0; SCORERS.len()]);
        for (place, row) in SCORERS.into_iter().enumerate() {
            let raw = feasible.iter().filter_map(|feasible| feasible.raw.get(place));
            match normalisation(row) {
                Some(Normalisation::AboveLeast) => lowest[place] = raw.reduce(f64::min).unwrap_or_default(),
                Some(Normalisation::OfHighest | Normalisation::BelowHighest) => {
                    highest[place] = raw.map(whole).max().unwrap_or_default();
                }
                Some(Normalisation::AsIs) | None => {}
            }
        }
        let mut prepared = Vec::new();
        if !preferences.is_empty() {
            let nodes: Vec<_> = feasible.iter().map(|feasible| feasible.node).collect();
            let of = |(plugin, found): &'a (Plugin, Box<dyn PreScored + 'a>)| {
                (place(*plugin as usize), found.normalised(&nodes))
            };
            prepared.extend(preferences.0.iter().map(of));
        }
        Self { highest, lowest, prepared }
    }

    /// The normalised scores of one of these nodes.
    pub fn scores(&self, feasible: &Feasible<'_>) -> Scores {
        let Feasible { node, raw } = feasible;
        let mut scores = [None; SCORING];
        for (place, row) in SCORERS.into_iter().enumerate() {
            let (Some(raw), Some(normalisation)) = (raw.get(place), normalisation(row)) else { continue };
            let highest = self.highest[place];
            let part = || if highest == 0 { 0 } else { MOST * whole(raw) / highest };
            scores[PLACES[place]] = Some(match normalisation {
                Normalisation::AsIs => raw,
                Normalisation::OfHighest => float(part()),
                Normalisation::BelowHighest => float(MOST - part()),
                Normalisation::AboveLeast => float(MOST) - (raw - self.lowest[place]),
            });
        }
        for (place, score) in &self.prepared {
            scores[*place] = Some(float(score(node)));
        }
        Scores(scores)
    }
}

/// The normalised scores of one node, 0 to 100 and a cost perhaps less, by the plugins that score, in the order of the table; `None`: the plugin has nothing to score for the
/// pod.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scores([Option<f64>; SCORING]);

impl Scores {
    /// The weighted sum.
    pub fn total(&self, weights: &ScoreWeights) -> f64 {
        let weighted =
            self.0.iter().zip(weights.0).map(|(score, weight)| f64::from(weight) * score.unwrap_or(0.0));
        weighted.sum()
    }

    /// The plugins that have something to score for the pod, each with the node's score.
    pub fn by_plugin(&self) -> impl Iterator<Item = (Plugin, f64)> {
        Plugin::scoring().zip(self.0).filter_map(|((plugin, _), score)| Some((plugin, score?)))
    }
}

#[cfg(test)]
mod tests;
