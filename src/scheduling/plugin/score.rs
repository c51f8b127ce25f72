//! How well the nodes that fit suit a pod: a score from 0 to 100 by each plugin, and their weighted sum.
//!
//! A plugin's raw score of a node is normalised over the nodes that fit, as in kube-scheduler v1.36 (`pkg/scheduler/framework/runtime`,
//! `RunScorePlugins`). Which nodes fit is not decided here.

pub mod cards;
pub mod range;
pub mod weights;

use super::{
    Plugin, TABLE,
    contract::{NodeScore, Normalisation, Placement, PreScored},
    cycle::Preferences,
};
use crate::{
    device::Allocation,
    scheduling::{model::pod::Ask, world::node_state::NodeState},
};
use range::{MOST, float, whole};
use weights::{SCORING, ScoreWeights, place};

pub use cards::{fullness, of_request};

/// The lines of the table that score a node by itself, in its order.
const SCORERS: [usize; count()] = scorers();

const fn count() -> usize {
    let (mut at, mut found) = (0, 0);
    while at < TABLE.len() {
        found += TABLE[at].score.is_some() as usize;
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

const fn scorers() -> [usize; count()] {
    let (mut at, mut found, mut scorers) = (0, 0, [0; count()]);
    while at < TABLE.len() {
        if TABLE[at].score.is_some() {
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
    /// The scores of a node, given what the pod would get there for each of its requests of cards.
    pub(in crate::scheduling) fn of(ask: &Ask, node: &NodeState, allocations: &[Allocation]) -> Self {
        let placement = Placement { ask, node, allocations };
        let mut raw = Self::default();
        for (place, row) in SCORERS.into_iter().enumerate() {
            let Some((score, normalisation)) = TABLE[row].score else { continue };
            let Some(score) = score(&placement) else { continue };
            raw.scores[place] = score;
            raw.scored |= 1 << place;
            raw.is_relative |= normalisation != Normalisation::AsIs && score > 0.0;
        }
        raw
    }

    fn get(&self, place: usize) -> Option<f64> {
        (self.scored & (1 << place) != 0).then_some(self.scores[place])
    }

    /// How well the cards suit, 0 to 100.
    pub fn devices(&self) -> f64 {
        let of_cards = SCORERS.into_iter().position(|row| TABLE[row].plugin == Plugin::Devices);
        of_cards.and_then(|place| self.get(place)).unwrap_or_default()
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
    /// The scores of the plugins that have found something out for the pod, each with its place among those that score.
    prepared: Vec<(usize, NodeScore<'a>)>,
}

impl<'a> Scale<'a> {
    /// The scale over these nodes. Without nodes it is the scale of those whose raw scores depend on no other node.
    pub fn of(preferences: &'a Preferences<'a>, feasible: &[Feasible<'_>]) -> Self {
        let mut highest = [0; SCORERS.len()];
        for (place, highest) in highest.iter_mut().enumerate() {
            let Some((_, normalisation)) = TABLE[SCORERS[place]].score else { continue };
            if normalisation != Normalisation::AsIs {
                let raw = feasible.iter().filter_map(|feasible| feasible.raw.get(place));
                *highest = raw.map(whole).max().unwrap_or_default();
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
        Self { highest, prepared }
    }

    /// The normalised scores of one of these nodes.
    pub fn scores(&self, feasible: &Feasible<'_>) -> Scores {
        let Feasible { node, raw } = feasible;
        let mut scores = [None; SCORING];
        for (place, row) in SCORERS.into_iter().enumerate() {
            let (Some(raw), Some((_, normalisation))) = (raw.get(place), TABLE[row].score) else { continue };
            let highest = self.highest[place];
            let part = || if highest == 0 { 0 } else { MOST * whole(raw) / highest };
            scores[PLACES[place]] = Some(match normalisation {
                Normalisation::AsIs => raw,
                Normalisation::OfHighest => float(part()),
                Normalisation::BelowHighest => float(MOST - part()),
            });
        }
        for (place, score) in &self.prepared {
            scores[*place] = Some(float(score(node)));
        }
        Scores(scores)
    }
}

/// The normalised scores of one node, 0 to 100, by the plugins that score, in the order of the table; `None`: the plugin has nothing to score for the
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
