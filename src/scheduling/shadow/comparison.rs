//! One decision of another scheduler beside Berth's own for the same pod on the same cluster.

use std::{borrow::Cow, fmt};

use crate::{
    device::{CardId, Share},
    scheduling::{
        decide::{
            Filters,
            evaluation::{Evaluation, JudgedNodes},
            fit_error::FitError,
            verdicts::Verdicts,
        },
        model::{
            name::NodeName,
            pod::{Demand, Holding, PodKey},
            workload::Workload,
        },
        plugin::{NodeReasons, Reason, pod_counts::PodCounts, score::weights::ScoreWeights},
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

/// Why two decisions compare as they do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ComparisonReason {
    /// Nothing differs.
    Equal,
    /// The node is the same, and the pod does not say which cards it has.
    CardsUnknown,
    /// The cards are others of the same node.
    Cards,
    /// The amounts of the same cards are others.
    Amounts,
    /// Both nodes have the same score.
    EqualScore,
    /// The chosen node has a lower score than others.
    LowerScore {
        /// Its place among the feasible ones: 1 is the best.
        rank: usize,
        /// How many are feasible.
        feasible: usize,
    },
    /// The chosen node is not known.
    NodeUnknown,
    /// The chosen node is rejected.
    NodeRejected(NodeReasons),
    /// The pod is rejected on every node alike.
    PodRejected(Box<FitError>),
    /// No node fits.
    NoFit {
        /// Why the chosen one does not; `None`: it is not known.
        chosen: Option<NodeReasons>,
        /// Why none does.
        error: Box<FitError>,
    },
    /// The pod's request can't be read, as this text says.
    Unreadable(String),
    /// The cluster was not known yet when the decision was made.
    NotSynced,
    /// The decision was made while nothing was seen.
    WatchGap,
}

impl ComparisonReason {
    /// How the two decisions compare, then.
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Equal | Self::CardsUnknown => Outcome::Same,
            Self::Cards | Self::Amounts => Outcome::OtherCards,
            Self::EqualScore | Self::LowerScore { .. } => Outcome::OtherNode,
            Self::NodeUnknown | Self::NodeRejected(_) => Outcome::Infeasible,
            Self::PodRejected(_) | Self::NoFit { .. } => Outcome::WouldWait,
            Self::Unreadable(_) => Outcome::Unreadable,
            Self::NotSynced | Self::WatchGap => Outcome::NotCompared,
        }
    }

    /// It in one of few words, so that it can be counted. For an infeasible node and for a pod that would wait the name of the first
    /// reason, as `berth simulate --explain` prints it.
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Self::Equal => "".into(),
            Self::CardsUnknown => "cards_unknown".into(),
            Self::Cards => "cards".into(),
            Self::Amounts => "amounts".into(),
            Self::EqualScore => "equal_score".into(),
            Self::LowerScore { .. } => "lower_score".into(),
            Self::NodeUnknown | Self::NoFit { chosen: None, .. } => UNKNOWN.into(),
            Self::NodeRejected(reasons) | Self::NoFit { chosen: Some(reasons), .. } => {
                reasons.first().map(Reason::name).unwrap_or_default().into()
            }
            Self::PodRejected(error) => {
                error.plugins().first().map_or("ResourceQuota", |plugin| plugin.name()).into()
            }
            Self::Unreadable(_) => "request".into(),
            Self::NotSynced => "not_synced".into(),
            Self::WatchGap => "watch_gap".into(),
        }
    }
}

/// For a person.
impl fmt::Display for ComparisonReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Equal => "",
            Self::CardsUnknown => "the pod does not say which cards it has",
            Self::Cards => "other cards of the same node",
            Self::Amounts => "other amounts of the same cards",
            Self::EqualScore => "both nodes have the same score",
            Self::LowerScore { rank, feasible } => {
                return write!(formatter, "number {rank} of {feasible} feasible nodes by Berth's score");
            }
            Self::NodeUnknown => "the node is not known",
            Self::NodeRejected(reasons) => {
                return formatter.write_str(&FitError::of_nodes([reasons]).counted());
            }
            Self::PodRejected(error) | Self::NoFit { error, .. } => return error.fmt(formatter),
            Self::Unreadable(message) => message,
            Self::NotSynced | Self::WatchGap => "the cluster just before the decision is not known",
        })
    }
}

/// A node and what a pod gets of its cards.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ComparedPlacement {
    /// The node.
    pub node: NodeName,
    /// Every share, in order of containers; empty: the cards are not known.
    pub shares: Vec<Share>,
}

impl ComparedPlacement {
    fn of(holding: &Holding) -> Self {
        let shares = holding.allocations.iter().flat_map(|allocation| allocation.assignment.shares());
        Self { node: holding.node.clone(), shares: shares.cloned().collect() }
    }
}

/// A decision of another scheduler beside Berth's.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Comparison {
    /// The pod.
    pub pod: PodKey,
    /// What made it; `None`: nothing did.
    pub workload: Option<Workload>,
    /// How they compare, and why.
    pub reason: ComparisonReason,
    /// What the other scheduler decided.
    pub chosen: ComparedPlacement,
    /// What Berth would have decided.
    pub own: Option<ComparedPlacement>,
    /// The place of the chosen node among the feasible ones by Berth's score: 1 is the best, equals have the same.
    pub rank: Option<usize>,
    /// How many nodes Berth holds feasible.
    pub feasible: usize,
}

impl Comparison {
    /// Without what Berth would have decided.
    pub(super) fn bare(pod: PodKey, holding: &Holding, reason: ComparisonReason) -> Self {
        let chosen = ComparedPlacement::of(holding);
        Self { pod, workload: None, reason, chosen, own: None, rank: None, feasible: 0 }
    }

    /// How the two decisions compare.
    pub fn outcome(&self) -> Outcome {
        self.reason.outcome()
    }

    /// Whether it compares this very decision.
    pub(super) fn is_of(&self, holding: &Holding) -> bool {
        self.chosen == ComparedPlacement::of(holding)
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
    let bare = |reason| Comparison::bare(pod.clone(), holding, reason);
    let mut counts = PodCounts::default();
    let filters = Filters::prepare(demand, before.world(), &mut counts);
    if let Some(error) = filters.rejected() {
        return bare(ComparisonReason::PodRejected(Box::new(error)));
    }
    let verdicts = Verdicts::new(&demand.ask, before.world(), *weights);
    let evaluation = Evaluation::of(filters, &verdicts, &mut counts, *weights);
    let mut all = evaluation.judge_all();
    let (own, feasible) = (best(&evaluation, &mut all), all.fitting());
    let judged = evaluation.nodes(&mut all);
    let chosen = judged.iter().find(|(state, _)| state.info.name == holding.node);
    let scores = || judged.iter().filter_map(|(_, judged)| judged.as_ref().ok());
    let found = match (&own, chosen) {
        (Some(_), None) => bare(ComparisonReason::NodeUnknown),
        (Some(_), Some((_, Err(reasons)))) => bare(ComparisonReason::NodeRejected((*reasons).clone())),
        (None, chosen) => {
            let reasons = chosen.and_then(|(_, judged)| judged.as_ref().err());
            let chosen = reasons.map(|reasons| (*reasons).clone());
            bare(ComparisonReason::NoFit { chosen, error: Box::new(evaluation.fit_error(&all.refusals)) })
        }
        (Some(own), Some((state, Ok(chosen)))) => {
            let score = chosen.total(weights);
            let rank = 1 + scores().filter(|other| other.total(weights) > score).count();
            let reason = if own.node == holding.node {
                of_cards(state, &own.shares, &ComparedPlacement::of(holding).shares)
            } else if rank == 1 {
                ComparisonReason::EqualScore
            } else {
                ComparisonReason::LowerScore { rank, feasible }
            };
            Comparison { rank: Some(rank), ..bare(reason) }
        }
    };
    Comparison { own, feasible, ..found }
}

/// Where Berth would place a pod on this cluster, which must not hold it.
pub(super) fn prospect(demand: &Demand, now: &Snapshot, weights: &ScoreWeights) -> Option<ComparedPlacement> {
    let mut counts = PodCounts::default();
    let filters = Filters::prepare(demand, now.world(), &mut counts);
    if filters.rejected().is_some() {
        return None;
    }
    let verdicts = Verdicts::new(&demand.ask, now.world(), *weights);
    let evaluation = Evaluation::of(filters, &verdicts, &mut counts, *weights);
    best(&evaluation, &mut evaluation.judge_all())
}

fn best<'a, 'v>(
    evaluation: &Evaluation<'a, 'v>,
    judged: &mut JudgedNodes<'a, 'v>,
) -> Option<ComparedPlacement> {
    let decision = evaluation.filters().decision(evaluation.best(judged, |_| 0)?);
    let shares = decision.allocations.iter().flat_map(|one| one.assignment.shares());
    Some(ComparedPlacement { shares: shares.cloned().collect(), node: decision.node })
}

/// How two sets of shares of one node compare; a card may have two names.
fn of_cards(node: &NodeState, own: &[Share], chosen: &[Share]) -> ComparisonReason {
    if chosen.is_empty() {
        return ComparisonReason::CardsUnknown;
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
        ComparisonReason::Cards
    } else if amounts(own) != amounts(chosen) {
        ComparisonReason::Amounts
    } else {
        ComparisonReason::Equal
    }
}
