//! How well the nodes that fit suit a pod: a score from 0 to 100 by each plugin, and their weighted sum.
//!
//! A plugin's raw score of a node is normalised over the nodes that fit, as in kube-scheduler v1.36 (`pkg/scheduler/framework/runtime`,
//! `RunScorePlugins`). Which nodes fit is not decided here.

pub mod cards;
pub mod estimate;
pub mod range;
pub mod weights;

use std::{borrow::Cow, sync::Arc};

use super::{
    Plugin, TABLE,
    contract::{FeasibleNodes, Normalisation, Placement},
    cycle::Preferences,
};
use crate::scheduling::packing::{Packing, vacancy::Vacancy};
use range::{MOST, float, for_each_different, whole};
use weights::{SCORING, ScoreWeights, place};

use super::row::RoomScoring;

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

/// Those of [`SCORERS`] whose scores are in percent of the highest, by place.
const RELATIVE: [usize; count_relative()] = relative();

const fn is_relative(row: usize) -> bool {
    match TABLE[row].score {
        Some(scoring) => {
            matches!(scoring.normalisation, Normalisation::OfHighest | Normalisation::BelowHighest)
        }
        None => false,
    }
}

const fn count_relative() -> usize {
    let (mut at, mut found) = (0, 0);
    while at < SCORERS.len() {
        found += is_relative(SCORERS[at]) as usize;
        at += 1;
    }
    found
}

const fn relative() -> [usize; count_relative()] {
    let (mut at, mut found, mut relative) = (0, 0, [0; count_relative()]);
    while at < SCORERS.len() {
        if is_relative(SCORERS[at]) {
            relative[found] = at;
            found += 1;
        }
        at += 1;
    }
    relative
}

/// How many plugins give scores that are in percent of the highest.
pub(in crate::scheduling) const RELATIVE_SCORES: usize = RELATIVE.len();

/// The scores of one node that are in percent of the highest, in the order of the plugins, before they are normalised; 0 where a plugin has nothing to
/// score.
pub(in crate::scheduling) type RelativeScores = [i64; RELATIVE_SCORES];

/// The same of some nodes, by plugin: of each node one, or nothing where all are 0.
pub(in crate::scheduling) type RelativeColumns<'a> = [Cow<'a, [i64]>; RELATIVE_SCORES];

/// Those of the nodes with these scores.
pub(in crate::scheduling) fn relative_columns(nodes: &[&RawScores]) -> RelativeColumns<'static> {
    let is_some = nodes.iter().any(|scores| scores.is_relative());
    let column = |place| nodes.iter().map(|scores| scores.relative_of(place)).collect();
    RELATIVE.map(|place| if is_some { Cow::Owned(column(place)) } else { Cow::Borrowed(&[][..]) })
}

/// What becomes of the scores of the plugin in this line.
fn normalisation(row: usize) -> Option<Normalisation> {
    let of_room = TABLE[row].room_score.map(|_| Normalisation::AboveLeast);
    TABLE[row].score.map(|scoring| scoring.normalisation).or(of_room)
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

/// The plugin that scores by rooms, with its place among [`SCORERS`].
const ROOM_SCORER: Option<(usize, RoomScoring)> = room_scorer();

const fn room_scorer() -> Option<(usize, RoomScoring)> {
    let mut place = 0;
    while place < SCORERS.len() {
        if let Some(scoring) = TABLE[SCORERS[place]].room_score {
            return Some((place, scoring));
        }
        place += 1;
    }
    None
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
    /// Whether what the node costs by its room is a rough guess.
    is_rough: bool,
}

/// The scores of one node by the plugins that score a node by itself.
#[derive(Clone, Debug, Default)]
pub struct NodeScores {
    /// Before normalisation, by a rough guess of what the node costs by its room.
    pub raw: RawScores,
    /// The room that would be left, where a plugin scores by it.
    pub vacancy: Option<Arc<Vacancy>>,
}

impl NodeScores {
    /// The scores of a node that the pod would be on.
    pub(in crate::scheduling) fn of(placement: &Placement<'_>) -> Self {
        let mut scores = Self::default();
        for (place, row) in SCORERS.into_iter().enumerate() {
            if let Some(scoring) = TABLE[row].room_score {
                scores.vacancy = (scoring.vacancy)(placement);
                continue;
            }
            let Some(scoring) = TABLE[row].score else { continue };
            let Some(score) = (scoring.score)(placement) else { continue };
            scores.raw.set(place, score);
            scores.raw.is_relative |= scoring.normalisation != Normalisation::AsIs && score > 0.0;
        }
        scores.value(placement.packing);
        scores
    }

    /// Guesses anew what the node costs by its room: that depends on the mix of pods that may come.
    pub(in crate::scheduling) fn value(&mut self, packing: &Packing) {
        if let Some(vacancy) = &self.vacancy {
            self.raw.set_cost(vacancy.rough_cost(packing), true);
        }
    }

    /// The scores by what the node costs exactly.
    pub(in crate::scheduling) fn exact(&self, packing: &Packing) -> RawScores {
        let mut raw = self.raw;
        if let Some(vacancy) = &self.vacancy {
            raw.set_cost(float(vacancy.cost(packing)), false);
        }
        raw
    }
}

impl RawScores {
    /// Sets what the node costs by its room, in millionths of a card.
    fn set_cost(&mut self, cost: f64, is_rough: bool) {
        if let Some((place, scoring)) = ROOM_SCORER {
            self.set(place, (scoring.points)(cost));
            self.is_rough = is_rough;
        }
    }

    /// Whether what the node costs by its room is a rough guess.
    pub(in crate::scheduling) fn is_rough(&self) -> bool {
        self.is_rough
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

    /// Those that are in percent of the highest.
    pub(in crate::scheduling) fn relative(&self) -> RelativeScores {
        RELATIVE.map(|place| self.relative_of(place))
    }

    /// The one of them that is in this place.
    fn relative_of(&self, place: usize) -> i64 {
        whole(self.get(place).unwrap_or_default())
    }

    /// The weighted sum of a node's scores of which none depends on those of other nodes; [`added`] says what others add.
    pub(in crate::scheduling) fn total(&self, weights: &ScoreWeights) -> f64 {
        let mut total = 0.0;
        for (place, row) in SCORERS.into_iter().enumerate() {
            if let (Some(raw), Some(normalisation)) = (self.get(place), normalisation(row)) {
                let score = Extremes::default().normalised(normalisation, raw);
                total += f64::from(weights.0[PLACES[place]]) * score;
            }
        }
        total
    }
}

/// What the scores that depend on other nodes add to the totals of these nodes, the sums of the others ([`RawScores::total`]). `relative` has those
/// that are in percent of the highest.
pub(in crate::scheduling) fn added(
    preferences: &Preferences<'_>,
    feasible: FeasibleNodes<'_>,
    relative: &RelativeColumns<'_>,
    weights: &ScoreWeights,
) -> Vec<i64> {
    let mut added = vec![0; feasible.slots.len()];
    let mut add = |row: usize, scores: &[i64]| {
        let weight = i64::from(weights.0[place(row)]);
        for (added, score) in added.iter_mut().zip(scores) {
            *added += weight * score;
        }
    };
    for (scorer, raw) in RELATIVE.into_iter().zip(relative) {
        let highest = raw.iter().copied().max().unwrap_or_default();
        let Some(normalisation) = normalisation(SCORERS[scorer]).filter(|_| highest != 0) else {
            // The sum of a node's own scores is right already.
            continue;
        };
        let mut scores = raw.to_vec();
        let extremes = Extremes { highest, ..Extremes::default() };
        for_each_different(&mut scores, |raw| {
            let by = |extremes: Extremes| whole(extremes.normalised(normalisation, float(raw)));
            // The sum of a node's own scores counts the plugin by the extremes over no nodes.
            by(extremes) - by(Extremes::default())
        });
        add(SCORERS[scorer], &scores);
    }
    for (plugin, found) in &preferences.0 {
        add(*plugin as usize, &found.normalised(feasible));
    }
    added
}

/// By what the raw scores of one plugin are normalised: the extremes over the nodes that fit. Those over no nodes are for a score that depends on no
/// other node's.
#[derive(Clone, Copy, Debug, Default)]
struct Extremes {
    /// The highest, where the plugin's scores are relative to it.
    highest: i64,
    /// The lowest, where they are costs.
    lowest: f64,
}

impl Extremes {
    fn of(normalisation: Normalisation, raw: impl Iterator<Item = f64>) -> Self {
        match normalisation {
            Normalisation::AsIs => Self::default(),
            Normalisation::OfHighest | Normalisation::BelowHighest => {
                Self { highest: raw.map(whole).max().unwrap_or_default(), ..Self::default() }
            }
            Normalisation::AboveLeast => {
                Self { lowest: raw.reduce(f64::min).unwrap_or_default(), ..Self::default() }
            }
        }
    }

    fn normalised(self, normalisation: Normalisation, raw: f64) -> f64 {
        let part = || if self.highest == 0 { 0 } else { MOST * whole(raw) / self.highest };
        match normalisation {
            Normalisation::AsIs => raw,
            Normalisation::OfHighest => float(part()),
            Normalisation::BelowHighest => float(MOST - part()),
            Normalisation::AboveLeast => float(MOST) - (raw - self.lowest),
        }
    }
}

/// The scores of all nodes that fit one pod, normalised over them.
#[derive(Debug)]
pub struct NormalisedScores<'a> {
    /// Of each node.
    raw: Vec<&'a RawScores>,
    /// A column for each plugin that has something to score for the pod, in the order of the table, with its place among the plugins that score.
    columns: Vec<(usize, Column)>,
}

/// The scores by one plugin.
#[derive(Debug)]
enum Column {
    /// Those of the plugin at this place of [`SCORERS`].
    Raw(usize, Normalisation, Extremes),
    /// Normalised by the plugin itself: one for each node.
    Found(Vec<f64>),
}

impl<'a> NormalisedScores<'a> {
    /// The scores of these nodes, with these raw scores.
    pub fn of(preferences: &Preferences<'_>, feasible: FeasibleNodes<'_>, raw: Vec<&'a RawScores>) -> Self {
        let (mut scored, mut is_some_exact) = (0, false);
        for one in &raw {
            scored |= one.scored;
            is_some_exact |= !one.is_rough;
        }
        let mut columns = Vec::with_capacity(SCORING);
        for (place, row) in SCORERS.into_iter().enumerate() {
            let Some(normalisation) = normalisation(row).filter(|_| scored & (1 << place) != 0) else {
                continue;
            };
            // Where some nodes cost what is known exactly, the least of these counts.
            let is_costs = normalisation == Normalisation::AboveLeast;
            let counts = |one: &&&RawScores| !is_costs || !is_some_exact || !one.is_rough;
            let of_place = raw.iter().filter(counts).filter_map(|one| one.get(place));
            let extremes = Extremes::of(normalisation, of_place);
            columns.push((PLACES[place], Column::Raw(place, normalisation, extremes)));
        }
        for (plugin, found) in &preferences.0 {
            let normalised = found.normalised(feasible).into_iter().map(float).collect();
            columns.push((place(*plugin as usize), Column::Found(normalised)));
        }
        columns.sort_by_key(|(place, _)| *place);
        Self { raw, columns }
    }

    /// Each node's scores.
    pub fn of_nodes(&self) -> impl Iterator<Item = Scores> {
        self.raw.iter().enumerate().map(|(node, raw)| {
            let mut scores = [None; SCORING];
            for (place, column) in &self.columns {
                scores[*place] = Some(column.score(node, raw));
            }
            Scores(scores)
        })
    }
}

impl Column {
    /// The score of this node with these raw scores.
    fn score(&self, node: usize, raw: &RawScores) -> f64 {
        match self {
            Self::Raw(place, normalisation, extremes) => {
                raw.get(*place).map_or(0.0, |raw| extremes.normalised(*normalisation, raw))
            }
            Self::Found(scores) => scores[node],
        }
    }
}

/// The normalised scores of one node, 0 to 100 and a cost perhaps less, by the plugins that score, in the order of the table; `None`: the plugin has nothing to score for the
/// pod.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scores([Option<f64>; SCORING]);

impl Scores {
    /// The weighted sum.
    pub fn total(&self, weights: &ScoreWeights) -> f64 {
        let weighted = self.0.iter().zip(weights.0);
        weighted.fold(0.0, |sum, (score, weight)| sum + f64::from(weight) * score.unwrap_or(0.0))
    }

    /// The plugins that have something to score for the pod, each with the node's score.
    pub fn by_plugin(&self) -> impl Iterator<Item = (Plugin, f64)> {
        Plugin::scoring().zip(self.0).filter_map(|(plugin, score)| Some((plugin, score?)))
    }
}

#[cfg(test)]
mod tests;
