//! What every node makes of one pod with all filters, and which node is chosen: over the verdicts of a class, or over those of a dry run, which
//! begins without any.

mod descend;

use std::{ops::ControlFlow, ptr, sync::Arc};

use super::{
    Filters, Refusal, Refusals,
    fit_error::FitError,
    judging::Judging,
    shortlist::{UNFIT, highest, least_listed, slots_with},
    verdict::{FittingNode, NodeVerdict, best, first_of},
    verdicts::Verdicts,
};
use crate::scheduling::{
    model::name::NodeName,
    packing::Packing,
    plugin::{
        NodeReasons,
        contract::FeasibleNodes,
        cycle::Preferences,
        pod_counts::PodCounts,
        score::{
            NodeScores, NormalisedScores, RawScores, Scores, added, range::float, relative_columns,
            weights::ScoreWeights,
        },
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
pub struct JudgedNodes<'a, 'v> {
    passed: Vec<PassedNode<'a, 'v>>,
    /// Those that the plugins which look at one node let through, and others do not.
    pub refusals: Refusals<'a>,
    /// Those that the plugins which look at one node reject.
    failed: Vec<(&'a Arc<NodeState>, NodeReasons)>,
}

/// One node in an evaluation: its scores, normalised over the nodes that fit, or why it is refused.
pub type Evaluated<'a, 'j> = (&'a Arc<NodeState>, Result<Scores, &'j NodeReasons>);

/// Why no node was chosen.
#[derive(Debug)]
pub enum Unchosen<'a> {
    /// None fits; these were let through by the plugins that look at one node.
    Refused(Refusals<'a>),
    /// More of the best nodes have to be judged before one can be chosen.
    NeedsMore,
    /// Every node has to be.
    NeedsAll,
}

impl Unchosen<'_> {
    /// Which nodes are judged next, where these were.
    pub(super) fn judging_after(&self, judging: Judging) -> Judging {
        if matches!(self, Self::NeedsMore) { judging.wider() } else { Judging::All }
    }
}

/// A node that passes every filter. There may be as many as nodes, so it is small.
#[derive(Debug)]
struct PassedNode<'a, 'v> {
    node: &'a Arc<NodeState>,
    scores: FoundScores<'v>,
    /// The scores by what the node costs by its room exactly, where that was found out.
    exact: Option<Box<RawScores>>,
    /// The place of the Reservation that it is for the pod.
    reserved: Option<Box<Preference>>,
}

/// The scores of a node, by a rough guess of what it costs by its room.
#[derive(Debug)]
enum FoundScores<'v> {
    /// Those of its verdict.
    OfVerdict(&'v NodeScores),
    /// Others, within a Reservation or a quota.
    Other(Box<NodeScores>),
}

impl<'a, 'v> PassedNode<'a, 'v> {
    fn new(node: &'a Arc<NodeState>, scores: FoundScores<'v>) -> Self {
        Self { node, scores, exact: None, reserved: None }
    }

    fn scores(&self) -> &NodeScores {
        match &self.scores {
            FoundScores::OfVerdict(scores) => scores,
            FoundScores::Other(scores) => scores,
        }
    }

    /// The scores, as exact as they are known.
    fn raw(&self) -> &RawScores {
        self.exact.as_deref().unwrap_or(&self.scores().raw)
    }

    /// Finds out exactly what the node costs by its room.
    fn value(&mut self, packing: &Packing) {
        if self.raw().is_rough() {
            self.exact = Some(Box::new(self.scores().exact(packing)));
        }
    }
}

impl<'a> JudgedNodes<'a, '_> {
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
        self.refusals.counted(self.failed.iter().map(|(_, reasons)| (reasons, 1)))
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
    pub fn judge(&self, mut go_on: impl FnMut() -> ControlFlow<()>) -> Option<JudgedNodes<'a, 'v>> {
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
                // One without reasons was not judged.
                (None, NodeVerdict::Fails(fails)) if fails.reasons.is_empty() => {}
                (None, NodeVerdict::Fails(fails)) => judged.failed.push((state, fails.reasons.clone())),
                (None, NodeVerdict::Fits(_)) => {}
            }
        }
        Some(judged)
    }

    /// As [`Self::judge`], to the end.
    pub fn judge_all(&self) -> JudgedNodes<'a, 'v> {
        self.judge(|| ControlFlow::Continue(())).expect("it is never stopped")
    }

    /// Every node with what is made of it. What each costs by its room is found out exactly.
    pub fn nodes<'j>(&self, judged: &'j mut JudgedNodes<'a, 'v>) -> Vec<Evaluated<'a, 'j>> {
        let packing = self.filters.world.packing();
        for one in &mut judged.passed {
            one.value(packing);
        }
        let judged = &*judged;
        let refused = judged.refused_nodes().map(|(state, reasons)| (state, Err(reasons)));
        let scores = self.normalised(&judged.passed);
        let passed = judged.passed.iter().map(|one| one.node);
        let passed = passed.zip(scores.of_nodes()).map(|(node, scores)| (node, Ok(scores)));
        refused.chain(passed).collect()
    }

    /// The node that the pod goes to: the nominated one if that fits ([`Filters::on_nominated`]), else as [`Self::choose`] says; `None`: none fits.
    pub fn best(
        &self,
        judged: &mut JudgedNodes<'a, 'v>,
        rank: impl Fn(&NodeName) -> usize,
    ) -> Option<&'a Arc<NodeState>> {
        let best = |passed| self.best_of(passed, &rank, || ControlFlow::Continue(()));
        self.filters.on_nominated(&rank).or_else(|| best(&mut judged.passed).continue_value().flatten())
    }

    /// As [`Self::best`], with the weighted sum of that node's scores, normalised over the nodes that fit. `go_on` is asked before it is found out what a
    /// node costs by its room; when it says no, there is no answer.
    pub fn best_with_total(
        &self,
        judged: &mut JudgedNodes<'a, 'v>,
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
        if let Some(at) = passed.iter().position(|one| Arc::ptr_eq(one.node, node)) {
            passed[at].value(self.filters.world.packing());
            let total_of = |scores: Scores| scores.total(&self.weights);
            total = self.normalised(passed).of_nodes().nth(at).map_or(0.0, total_of);
        }
        ControlFlow::Continue(Some((node, total)))
    }

    /// The filters, to be evaluated anew once more nodes were judged.
    pub(super) fn into_filters(self) -> Filters<'a> {
        self.filters
    }

    /// The best node: a smaller `rank` comes before a higher score, 0 is the best; equals go by name. Where the pod fits within Reservations, only
    /// nodes with the best of these are compared.
    pub fn choose(&self, rank: impl Fn(&NodeName) -> usize) -> Result<&'a Arc<NodeState>, Unchosen<'a>> {
        let is_alone = self.preferences.is_empty() && !self.may_be_reserved;
        let is_independent = is_alone && self.verdicts.are_independent();
        if is_independent && !self.filters.has_quota() {
            let known = self.filters.is_open().then(|| self.verdicts.best(self.filters.world)).flatten();
            let highest = known.map_or_else(|| self.descend(|_| true), Ok)?;
            if rank(&highest.info.name) == 0 {
                return Ok(highest);
            }
            match self.descend(|node| rank(&node.info.name) == 0) {
                Ok(first) => return Ok(first),
                Err(Unchosen::NeedsMore) => return Err(Unchosen::NeedsMore),
                Err(Unchosen::NeedsAll | Unchosen::Refused(_)) => {}
            }
        }
        if !self.verdicts.are_complete() {
            return Err(Unchosen::NeedsAll);
        }
        if !is_independent
            && !self.may_be_reserved
            && self.filters.is_open()
            && let Some(state) = self.best_by_slot()
            && rank(&state.info.name) == 0
        {
            return Ok(state);
        }
        let mut refusals = Refusals::default();
        let nodes = self.verdicts.of_nodes(self.filters.world);
        let mut passed = Vec::with_capacity(self.verdicts.slots());
        passed.extend(nodes.filter_map(|(state, verdict, _)| {
            let tested = self.test(state, verdict)?;
            tested.map_err(|refusal| refusals.note(state, refusal)).ok()
        }));
        let go_on = || ControlFlow::Continue(());
        let chosen = if is_independent {
            let added = vec![0; passed.len()];
            self.best_by(&mut passed, &added, |_| true, rank, go_on)
        } else {
            self.best_of(&mut passed, rank, go_on)
        };
        chosen.continue_value().flatten().ok_or(Unchosen::Refused(refusals))
    }

    /// The best node, whatever its rank, where there is nothing to test beside the verdicts and no Reservation that the pod may use; `None`: none fits.
    /// Few nodes are looked at beyond what is known by slot.
    fn best_by_slot(&self) -> Option<&'a Arc<NodeState>> {
        let world = self.filters.world;
        let (slots, mut totals) = self.verdicts.fitting();
        let relative = self.verdicts.relative(&slots);
        let added = added(&self.preferences, self.feasible(&slots), &relative, &self.weights);
        for (total, added) in totals.iter_mut().zip(&added) {
            *total += float(*added);
        }
        if self.verdicts.are_by_room() {
            let least = least_listed(totals.iter().copied());
            // Nodes that are alike share a verdict.
            let mut known: Option<(&FittingNode, f64)> = None;
            for ((total, added), slot) in totals.iter_mut().zip(&added).zip(&slots) {
                let listed = self.verdicts.fit(*slot).filter(|_| *total >= least);
                *total = listed.map_or(UNFIT, |fit| {
                    let exact = || (fit, fit.scores.exact(world.packing()).total(&self.weights));
                    let known = match &mut known {
                        Some(known) if ptr::eq(known.0, fit) => known,
                        known => known.insert(exact()),
                    };
                    known.1 + float(*added)
                });
            }
        }
        world.nodes.first_by_name(slots_with(highest(&totals), &totals).map(|at| slots[at]))
    }

    fn best_of(
        &self,
        passed: &mut [PassedNode<'a, 'v>],
        rank: impl Fn(&NodeName) -> usize,
        go_on: impl FnMut() -> ControlFlow<()>,
    ) -> ControlFlow<(), Option<&'a Arc<NodeState>>> {
        let places = passed.iter().filter_map(|one| Some((one.node, *one.reserved.clone()?)));
        let first = first_of(places, &rank);
        let is_candidate = |one: &PassedNode<'_, '_>| {
            let place = || one.reserved.as_ref().map(|place| (rank(&one.node.info.name), **place));
            first.is_none() || place() == first
        };
        let slots: Vec<_> = passed.iter().map(|one| one.node.slot).collect();
        let raw: Vec<_> = passed.iter().map(PassedNode::raw).collect();
        let relative = relative_columns(&raw);
        let added = added(&self.preferences, self.feasible(&slots), &relative, &self.weights);
        self.best_by(passed, &added, is_candidate, &rank, go_on)
    }

    /// The best of the candidates by their scores and what scores that depend on other nodes have `added`: the best of the shortlist, or if that comes after
    /// others by its `rank`, of the shortlist of those that come first.
    fn best_by(
        &self,
        passed: &mut [PassedNode<'a, 'v>],
        added: &[i64],
        is_candidate: impl Fn(&PassedNode<'a, 'v>) -> bool,
        rank: impl Fn(&NodeName) -> usize,
        mut go_on: impl FnMut() -> ControlFlow<()>,
    ) -> ControlFlow<(), Option<&'a Arc<NodeState>>> {
        let rough: Vec<f64> = passed.iter().zip(added).map(|(one, added)| self.total(one, *added)).collect();
        if passed.iter().all(|one| one.scores().vacancy.is_none()) {
            let scored = passed.iter().zip(&rough).filter(|(one, _)| is_candidate(one));
            let scored = scored.map(|(one, total)| (one.node, *total));
            // Names are compared, and ranks looked up, of the highest alone, as long as its rank does not matter.
            let highest = scored.clone().map(|(_, total)| total).max_by(f64::total_cmp);
            let is_highest = |total: &f64| highest.is_some_and(|highest| highest.total_cmp(total).is_eq());
            let equals = scored.clone().filter(|(_, total)| is_highest(total));
            let first = self.filters.world.nodes.first_by_name(equals.map(|(node, _)| node.slot));
            let best = first.filter(|node| rank(&node.info.name) == 0).or_else(|| best(scored, rank));
            return ControlFlow::Continue(best);
        }
        let mut among: Vec<usize> = (0..passed.len()).filter(|at| is_candidate(&passed[*at])).collect();
        let rank_of = |passed: &[PassedNode<'a, 'v>], at: usize| rank(&passed[at].node.info.name);
        let first = self.best_listed(passed, (&rough, added), &among, &mut go_on)?;
        let Some(at) = first else { return ControlFlow::Continue(None) };
        if rank_of(passed, at) == 0 {
            return ControlFlow::Continue(Some(passed[at].node));
        }
        let ranks: Vec<usize> = among.iter().map(|at| rank_of(passed, *at)).collect();
        let least = ranks.iter().min();
        let mut ranks = ranks.iter();
        among.retain(|_| ranks.next() == least);
        let best = self.best_listed(passed, (&rough, added), &among, &mut go_on)?;
        ControlFlow::Continue(best.map(|at| passed[at].node))
    }

    /// The place of the best of these nodes, whatever their rank, with the totals of all as long as what they cost by their rooms is guessed, and what is
    /// added in these: of those on the shortlist that cost is found out exactly.
    fn best_listed(
        &self,
        passed: &mut [PassedNode<'a, 'v>],
        (rough, added): (&[f64], &[i64]),
        among: &[usize],
        mut go_on: impl FnMut() -> ControlFlow<()>,
    ) -> ControlFlow<(), Option<usize>> {
        let least = least_listed(among.iter().map(|at| rough[*at]));
        let listed: Vec<usize> = among.iter().copied().filter(|at| rough[*at] >= least).collect();
        for at in &listed {
            if passed[*at].raw().is_rough() {
                go_on()?;
                passed[*at].value(self.filters.world.packing());
            }
        }
        let scored = listed.iter().map(|at| (passed[*at].node, self.total(&passed[*at], added[*at])));
        let chosen = best(scored, |_| 0);
        let is_it = |at: &usize| chosen.is_some_and(|node| Arc::ptr_eq(passed[*at].node, node));
        ControlFlow::Continue(listed.into_iter().find(is_it))
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
        verdict: &'v NodeVerdict,
    ) -> Option<Result<PassedNode<'a, 'v>, Refusal>> {
        if self.may_be_reserved
            && let Some((within, scores)) = self.filters.in_reservation(state)
        {
            let reserved = self.filters.preference(&within).map(Box::new);
            let scores = FoundScores::Other(Box::new(scores));
            return Some(Ok(PassedNode { reserved, ..PassedNode::new(state, scores) }));
        }
        let NodeVerdict::Fits(fit) = verdict else { return None };
        let scores = |other: Option<NodeScores>| {
            other.map_or(FoundScores::OfVerdict(&fit.scores), |other| FoundScores::Other(Box::new(other)))
        };
        let tested = self.filters.test(state, &fit.taken);
        Some(tested.map(|other| PassedNode::new(state, scores(other))))
    }

    /// The scores of these nodes, normalised over all of them.
    fn normalised<'p>(&self, passed: &'p [PassedNode<'a, 'v>]) -> NormalisedScores<'p> {
        let slots: Vec<_> = passed.iter().map(|one| one.node.slot).collect();
        let raw = passed.iter().map(PassedNode::raw).collect();
        NormalisedScores::of(&self.preferences, self.feasible(&slots), raw)
    }

    /// The weighted sum of a node's scores, where those that depend on other nodes add so much; up to a number that is the same for all nodes.
    fn total(&self, one: &PassedNode<'a, 'v>, added: i64) -> f64 {
        one.raw().total(&self.weights) + float(added)
    }

    fn feasible<'s>(&self, slots: &'s [usize]) -> FeasibleNodes<'s>
    where
        'a: 's,
    {
        FeasibleNodes { slots, nodes: &self.filters.world.nodes }
    }
}
