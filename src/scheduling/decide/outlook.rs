//! The cluster as the scheduler saw it last, for others to ask where a pod would go now, and why not elsewhere.
//!
//! A picture: it holds no capacity, and nothing that is asked of it reaches the scheduler. It must not know which pod holds what.

use std::{collections::BTreeMap, ops::ControlFlow, sync::Arc};

use super::{
    Filters,
    dry_runs::DryRuns,
    evaluation::Evaluation,
    fit_error::{Awaits, FitError},
    judging::{GoOn, Judging},
};
use crate::{
    device::{Allocation, Card, CoreUnit, Inventory, Share},
    dra::ExtendedResources,
    scheduling::{
        model::{
            message::Details,
            name::NodeName,
            node::NodeInfo,
            pod::Demand,
            steps::{Allowance, PER_MILLISECOND},
        },
        plugin::{pod_counts::PodCounts, score::weights::ScoreWeights},
        world::{World, node_state::NodeState},
    },
};

/// The cluster as the scheduler saw it last; clones share it.
#[derive(Clone, Debug)]
pub struct Outlook(Arc<Picture>);

#[derive(Debug)]
struct Picture {
    world: World,
    /// Nodes whose lines are full or held up, and how they rank.
    passed_over: BTreeMap<NodeName, usize>,
    /// How much each plugin's score counts.
    weights: ScoreWeights,
}

/// Where a pod would go now, and what the other nodes make of it.
#[derive(Clone, Debug)]
pub struct Prospect {
    /// The node that it would go to.
    pub node: Arc<NodeState>,
    /// What it would be given for each of its requests of cards, and what their compute is counted in.
    pub allocations: Vec<(Allocation, CoreUnit)>,
    /// How well that node suits it; higher is better.
    pub score: f64,
    /// What the other nodes make of it; `None`: there was no time to find that out.
    pub others: Option<OtherNodes>,
}

/// What nodes other than the one that a pod would go to make of it.
#[derive(Clone, Debug)]
pub struct OtherNodes {
    /// How many would have it too.
    pub fitting: usize,
    /// Why the rest would not.
    pub refused: FitError,
}

/// What is found out about all nodes before the first is judged takes about 3 ms at most.
const DRY_RUN: Allowance = Allowance::of(3 * PER_MILLISECOND);

/// Text up to this length names cards by their uuid, longer text by their number.
const ROOM: usize = 200;

impl Outlook {
    /// This world; `passed_over` are the nodes that come after others, and how they rank, and `weights` how much each plugin's score counts.
    pub(in crate::scheduling) fn new(
        world: World,
        passed_over: BTreeMap<NodeName, usize>,
        weights: ScoreWeights,
    ) -> Self {
        Self(Arc::new(Picture { world, passed_over, weights }))
    }

    /// Every node, by name.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<NodeInfo>> {
        self.world().nodes().map(|state| &state.info)
    }

    /// For which extended resources classes of devices stand.
    pub fn extended_resources(&self) -> &Arc<ExtendedResources> {
        self.world().resource_claims().extended()
    }

    /// The cluster.
    pub fn world(&self) -> &World {
        &self.0.world
    }

    /// Judges nodes as the scheduler would for a pod, and ranks them as it would. `go_on` is asked before each node; when it says no, the answer is
    /// without what other nodes make of the pod, and there is none if the best node is not known by then. Nor is there one where what is found out
    /// before about all nodes would take too long.
    pub fn place(
        &self,
        demand: &Demand,
        go_on: impl FnMut() -> ControlFlow<()>,
    ) -> Option<Result<Prospect, FitError>> {
        self.place_by(&mut DryRuns::default(), demand, go_on)
    }

    /// As [`Self::place`], with what is known from dry runs before: only nodes are judged that have changed or are like no other.
    pub fn place_by(
        &self,
        known: &mut DryRuns,
        demand: &Demand,
        mut go_on: impl FnMut() -> ControlFlow<()>,
    ) -> Option<Result<Prospect, FitError>> {
        let Picture { world, passed_over, weights } = &*self.0;
        let mut counts = PodCounts::bounded(DRY_RUN).up_to(DRY_RUN.left());
        let filters = Filters::prepare(demand, world, &mut counts);
        let rejected = filters.rejected();
        if counts.has_given_up()
            || rejected.as_ref().is_some_and(|error| error.awaits() == Awaits::Comparison)
        {
            return None;
        }
        if let Some(error) = rejected {
            return Some(Err(error));
        }
        let rank = |node: &NodeName| passed_over.get(node).copied().unwrap_or(0);
        let (mut judging, mut best, mut filters) = (filters.judging(), None, filters);
        loop {
            let judged = known.judge(&demand.ask, (world, *weights), judging, &mut go_on);
            let Some(verdicts) = judged else { return best.map(Ok) };
            let evaluation = Evaluation::of(filters, verdicts, &mut counts, *weights);
            if counts.has_given_up() {
                return best.map(Ok);
            }
            if verdicts.are_complete() {
                return place_of(&evaluation, rank, &mut go_on).or(best.map(Ok));
            }
            judging = match evaluation.choose(rank) {
                Ok(_) => {
                    // All that takes long is known by now, and a late answer is worth more than none.
                    let found = place_of(&evaluation, rank, &mut || ControlFlow::Continue(()))?;
                    // What was not judged says nothing yet.
                    best = found.ok().map(|found| Prospect { others: None, ..found });
                    Judging::All
                }
                Err(unchosen) => unchosen.judging_after(judging),
            };
            filters = evaluation.into_filters();
        }
    }

    /// Finds out for dry runs what is known of nodes whatever pods ask for, so that the next one need not.
    pub fn prepare(&self, known: &mut DryRuns) {
        known.prepare(self.world(), self.weights());
    }

    /// How much each plugin's score counts.
    pub fn weights(&self) -> ScoreWeights {
        self.0.weights
    }

    /// Whether the node comes after others: its line is full or held up.
    pub(in crate::scheduling) fn is_passed_over(&self, name: &str) -> bool {
        self.0.passed_over.get(name).is_some_and(|rank| *rank > 0)
    }
}

/// Where the pod goes by nodes that were judged, or why nowhere; `None`: `go_on` has said no.
fn place_of(
    evaluation: &Evaluation<'_, '_>,
    rank: impl Fn(&NodeName) -> usize,
    go_on: GoOn<'_>,
) -> Option<Result<Prospect, FitError>> {
    let mut judged = evaluation.judge(&mut *go_on)?;
    let best = evaluation.best_with_total(&mut judged, rank, go_on).continue_value()?;
    let Some((node, score)) = best else {
        return Some(Err(evaluation.fit_error(&judged.refusals)));
    };
    let (filters, node) = (evaluation.filters(), node.clone());
    let allocations = filters.decision(&node).allocations;
    let units = filters.demand.ask.devices.iter().map(|device| device.profile.core_budget.unit());
    let allocations = allocations.into_iter().zip(units).collect();
    let others = OtherNodes { fitting: judged.fitting().saturating_sub(1), refused: judged.refused() };
    Some(Ok(Prospect { node, allocations, score, others: Some(others) }))
}

impl Prospect {
    /// The node and the shares: `node-1: GPU-a (4000 MiB, 30 %)`; cards that would make it long are called by their number.
    pub fn place(&self) -> String {
        let by_uuid = self.shares(|share, _| share.card.to_string());
        if by_uuid.chars().count() <= ROOM {
            return by_uuid;
        }
        self.shares(|share, card| {
            card.map_or_else(|| share.card.to_string(), |card| format!("GPU {}", card.index))
        })
    }

    fn shares<'a>(&'a self, called: impl Fn(&Share, Option<&Card>) -> String) -> String {
        let offers = self.node.info.devices.offers.iter().filter_map(|offer| offer.inventory.as_deref());
        let cards: BTreeMap<_, _> = offers.flat_map(Inventory::cards).map(|card| (&card.id, card)).collect();
        let each = |(allocation, unit): &'a (Allocation, CoreUnit)| {
            allocation.assignment.shares().map(|share| (share, *unit))
        };
        let shares = self.allocations.iter().flat_map(each).map(|(share, core_unit)| {
            let card = called(share, cards.get(&share.card).copied());
            format!("{card} ({}, {})", share.memory, core_unit.words(share.cores))
        });
        format!("{}: {}", self.node.info.name, shares.collect::<Vec<_>>().join(", "))
    }

    /// What the other nodes make of it, in kube-scheduler's form: `1/3 other nodes are available: 1 Insufficient cpu, 1 Insufficient GPU
    /// memory.`; `None`: there are no others, or that is not known.
    pub fn elsewhere(&self, details: Details) -> Option<String> {
        let OtherNodes { fitting, refused } = self.others.as_ref()?;
        let nodes = fitting + refused.nodes();
        match (nodes, refused.nodes()) {
            (0, _) => None,
            (_, 0) => Some(format!("{nodes}/{nodes} other nodes are available.")),
            _ => {
                let counted = refused.counted_for(details);
                Some(format!("{fitting}/{nodes} other nodes are available: {counted}."))
            }
        }
    }
}

#[cfg(test)]
pub(in crate::scheduling) mod tests;
