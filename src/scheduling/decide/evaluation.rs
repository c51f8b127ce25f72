//! What every node makes of one pod with all filters, and which node is chosen: over the verdicts of a class, or over those of a dry run, which
//! begins without any.

use std::{ops::ControlFlow, sync::Arc};

use super::{
    Filters, Refusal, Refusals,
    fit_error::FitError,
    verdict::{NodeVerdict, best, first_of},
    verdicts::Verdicts,
};
use crate::scheduling::{
    model::name::NodeName,
    plugin::{
        NodeReasons,
        cycle::Preferences,
        pod_counts::PodCounts,
        score::{Feasible, NormalisedScores, RawScores, Scores, weights::ScoreWeights},
    },
    world::{node_state::NodeState, reservation::Preference},
};

/// What every node makes of one pod.
#[derive(Debug)]
pub struct Evaluation<'a, 'v> {
    filters: Filters<'a>,
    verdicts: &'v Verdicts,
    preferences: Preferences<'a>,
    /// Whether the pod may use a Reservation on some node.
    may_be_reserved: bool,
    weights: ScoreWeights,
}

/// Every node, tested once by all filters.
#[derive(Debug)]
pub struct JudgedNodes<'a> {
    passed: Vec<PassedNode<'a>>,
    /// Those that the plugins which look at one node let through, and others do not.
    pub refusals: Refusals<'a>,
    /// Those that the plugins which look at one node reject.
    failed: Vec<(&'a Arc<NodeState>, NodeReasons)>,
}

/// One node in an evaluation: its scores, normalised over the nodes that fit, or why it is refused.
pub type Evaluated<'a, 'j> = (&'a Arc<NodeState>, Result<Scores, &'j NodeReasons>);

/// A node that passes every filter.
#[derive(Debug)]
struct PassedNode<'a> {
    feasible: Feasible<'a>,
    /// The place of the Reservation that it is for the pod.
    reserved: Option<Preference>,
}

impl JudgedNodes<'_> {
    /// How many nodes fit.
    pub fn fitting(&self) -> usize {
        self.passed.len()
    }

    /// Why the nodes that do not fit are refused.
    pub fn refused(&self) -> FitError {
        self.refusals.counted(self.failed.iter().map(|(_, reasons)| reasons))
    }
}

impl<'a, 'v> Evaluation<'a, 'v> {
    /// What these filters make of the nodes, beside what the plugins that look at one node make of them, which must be up to date.
    pub fn of(
        filters: Filters<'a>,
        verdicts: &'v Verdicts,
        counts: &mut PodCounts,
        weights: ScoreWeights,
    ) -> Self {
        let preferences = filters.preferences(counts, &weights);
        let may_be_reserved = filters.may_be_reserved();
        Self { filters, verdicts, preferences, may_be_reserved, weights }
    }

    /// The filters by which the nodes are judged.
    pub fn filters(&self) -> &Filters<'a> {
        &self.filters
    }

    /// Tests every node. `go_on` is asked before each where that takes more than a look at the verdict; when it says no, there is no answer.
    pub fn judge(&self, mut go_on: impl FnMut() -> ControlFlow<()>) -> Option<JudgedNodes<'a>> {
        let mut judged =
            JudgedNodes { passed: Vec::new(), refusals: Refusals::default(), failed: Vec::new() };
        let is_quick = self.filters.is_open() && !self.may_be_reserved;
        for (state, verdict, _) in self.verdicts.of_nodes(self.filters.world) {
            if !is_quick && go_on().is_break() {
                return None;
            }
            match (self.test(state, verdict), verdict) {
                (Some(Ok(one)), _) => judged.passed.push(one),
                (Some(Err(refusal)), _) => judged.refusals.note(state, refusal),
                (None, NodeVerdict::Fails(fails)) => judged.failed.push((state, fails.reasons.clone())),
                (None, NodeVerdict::Fits(_)) => {}
            }
        }
        Some(judged)
    }

    /// As [`Self::judge`], to the end.
    pub fn judge_all(&self) -> JudgedNodes<'a> {
        self.judge(|| ControlFlow::Continue(())).expect("it is never stopped")
    }

    /// Every node with what is made of it.
    pub fn nodes<'j>(&self, judged: &'j JudgedNodes<'a>) -> Vec<Evaluated<'a, 'j>> {
        let refused = judged.refusals.0.iter().map(|(state, refusal)| (*state, Err(refusal.reasons())));
        let failed = judged.failed.iter().map(|(state, reasons)| (*state, Err(reasons)));
        let scores = self.normalised(&judged.passed);
        let passed = judged.passed.iter().map(|one| one.feasible.node);
        let passed = passed.zip(scores.of_nodes()).map(|(node, scores)| (node, Ok(scores)));
        refused.chain(failed).chain(passed).collect()
    }

    /// The node that the pod goes to: the nominated one if that fits and its `rank` is 0, else as [`Self::choose`] says; `None`: none fits.
    pub fn best(
        &self,
        judged: &JudgedNodes<'a>,
        rank: impl Fn(&NodeName) -> usize,
    ) -> Option<&'a Arc<NodeState>> {
        self.filters.on_nominated(&rank).or_else(|| self.best_of(&judged.passed, rank))
    }

    /// The best node: a smaller `rank` comes before a higher score, 0 is the best; equals go by name. Where the pod fits within Reservations, only
    /// nodes with the best of these are compared.
    pub fn choose(&self, rank: impl Fn(&NodeName) -> usize) -> Result<&'a Arc<NodeState>, Refusals<'a>> {
        let is_alone = self.preferences.is_empty() && !self.may_be_reserved;
        let is_independent = is_alone && self.verdicts.are_independent();
        if is_independent
            && self.filters.is_open()
            && let Some(state) = self.verdicts.best(self.filters.world)
            && rank(&state.info.name) == 0
        {
            return Ok(state);
        }
        let mut refusals = Refusals::default();
        let nodes = self.verdicts.of_nodes(self.filters.world);
        let chosen = if is_independent {
            let scored = nodes.filter_map(|(state, verdict, score)| {
                let NodeVerdict::Fits(fit) = verdict else { return None };
                let tested = self.filters.test(state, &fit.taken);
                let other = tested.map_err(|refusal| refusals.note(state, refusal)).ok()?;
                Some((state, other.map_or(score, |raw| raw.total(&self.weights))))
            });
            best(scored, rank)
        } else {
            let mut passed = Vec::with_capacity(self.verdicts.slots());
            passed.extend(nodes.filter_map(|(state, verdict, _)| {
                let tested = self.test(state, verdict)?;
                tested.map_err(|refusal| refusals.note(state, refusal)).ok()
            }));
            self.best_of(&passed, rank)
        };
        chosen.ok_or(refusals)
    }

    fn best_of(
        &self,
        passed: &[PassedNode<'a>],
        rank: impl Fn(&NodeName) -> usize,
    ) -> Option<&'a Arc<NodeState>> {
        let places = passed.iter().filter_map(|one| Some((one.feasible.node, one.reserved?)));
        let first = first_of(places, &rank);
        let is_candidate = |one: &PassedNode<'_>| {
            first.is_none() || one.reserved.map(|place| (rank(&one.feasible.node.info.name), place)) == first
        };
        let totals = self.normalised(passed).totals(&self.weights);
        let scored = passed.iter().zip(totals).filter(|(one, _)| is_candidate(one));
        best(scored.map(|(one, total)| (one.feasible.node, total)), &rank)
    }

    /// Why no node fits, with the nearest miss, and how the quotas stand if nodes were refused for one.
    pub fn fit_error(&self, refusals: &Refusals<'_>) -> FitError {
        let error = self.fit_error_of_nodes(refusals);
        if refusals.has_quota() { error.beside_quota(self.filters.standing()) } else { error }
    }

    /// As [`Self::fit_error`], without how the quotas stand.
    pub(super) fn fit_error_of_nodes(&self, refusals: &Refusals<'_>) -> FitError {
        let Filters { demand, world, .. } = &self.filters;
        refusals.fit_error(&self.filters, self.verdicts.failed(&demand.ask, world))
    }

    /// What the filters make of a node; `None`: the plugins that look at one node reject it.
    fn test(
        &self,
        state: &'a Arc<NodeState>,
        verdict: &NodeVerdict,
    ) -> Option<Result<PassedNode<'a>, Refusal>> {
        if self.may_be_reserved
            && let Some((within, raw)) = self.filters.in_reservation(state)
        {
            let (feasible, reserved) = (Feasible { node: state, raw }, self.filters.preference(&within));
            return Some(Ok(PassedNode { feasible, reserved }));
        }
        let NodeVerdict::Fits(fit) = verdict else { return None };
        let passed = |other: Option<RawScores>| {
            let feasible = Feasible { node: state, raw: other.unwrap_or(fit.raw) };
            PassedNode { feasible, reserved: None }
        };
        Some(self.filters.test(state, &fit.taken).map(passed))
    }

    /// The scores of these nodes, normalised over all of them.
    fn normalised(&self, passed: &[PassedNode<'a>]) -> NormalisedScores {
        NormalisedScores::of(&self.preferences, passed.iter().map(|one| &one.feasible))
    }
}
