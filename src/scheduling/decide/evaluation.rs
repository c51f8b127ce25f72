//! What every node makes of one pod, each judged anew: for dry runs and explanations, which keep no class.

use std::{collections::BTreeMap, ops::ControlFlow, sync::Arc};

use super::{
    Filters, Refusal, Refusals,
    fit_error::FitError,
    verdict::{NodeVerdict, best, first_of},
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
pub struct Evaluation<'a> {
    filters: Filters<'a>,
    preferences: Preferences<'a>,
    nodes: Vec<(&'a Arc<NodeState>, Result<RawScores, Refusal>)>,
    /// By slot, the nodes on which the pod fits within a Reservation, and that Reservation's place among others.
    reserved: BTreeMap<usize, Preference>,
}

/// One node in an evaluation.
pub type Evaluated<'a, 'e> = (&'a Arc<NodeState>, Result<Scores, &'e Refusal>);

impl<'a> Evaluation<'a> {
    /// Judges every node by these filters. `go_on` is asked before each; when it says no, there is no evaluation.
    pub fn of(
        filters: Filters<'a>,
        counts: &mut PodCounts,
        weights: &ScoreWeights,
        mut go_on: impl FnMut() -> ControlFlow<()>,
    ) -> Option<Self> {
        let (mut nodes, mut reserved) = (Vec::new(), BTreeMap::new());
        for state in filters.world.nodes.by_slot() {
            if go_on().is_break() {
                return None;
            }
            let judged = match (filters.in_reservation(state), filters.judge(state)) {
                (Some((within, raw)), _) => {
                    reserved.extend(filters.preference(&within).map(|preference| (state.slot, preference)));
                    Ok(raw)
                }
                (None, NodeVerdict::Fits(fit)) => filters.test(state, (fit.raw, &fit.taken)),
                (None, NodeVerdict::Fails(reasons)) => Err(Refusal::Node(reasons)),
            };
            nodes.push((state, judged));
        }
        let preferences = filters.preferences(counts, weights);
        Some(Self { filters, preferences, nodes, reserved })
    }

    /// The filters by which the nodes were judged.
    pub fn filters(&self) -> &Filters<'a> {
        &self.filters
    }

    /// Every node with its scores, normalised over the nodes that fit, or why it is refused.
    pub fn nodes(&self) -> Vec<Evaluated<'a, '_>> {
        let feasible: Vec<_> = self.feasible().map(|(_, feasible)| feasible).collect();
        let scale = Scale::of(&self.preferences, &feasible);
        let scored = self.nodes.iter().map(|(state, judged)| {
            let scores = judged.as_ref().map(|raw| scale.scores(&Feasible { node: state, raw: *raw }));
            (*state, scores)
        });
        scored.collect()
    }

    /// How many nodes fit.
    pub fn fitting(&self) -> usize {
        self.feasible().count()
    }

    /// The node that the pod would go to, and its score: the nominated one if that fits and its `rank` is 0, else the best by rank,
    /// then score, then name, where some fit within a Reservation of these.
    pub fn best(
        &self,
        weights: &ScoreWeights,
        rank: impl Fn(&NodeName) -> usize,
    ) -> Option<(&'a Arc<NodeState>, f64)> {
        let scored: Vec<_> = self
            .nodes()
            .into_iter()
            .filter_map(|(state, scores)| Some((state, scores.ok()?.total(weights))))
            .collect();
        let nominated = self.filters.nominated(&rank);
        let nominated = nominated.and_then(|name| scored.iter().find(|(state, _)| state.info.name == *name));
        let place = |state: &'a Arc<NodeState>| Some((state, *self.reserved.get(&state.slot)?));
        let first = first_of(scored.iter().filter_map(|(state, _)| place(state)), &rank);
        let in_reservation = |(state, _): &&(&Arc<NodeState>, f64)| {
            let own = self.reserved.get(&state.slot).map(|preference| (rank(&state.info.name), *preference));
            first.is_none() || own == first
        };
        let candidates = scored.iter().filter(in_reservation).copied();
        let best = nominated.map(|(state, _)| *state).or_else(|| best(candidates, &rank))?;
        scored.iter().find(|(state, _)| Arc::ptr_eq(state, best)).copied()
    }

    /// Why the nodes that do not fit are refused.
    pub fn refused(&self) -> FitError {
        self.refusals().counted(std::iter::empty())
    }

    /// Why no node fits, with the nearest miss.
    pub fn fit_error(&self) -> FitError {
        let refusals = self.refusals();
        let error = refusals.fit_error(&self.filters, std::iter::empty());
        if refusals.has_quota() { error.beside_quota(self.filters.standing()) } else { error }
    }

    fn refusals(&self) -> Refusals<'a> {
        let mut refusals = Refusals::default();
        for (node, judged) in &self.nodes {
            if let Err(refusal) = judged {
                refusals.note(node, refusal.clone());
            }
        }
        refusals
    }

    fn feasible(&self) -> impl Iterator<Item = (&'a Arc<NodeState>, Feasible<'a>)> {
        self.nodes.iter().filter_map(|(state, judged)| {
            Some((*state, Feasible { node: state, raw: *judged.as_ref().ok()? }))
        })
    }
}
