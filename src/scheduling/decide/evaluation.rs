//! What every node makes of one pod with all filters, and which node is chosen: over the verdicts of a class, or over those of a dry run, which
//! begins without any.

use std::{ops::ControlFlow, sync::Arc};

use super::{
    Filters, Refusal, Refusals,
    fit_error::FitError,
    verdict::{FittingNode, NodeVerdict, best, first_of},
    verdicts::Verdicts,
};
use crate::scheduling::{
    model::name::NodeName,
    packing::{Packing, vacancy::Vacancy},
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
    /// The room that would be left, where it is not known exactly what that costs.
    estimated: Option<Arc<Vacancy>>,
}

impl<'a> PassedNode<'a> {
    /// A node with these scores.
    fn new(node: &'a Arc<NodeState>, raw: RawScores) -> Self {
        Self { feasible: Feasible { node, raw }, reserved: None, estimated: None }
    }

    /// A node with the scores of its verdict, as far as these are known by now.
    fn of_verdict(node: &'a Arc<NodeState>, fit: &FittingNode, packing: &Packing) -> Self {
        let mut passed = Self::new(node, fit.raw);
        if let Some(vacancy) = fit.vacancy.as_ref().filter(|_| fit.raw.is_estimate()) {
            passed.feasible.raw.value(vacancy, packing);
            passed.estimated = passed.feasible.raw.is_estimate().then(|| vacancy.clone());
        }
        passed
    }

    /// Finds out what the node costs by its room, until it is known exactly or to be so many points more than its score says; how much more it is.
    fn settle(&mut self, packing: &Packing, more: f64) -> f64 {
        let raw = &mut self.feasible.raw;
        let Some(vacancy) = self.estimated.take() else { return 0.0 };
        let before = raw.cost().unwrap_or_default();
        raw.settle(&vacancy, packing, more);
        if raw.is_estimate() {
            self.estimated = Some(vacancy);
        }
        raw.cost().unwrap_or_default() - before
    }
}

impl<'a> JudgedNodes<'a> {
    /// How many nodes fit.
    pub fn fitting(&self) -> usize {
        self.passed.len()
    }

    /// The nodes that do not fit, each with why.
    pub fn refused_nodes(&self) -> impl Iterator<Item = (&'a Arc<NodeState>, &NodeReasons)> {
        let refused = self.refusals.0.iter().map(|(state, refusal)| (*state, refusal.reasons()));
        refused.chain(self.failed.iter().map(|(state, reasons)| (*state, reasons)))
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

    /// Every node with what is made of it. What each costs by its room is found out exactly.
    pub fn nodes<'j>(&self, judged: &'j mut JudgedNodes<'a>) -> Vec<Evaluated<'a, 'j>> {
        let packing = self.filters.world.packing();
        for one in &mut judged.passed {
            one.settle(packing, f64::INFINITY);
        }
        let judged = &*judged;
        let refused = judged.refused_nodes().map(|(state, reasons)| (state, Err(reasons)));
        let scores = self.normalised(&judged.passed);
        let passed = judged.passed.iter().map(|one| one.feasible.node);
        let passed = passed.zip(scores.of_nodes()).map(|(node, scores)| (node, Ok(scores)));
        refused.chain(passed).collect()
    }

    /// The node that the pod goes to: the nominated one if that fits and its `rank` is 0, else as [`Self::choose`] says; `None`: none fits.
    pub fn best(
        &self,
        judged: &mut JudgedNodes<'a>,
        rank: impl Fn(&NodeName) -> usize,
    ) -> Option<&'a Arc<NodeState>> {
        let best = |passed| self.best_of(passed, &rank, || ControlFlow::Continue(()));
        self.filters.on_nominated(&rank).or_else(|| best(&mut judged.passed).continue_value().flatten())
    }

    /// As [`Self::best`], with the weighted sum of that node's scores, normalised over the nodes that fit. `go_on` is asked before it is found out what a
    /// node costs by its room; when it says no, there is no answer.
    pub fn best_with_total(
        &self,
        judged: &mut JudgedNodes<'a>,
        rank: impl Fn(&NodeName) -> usize,
        mut go_on: impl FnMut() -> ControlFlow<()>,
    ) -> ControlFlow<(), Option<(&'a Arc<NodeState>, f64)>> {
        let passed = &mut judged.passed;
        let nominated = self.filters.on_nominated(&rank);
        let node = match nominated {
            Some(node) => Some(node),
            None => self.best_of(passed, rank, &mut go_on)?,
        };
        let Some(node) = node else { return ControlFlow::Continue(None) };
        let mut total = 0.0;
        if let Some(at) = passed.iter().position(|one| Arc::ptr_eq(one.feasible.node, node)) {
            let packing = self.filters.world.packing();
            passed[at].settle(packing, f64::INFINITY);
            settle_least(passed, packing, go_on)?;
            total = self.normalised(passed).totals(&self.weights)[at];
        }
        ControlFlow::Continue(Some((node, total)))
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
        if is_independent && !self.verdicts.has_estimates() {
            let scored = nodes.filter_map(|(state, verdict, score)| {
                let NodeVerdict::Fits(fit) = verdict else { return None };
                let tested = self.filters.test(state, &fit.taken);
                let other = tested.map_err(|refusal| refusals.note(state, refusal)).ok()?;
                Some((state, other.map_or(score, |raw| raw.total(&self.weights))))
            });
            return best(scored, rank).ok_or(refusals);
        }
        let mut passed = Vec::with_capacity(self.verdicts.slots());
        passed.extend(nodes.filter_map(|(state, verdict, _)| {
            let tested = self.test(state, verdict)?;
            tested.map_err(|refusal| refusals.note(state, refusal)).ok()
        }));
        let go_on = || ControlFlow::Continue(());
        let chosen = if is_independent {
            let total = |one: &PassedNode<'_>| one.feasible.raw.total(&self.weights);
            let totals = |passed: &[PassedNode<'a>]| passed.iter().map(total).collect();
            self.settled_best(&mut passed, totals, |_| true, rank, go_on)
        } else {
            self.best_of(&mut passed, rank, go_on)
        };
        chosen.continue_value().flatten().ok_or(refusals)
    }

    fn best_of(
        &self,
        passed: &mut [PassedNode<'a>],
        rank: impl Fn(&NodeName) -> usize,
        mut go_on: impl FnMut() -> ControlFlow<()>,
    ) -> ControlFlow<(), Option<&'a Arc<NodeState>>> {
        let places = passed.iter().filter_map(|one| Some((one.feasible.node, one.reserved?)));
        let first = first_of(places, &rank);
        let is_candidate = |one: &PassedNode<'_>| {
            first.is_none() || one.reserved.map(|place| (rank(&one.feasible.node.info.name), place)) == first
        };
        settle_least(passed, self.filters.world.packing(), &mut go_on)?;
        let totals = |passed: &[PassedNode<'a>]| self.normalised(passed).totals(&self.weights);
        self.settled_best(passed, totals, is_candidate, &rank, go_on)
    }

    /// The best of the candidates by these totals: what nodes cost by their rooms is found out as far as it takes to tell which that is.
    fn settled_best(
        &self,
        passed: &mut [PassedNode<'a>],
        totals: impl Fn(&[PassedNode<'a>]) -> Vec<f64>,
        is_candidate: impl Fn(&PassedNode<'a>) -> bool,
        rank: impl Fn(&NodeName) -> usize,
        mut go_on: impl FnMut() -> ControlFlow<()>,
    ) -> ControlFlow<(), Option<&'a Arc<NodeState>>> {
        let packing = self.filters.world.packing();
        let mut at_once = 1;
        loop {
            let totals = totals(passed);
            let scored = passed.iter().zip(&totals).filter(|(one, _)| is_candidate(one));
            let chosen = best(scored.map(|(one, total)| (one.feasible.node, *total)), &rank);
            let Some(chosen) = chosen else { return ControlFlow::Continue(None) };
            let is_estimate =
                |one: &PassedNode<'_>| one.estimated.is_some() && Arc::ptr_eq(one.feasible.node, chosen);
            let Some(at) = passed.iter().position(is_estimate) else {
                // No other comes before it, whatever it costs.
                return ControlFlow::Continue(Some(chosen));
            };
            let points = |total: f64| self.weights.room_points(total);
            let weighed = |total: f64, more: f64| total - more * self.weights.of_room();
            let mut most = weighed(totals[at], passed[at].settle(packing, f64::INFINITY));
            let could_be_best = |other: &usize| {
                let one = &passed[*other];
                one.estimated.is_some() && totals[*other] >= most && is_candidate(one)
            };
            let mut others: Vec<usize> = (0..passed.len()).filter(could_be_best).collect();
            others.sort_unstable_by(|one, other| totals[*other].total_cmp(&totals[*one]));
            for other in others.into_iter().take(at_once) {
                if totals[other] < most {
                    break;
                }
                go_on()?;
                let total =
                    weighed(totals[other], passed[other].settle(packing, points(totals[other] - most)));
                if passed[other].estimated.is_none() {
                    most = most.max(total);
                }
            }
            at_once = at_once.saturating_mul(8);
        }
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
            let reserved = self.filters.preference(&within);
            return Some(Ok(PassedNode { reserved, ..PassedNode::new(state, raw) }));
        }
        let NodeVerdict::Fits(fit) = verdict else { return None };
        let packing = self.filters.world.packing();
        let passed = |other: Option<RawScores>| match other {
            Some(raw) => PassedNode::new(state, raw),
            None => PassedNode::of_verdict(state, fit, packing),
        };
        Some(self.filters.test(state, &fit.taken).map(passed))
    }

    /// The scores of these nodes, normalised over all of them.
    fn normalised(&self, passed: &[PassedNode<'a>]) -> NormalisedScores {
        NormalisedScores::of(&self.preferences, passed.iter().map(|one| &one.feasible))
    }
}

/// Finds out which of the nodes costs least by its room, and how much: scores are normalised by that.
fn settle_least(
    passed: &mut [PassedNode<'_>],
    packing: &Packing,
    mut go_on: impl FnMut() -> ControlFlow<()>,
) -> ControlFlow<()> {
    if passed.iter().all(|one| one.estimated.is_none()) {
        return ControlFlow::Continue(());
    }
    let cost = |one: &PassedNode<'_>| one.feasible.raw.cost().unwrap_or(f64::INFINITY);
    let (mut estimated, known): (Vec<_>, Vec<_>) =
        (0..passed.len()).partition(|at| passed[*at].estimated.is_some());
    let mut least = known.into_iter().map(|at| cost(&passed[at])).fold(f64::INFINITY, f64::min);
    estimated.sort_unstable_by(|one, other| cost(&passed[*one]).total_cmp(&cost(&passed[*other])));
    for at in estimated {
        let own = cost(&passed[at]);
        if own > least {
            break;
        }
        go_on()?;
        passed[at].settle(packing, least - own);
        if passed[at].estimated.is_none() {
            least = least.min(cost(&passed[at]));
        }
    }
    ControlFlow::Continue(())
}
