//! What every node makes of one pod with all filters, and which node is chosen: over the verdicts of a class, or over those of a dry run, which
//! begins without any.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Filters, Refusal, Refusals,
    fit_error::FitError,
    verdict::{NodeVerdict, best, first_of},
    verdicts::Verdicts,
};
use crate::scheduling::{
    model::name::NodeName,
    plugin::{
        cycle::Preferences,
        pod_counts::PodCounts,
        score::{Feasible, RawScores, Scale, Scores, weights::ScoreWeights},
    },
    world::{node_state::NodeState, reservation::Preference},
};

/// What every node makes of one pod.
#[derive(Debug)]
pub struct Evaluation<'a, 'v> {
    filters: Filters<'a>,
    verdicts: &'v mut Verdicts,
    preferences: Preferences<'a>,
    /// By slot, the nodes on which the pod fits within a Reservation, its scores there, and that Reservation's place among others.
    reserved: BTreeMap<usize, (RawScores, Preference)>,
    weights: ScoreWeights,
}

/// One node in an evaluation.
pub type Evaluated<'a> = (&'a Arc<NodeState>, Result<Scores, Refusal>);

/// A node that passes every filter.
struct PassedNode<'a> {
    feasible: Feasible<'a>,
    state: &'a Arc<NodeState>,
    /// The weighted sum of its scores, as long as none depends on other nodes.
    score: f64,
    /// The place of the Reservation that it is for the pod.
    reserved: Option<Preference>,
}

impl<'a, 'v> Evaluation<'a, 'v> {
    /// Tests every node by these filters, beside what the plugins that look at one node make of it, which must be up to date.
    pub fn of(
        filters: Filters<'a>,
        verdicts: &'v mut Verdicts,
        counts: &mut PodCounts,
        weights: ScoreWeights,
    ) -> Self {
        let preferences = filters.preferences(counts, &weights);
        let in_reservations = filters.in_reservations().into_iter();
        let reserved = in_reservations.map(|(node, raw, place)| (node.slot, (raw, place))).collect();
        Self { filters, verdicts, preferences, reserved, weights }
    }

    /// The filters by which the nodes were judged.
    pub fn filters(&self) -> &Filters<'a> {
        &self.filters
    }

    /// Every node with its scores, normalised over the nodes that fit, or why it is refused.
    pub fn nodes(&self) -> Vec<Evaluated<'a>> {
        let (mut passed, mut nodes) = (Vec::new(), Vec::new());
        for (state, verdict, score) in self.verdicts.of_nodes(self.filters.world) {
            match (self.test(state, verdict, score), verdict) {
                (Some(Ok(one)), _) => passed.push(one),
                (Some(Err(refusal)), _) => nodes.push((state, Err(refusal))),
                (None, NodeVerdict::Fails(reasons)) => {
                    nodes.push((state, Err(Refusal::Node(reasons.clone()))));
                }
                (None, NodeVerdict::Fits(_)) => {}
            }
        }
        nodes.extend(self.scored(&passed).map(|(one, scores)| (one.state, Ok(scores))));
        nodes
    }

    /// The node that the pod goes to: the nominated one if that fits and its `rank` is 0, else as [`Self::choose`] says.
    pub fn best(&self, rank: impl Fn(&NodeName) -> usize) -> Result<&'a Arc<NodeState>, Refusals<'a>> {
        self.filters.on_nominated(&rank).map_or_else(|| self.choose(&rank), Ok)
    }

    /// The best node: a smaller `rank` comes before a higher score, 0 is the best; equals go by name. Where the pod fits within Reservations, only
    /// nodes with the best of these are compared.
    pub fn choose(&self, rank: impl Fn(&NodeName) -> usize) -> Result<&'a Arc<NodeState>, Refusals<'a>> {
        let is_alone = self.preferences.is_empty() && self.reserved.is_empty();
        let is_independent = is_alone && self.verdicts.are_independent();
        if is_independent
            && self.filters.is_open()
            && let Some(state) = self.verdicts.best(self.filters.world)
            && rank(&state.info.name) == 0
        {
            return Ok(state);
        }
        let mut refusals = Refusals::default();
        let tested = self.verdicts.of_nodes(self.filters.world);
        let tested = tested.filter_map(|(state, verdict, score)| {
            let tested = self.test(state, verdict, score)?;
            tested.map_err(|refusal| refusals.note(state, refusal)).ok()
        });
        let chosen = if is_independent {
            best(tested.map(|one| (one.state, one.score)), &rank)
        } else {
            let passed: Vec<_> = tested.collect();
            let places = passed.iter().filter_map(|one| Some((one.state, one.reserved?)));
            let first = first_of(places, &rank);
            let is_candidate = |one: &PassedNode<'_>| {
                first.is_none() || one.reserved.map(|place| (rank(&one.state.info.name), place)) == first
            };
            let scored = self.scored(&passed).filter(|(one, _)| is_candidate(one));
            best(scored.map(|(one, scores)| (one.state, scores.total(&self.weights))), &rank)
        };
        chosen.ok_or(refusals)
    }

    /// Why no node fits, with the nearest miss, and how the quotas stand if nodes were refused for one.
    pub fn fit_error(&mut self, refusals: &Refusals<'_>) -> FitError {
        let error = self.fit_error_of_nodes(refusals);
        if refusals.has_quota() { error.beside_quota(self.filters.standing()) } else { error }
    }

    /// As [`Self::fit_error`], without how the quotas stand.
    pub(super) fn fit_error_of_nodes(&mut self, refusals: &Refusals<'_>) -> FitError {
        let Filters { demand, world, .. } = &self.filters;
        self.verdicts.measure(&demand.ask, world);
        refusals.fit_error(&self.filters, self.verdicts.failed(world))
    }

    /// What the filters make of a node; `None`: the plugins that look at one node reject it.
    fn test(
        &self,
        state: &'a Arc<NodeState>,
        verdict: &NodeVerdict,
        score: f64,
    ) -> Option<Result<PassedNode<'a>, Refusal>> {
        if let Some((raw, place)) = self.reserved.get(&state.slot) {
            let feasible = Feasible { node: state, raw: *raw };
            return Some(Ok(PassedNode { feasible, state, score, reserved: Some(*place) }));
        }
        let NodeVerdict::Fits(fit) = verdict else { return None };
        let tested = self.filters.test(state, (fit.raw, &fit.taken));
        Some(tested.map(|raw| {
            let feasible = Feasible { node: state, raw };
            let score = if raw == fit.raw { score } else { self.score_alone(&feasible) };
            PassedNode { feasible, state, score, reserved: None }
        }))
    }

    fn score_alone(&self, feasible: &Feasible<'_>) -> f64 {
        let alone = Preferences::default();
        Scale::of(&alone, &[]).scores(feasible).total(&self.weights)
    }

    /// Each of these nodes with its scores, normalised over all of them.
    fn scored<'p>(
        &'p self,
        passed: &'p [PassedNode<'a>],
    ) -> impl Iterator<Item = (&'p PassedNode<'a>, Scores)> {
        let feasible: Vec<_> = passed.iter().map(|one| one.feasible).collect();
        let scale = Scale::of(&self.preferences, &feasible);
        passed.iter().map(move |one| (one, scale.scores(&one.feasible)))
    }
}
