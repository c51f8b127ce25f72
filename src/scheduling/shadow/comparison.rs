//! One decision of another scheduler beside Berth's own for the same pod on the same cluster.

use std::{fmt, ops::ControlFlow};

use crate::{
    device::{CardId, Share},
    scheduling::{
        decide::{Filters, Refusal, evaluation::Evaluation, fit_error::FitError},
        model::{
            name::NodeName,
            pod::{Demand, Holding, PodKey},
        },
        plugin::{Reason, pod_counts::PodCounts, score::weights::ScoreWeights},
        shadow::workload::Workload,
        snapshot::Snapshot,
        world::node_state::NodeState,
    },
};

/// The reason for which a node is infeasible that is not among the nodes.
const UNKNOWN: &str = "NodeUnknown";

/// How the two decisions compare.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Outcome {
    /// The same node, and the same amounts of the same cards as far as these can be read.
    Same,
    /// The same node, but other cards or other amounts of them.
    OtherCards,
    /// Another node, which Berth holds feasible.
    OtherNode,
    /// A node that Berth holds infeasible, while it holds another one feasible.
    Infeasible,
    /// Berth holds no node feasible: it would have left the pod waiting.
    WouldWait,
    /// Berth can't read what the pod asks for: its webhook would have refused it.
    Unreadable,
    /// The cluster just before the decision is not known.
    NotCompared,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 7] = [
        Self::Same,
        Self::OtherCards,
        Self::OtherNode,
        Self::Infeasible,
        Self::WouldWait,
        Self::Unreadable,
        Self::NotCompared,
    ];

    /// The name, as a label of metrics has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::OtherCards => "other_cards",
            Self::OtherNode => "other_node",
            Self::Infeasible => "infeasible",
            Self::WouldWait => "would_wait",
            Self::Unreadable => "unreadable",
            Self::NotCompared => "not_compared",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A node and what a pod gets of its cards.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Placement {
    /// The node.
    pub node: NodeName,
    /// Every share, in order of containers; empty: the cards are not known.
    pub shares: Vec<Share>,
}

impl Placement {
    fn of(holding: &Holding) -> Self {
        let shares = holding.allocations.iter().flat_map(|allocation| allocation.assignment.shares());
        Self { node: holding.node.clone(), shares: shares.cloned().collect() }
    }
}

/// A decision of another scheduler beside Berth's.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The pod.
    pub pod: PodKey,
    /// What made it; `None`: nothing did.
    pub workload: Option<Workload>,
    /// How they compare.
    pub outcome: Outcome,
    /// Why: one of few words, so that it can be counted. For an infeasible node and for a pod that would wait the name of the first
    /// reason, as `berth simulate --explain` prints it.
    pub reason: String,
    /// The same for a person.
    pub message: String,
    /// What the other scheduler decided.
    pub chosen: Placement,
    /// What Berth would have decided.
    pub own: Option<Placement>,
    /// The place of the chosen node among the feasible ones by Berth's score: 1 is the best, equals have the same.
    pub rank: Option<usize>,
    /// How many nodes Berth holds feasible.
    pub feasible: usize,
}

impl Comparison {
    /// Of a pod whose request can't be read.
    pub(super) fn unreadable(pod: PodKey, holding: &Holding, message: &str) -> Self {
        Self::bare(pod, holding, Outcome::Unreadable, "request", message.to_owned())
    }

    /// Of a pod that was decided while nothing was seen.
    pub(super) fn not_compared(pod: PodKey, holding: &Holding, reason: &str) -> Self {
        let message = "the cluster just before the decision is not known".to_owned();
        Self::bare(pod, holding, Outcome::NotCompared, reason, message)
    }

    fn bare(pod: PodKey, holding: &Holding, outcome: Outcome, reason: &str, message: String) -> Self {
        Self {
            pod,
            workload: None,
            outcome,
            reason: reason.to_owned(),
            message,
            chosen: Placement::of(holding),
            own: None,
            rank: None,
            feasible: 0,
        }
    }

    /// Whether it compares this very decision.
    pub(super) fn is_of(&self, holding: &Holding) -> bool {
        self.chosen == Placement::of(holding)
    }
}

/// Compares a decision with Berth's own on this cluster, which must not hold the pod.
pub(super) fn compare(
    pod: &PodKey,
    demand: &Demand,
    before: &Snapshot,
    weights: &ScoreWeights,
    holding: &Holding,
) -> Comparison {
    let bare =
        |outcome, reason: &str, message| Comparison::bare(pod.clone(), holding, outcome, reason, message);
    let mut counts = PodCounts::default();
    let filters = Filters::prepare(demand, before.world(), &mut counts);
    if let Some(error) = filters.rejected() {
        return bare(Outcome::WouldWait, rejection(&error), error.to_string());
    }
    let evaluation = Evaluation::of(filters, &mut counts, weights, || ControlFlow::Continue(()))
        .expect("an evaluation that is never stopped ends");
    let judged = evaluation.nodes();
    let chosen = judged.iter().find(|(state, _)| state.info.name == holding.node);
    let (own, feasible) = (best(&evaluation, weights), evaluation.fitting());
    let found = match (&own, chosen) {
        (Some(_), None) => bare(Outcome::Infeasible, UNKNOWN, "the node is not known".to_owned()),
        (Some(_), Some((_, Err(refusal)))) => bare(Outcome::Infeasible, &first(refusal), words(refusal)),
        (None, chosen) => {
            let refusal = chosen.and_then(|(_, judged)| judged.as_ref().err());
            let reason = refusal.map_or_else(|| UNKNOWN.to_owned(), |refusal| first(refusal));
            bare(Outcome::WouldWait, &reason, evaluation.fit_error().to_string())
        }
        (Some(own), Some((state, Ok(scores)))) => {
            let score = scores.total(weights);
            let others = judged.iter().filter_map(|(_, judged)| judged.as_ref().ok());
            let rank = 1 + others.filter(|other| other.total(weights) > score).count();
            let (outcome, reason, message) = if own.node == holding.node {
                of_cards(state, &own.shares, &Placement::of(holding).shares)
            } else {
                of_nodes(rank, feasible)
            };
            Comparison { rank: Some(rank), ..bare(outcome, reason, message) }
        }
    };
    Comparison { own, feasible, ..found }
}

/// How two feasible nodes compare, of which the chosen one has this rank.
fn of_nodes(rank: usize, feasible: usize) -> (Outcome, &'static str, String) {
    if rank == 1 {
        return (Outcome::OtherNode, "equal_score", "both nodes have the same score".to_owned());
    }
    let message = format!("number {rank} of {feasible} feasible nodes by Berth's score");
    (Outcome::OtherNode, "lower_score", message)
}

/// Where Berth would place a pod on this cluster, which must not hold it.
pub(super) fn prospect(demand: &Demand, now: &Snapshot, weights: &ScoreWeights) -> Option<Placement> {
    let mut counts = PodCounts::default();
    let filters = Filters::prepare(demand, now.world(), &mut counts);
    if filters.rejected().is_some() {
        return None;
    }
    let evaluation = Evaluation::of(filters, &mut counts, weights, || ControlFlow::Continue(()))?;
    best(&evaluation, weights)
}

fn best(evaluation: &Evaluation<'_>, weights: &ScoreWeights) -> Option<Placement> {
    let (node, _) = evaluation.best(weights, |_| 0)?;
    let decision = evaluation.filters().decision(node);
    let shares = decision.allocations.iter().flat_map(|one| one.assignment.shares());
    Some(Placement { shares: shares.cloned().collect(), node: decision.node })
}

/// How two sets of shares of one node compare; a card may have two names.
fn of_cards(node: &NodeState, own: &[Share], chosen: &[Share]) -> (Outcome, &'static str, String) {
    if chosen.is_empty() {
        return (Outcome::Same, "cards_unknown", "the pod does not say which cards it has".to_owned());
    }
    let name = |card: &CardId| {
        let other = node.info.devices.aliases.iter().find(|(alias, _)| alias == card);
        other.map_or_else(|| card.clone(), |(_, other)| other.clone())
    };
    let cards = |shares: &[Share]| {
        let mut cards: Vec<_> = shares.iter().map(|share| name(&share.card)).collect();
        cards.sort();
        cards
    };
    let amounts = |shares: &[Share]| {
        let amounts = shares.iter().map(|share| (name(&share.card), share.memory, share.cores));
        let mut amounts: Vec<_> = amounts.collect();
        amounts.sort();
        amounts
    };
    if cards(own) != cards(chosen) {
        (Outcome::OtherCards, "cards", "other cards of the same node".to_owned())
    } else if amounts(own) != amounts(chosen) {
        (Outcome::OtherCards, "amounts", "other amounts of the same cards".to_owned())
    } else {
        (Outcome::Same, "", String::new())
    }
}

/// The name of what rejects the pod on every node.
fn rejection(error: &FitError) -> &'static str {
    error.plugins().first().map_or("ResourceQuota", |plugin| plugin.name())
}

fn first(refusal: &Refusal) -> String {
    refusal.reasons().first().map(Reason::name).unwrap_or_default()
}

fn words(refusal: &Refusal) -> String {
    FitError::of_nodes([refusal.reasons()]).counted()
}
