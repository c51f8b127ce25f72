//! The cluster as the scheduler saw it last, for others to ask where a pod would go now, and why not elsewhere.
//!
//! A picture: it holds no capacity, and nothing that is asked of it reaches the scheduler. It must not know who holds what.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
    sync::Arc,
};

use super::{
    cycle::{Cycle, Preferences},
    fit_error::FitError,
    images::Images,
    node::{NodeInfo, NodeName},
    nominations::Nominations,
    object::Objects,
    plugin::volume_binding::Reservations,
    pod::Demand,
    pod_counts::{PodCounts, Surroundings},
    quota::Quotas,
    reason::NodeReasons,
    score::{Feasible, RawScores, Scale, ScoreWeights},
    snapshot::NodeState,
    verdict::{NodeVerdict, best, judge, within},
};
use crate::device::{Assignment, Card, Inventory, Quota, Share};

/// The cluster as the scheduler saw it last; clones share it.
#[derive(Clone, Debug)]
pub struct Outlook(Arc<Picture>);

#[derive(Debug)]
struct Picture {
    /// Every node in order of name, none of them absent.
    slots: Vec<Option<Arc<NodeState>>>,
    /// The slots of nodes with pods that have required anti-affinity.
    repelling: BTreeSet<usize>,
    /// The slots of nodes with pods whose terms move the scores of nodes for other pods.
    weighing: BTreeSet<usize>,
    /// Nodes whose lines are full or held up, and how they rank.
    passed_over: BTreeMap<NodeName, usize>,
    context: Context,
}

/// What nodes are judged by beside their own state.
#[derive(Debug, Default)]
pub(super) struct Context {
    /// The quotas of namespaces.
    pub(super) quotas: Quotas,
    /// On how many nodes each image is.
    pub(super) images: Arc<Images>,
    /// Other objects that plugins read.
    pub(super) objects: Arc<Objects>,
    /// What pods that are being placed have chosen for their claims.
    pub(super) reservations: Arc<Reservations>,
    /// Pods that wait for room on a node that is kept for them.
    pub(super) nominations: Arc<Nominations>,
    /// The dialects' own resources: a node need not advertise them.
    pub(super) device_resources: BTreeSet<String>,
    /// How much each plugin's score counts.
    pub(super) weights: ScoreWeights,
}

/// Why a node is not taken.
enum Refusal {
    /// For what it is, or what stands around it.
    Node(NodeReasons),
    /// For the quota alone.
    Quota(NodeReasons),
}

/// Where a pod would go now, and what the other nodes make of it.
#[derive(Clone, Debug)]
pub struct Prospect {
    /// The node that it would go to.
    pub node: Arc<NodeState>,
    /// The shares that it would be given.
    pub assignment: Assignment,
    /// How well that node suits it; higher is better.
    pub score: f64,
    /// How many other nodes would have it too.
    pub others: usize,
    /// Why the rest would not.
    pub refused: FitError,
}

/// Text up to this length names cards by their uuid, longer text by their number.
const ROOM: usize = 200;

impl Outlook {
    /// These nodes, in order of name; `passed_over` are the nodes that come after others, and how they rank.
    pub(super) fn new(
        nodes: Vec<Arc<NodeState>>,
        passed_over: BTreeMap<NodeName, usize>,
        context: Context,
    ) -> Self {
        let slots_of = |has: fn(&NodeState) -> bool| {
            nodes.iter().enumerate().filter(|(_, state)| has(state)).map(|(slot, _)| slot).collect()
        };
        let repelling = slots_of(NodeState::repels);
        let weighing = slots_of(NodeState::weighs);
        let slots = nodes.into_iter().map(Some).collect();
        Self(Arc::new(Picture { slots, repelling, weighing, passed_over, context }))
    }

    /// Every node, by name.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<NodeInfo>> {
        self.states().map(|state| &state.info)
    }

    /// Every node and what is in use of it, by name.
    pub fn states(&self) -> impl Iterator<Item = &Arc<NodeState>> {
        self.0.slots.iter().flatten()
    }

    /// Judges every node as the scheduler would for a pod, and ranks them as it would. `go_on` is asked before each node; when it says
    /// no, there is no answer.
    pub fn place(
        &self,
        demand: &Demand,
        mut go_on: impl FnMut() -> ControlFlow<()>,
    ) -> Option<Result<Prospect, FitError>> {
        let Picture { slots, repelling, weighing, passed_over, context } = &*self.0;
        let Context { quotas, images, objects, reservations, device_resources, weights, .. } = context;
        let Demand { ask, footprint, .. } = demand;
        let namespace = &*footprint.namespace;
        if let Some(unserved) = ask.unserved(slots.len()) {
            return Some(Err(unserved));
        }
        let profile = &ask.profile.name;
        if let Some(exceeded) = quotas.exceeded(namespace, profile, ask.request.least()) {
            return Some(Err(FitError::of_quota(exceeded)));
        }
        let quota = quotas.left(namespace, profile);
        let (mut fitting, mut refusals, mut over_quota) = (Vec::new(), Vec::new(), 0);
        let around = Surroundings { slots, repelling, weighing, images, objects, reservations };
        let mut counts = PodCounts::default();
        let cycle = match Cycle::prepare(demand, around, &mut counts) {
            Ok(cycle) => cycle,
            Err(reason) => return Some(Err(FitError::of_pod(slots.len(), reason))),
        };
        for state in self.states() {
            if go_on().is_break() {
                return None;
            }
            match self.judge(demand, state, &cycle, around, quota) {
                Ok(raw) => fitting.push(Feasible { node: &state.info, raw }),
                Err(Refusal::Node(reasons)) => refusals.push(reasons),
                Err(Refusal::Quota(reasons)) => {
                    over_quota += 1;
                    refusals.push(reasons);
                }
            }
        }
        let refused = FitError::of_nodes(&refusals);
        let (others, rank) =
            (fitting.len().saturating_sub(1), |node: &NodeName| passed_over.get(node).copied());
        let preferences = Preferences::prepare(demand, around, &mut counts, weights);
        let scale = Scale::of(ask, &preferences, &fitting);
        let scored = fitting.iter().map(|one| (&one.node.name, scale.scores(one).total(weights)));
        let Some(name) = best(scored, |node| rank(node).unwrap_or(0)) else {
            let standing = || quotas.standing(namespace, profile);
            return Some(Err(if over_quota > 0 { refused.beside_quota(standing()) } else { refused }));
        };
        let node = self.states().find(|state| state.info.name == *name);
        let node = node.expect("the best node is one of those that were judged");
        let (assignment, raw) = judge(ask, node, device_resources, quota).expect("what fitted still fits");
        let score = scale.scores(&Feasible { node: &node.info, raw }).total(weights);
        Some(Ok(Prospect { node: node.clone(), assignment, score, others, refused }))
    }
}

impl Outlook {
    /// What the plugins make of one node.
    fn judge(
        &self,
        demand: &Demand,
        state: &Arc<NodeState>,
        cycle: &Cycle<'_>,
        around: Surroundings<'_>,
        quota: Quota,
    ) -> Result<RawScores, Refusal> {
        let Context { nominations, device_resources, .. } = &self.0.context;
        match NodeVerdict::of(&demand.ask, state, device_resources) {
            NodeVerdict::Fits(raw, total) => {
                cycle.test(state).map_err(Refusal::Node)?;
                nominations.test(demand, state, around, device_resources).map_err(Refusal::Node)?;
                within(&demand.ask, state, device_resources, quota, (raw, total)).map_err(Refusal::Quota)
            }
            NodeVerdict::Fails(reasons) => Err(Refusal::Node(reasons)),
        }
    }
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

    fn shares(&self, called: impl Fn(&Share, Option<&Card>) -> String) -> String {
        let offers = self.node.info.offers.iter().filter_map(|offer| offer.inventory.as_ref());
        let cards: BTreeMap<_, _> = offers.flat_map(Inventory::cards).map(|card| (&card.id, card)).collect();
        let shares = self.assignment.shares().map(|share| {
            let card = called(share, cards.get(&share.card).copied());
            format!("{card} ({}, {})", share.memory, share.cores)
        });
        format!("{}: {}", self.node.info.name, shares.collect::<Vec<_>>().join(", "))
    }

    /// What the other nodes make of it, in kube-scheduler's form: `1/3 other nodes are available: 1 Insufficient cpu, 1 Insufficient GPU
    /// memory.`; `None`: there are no others.
    pub fn elsewhere(&self) -> Option<String> {
        let refused = self.refused.nodes();
        let nodes = self.others + refused;
        let counted = self.refused.counted();
        match (nodes, refused) {
            (0, _) => None,
            (_, 0) => Some(format!("{nodes}/{nodes} other nodes are available.")),
            _ => Some(format!("{}/{nodes} other nodes are available: {counted}.", self.others)),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
