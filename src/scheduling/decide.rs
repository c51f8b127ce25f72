//! What every way of deciding a pod has in common, whether it is scheduled, tried at the head of a line, dry-run or simulated: the
//! filters in their order, and the node that is tried first.

pub mod blame;
pub mod class;
pub mod comparison;
mod deferred;
mod descent;
pub mod dry_runs;
pub mod evaluation;
pub mod explanation;
pub mod fit_error;
mod free_rooms;
mod judging;
pub mod likenesses;
pub mod nearest;
pub mod no_room;
mod nominated;
pub mod outlook;
mod relative;
pub mod remedy;
mod shortlist;
pub mod verdict;
pub mod verdicts;

use std::sync::Arc;

use smallvec::SmallVec;

use super::{
    model::{devices::Shortfall, name::NodeName, node::FULL_LINE, pod::Demand, prebind_step::PrebindStep},
    plugin::{
        NodeReasons, Reason,
        cycle::{Cycle, Preferences},
        devices::DeviceReason,
        pod_counts::PodCounts,
        score::{NodeScores, weights::ScoreWeights},
    },
    world::{
        World,
        ledger::Held,
        node_state::NodeState,
        quota::QuotaStanding,
        reservation::{Preference, Reserved},
    },
};
use crate::device::{Allocation, CardUsage, ProfileRequest, Quota};
use fit_error::FitError;
use judging::Judging;
use nearest::{Closeness, FailedNodes, nearest};
use shortlist::LISTED;
use verdict::NodeVerdict;

/// Where a pod goes, and with what.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The node.
    pub node: NodeName,
    /// Its shares of cards, one allocation for each of its requests.
    pub allocations: Vec<Allocation>,
    /// What is to be written for its claims before it is bound.
    pub steps: Vec<PrebindStep>,
}

/// Why a node is not taken.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// For what it is, or what stands around it.
    Node(NodeReasons),
    /// For pods that it is kept for.
    Nominated(NodeReasons),
    /// For the quota alone.
    Quota(NodeReasons),
}

impl Refusal {
    /// The reasons.
    pub fn reasons(&self) -> &NodeReasons {
        match self {
            Self::Node(reasons) | Self::Nominated(reasons) | Self::Quota(reasons) => reasons,
        }
    }
}

/// Why the nodes were refused that pass the tests of one node.
#[derive(Debug, Default)]
pub struct Refusals<'a>(Vec<(&'a Arc<NodeState>, Refusal)>);

impl<'a> Refusals<'a> {
    /// Keeps why one more node was refused.
    pub fn note(&mut self, node: &'a Arc<NodeState>, refusal: Refusal) {
        self.0.push((node, refusal));
    }

    /// As if the nodes had been tested in the order of their slots.
    fn in_order_of_slots(mut self) -> Self {
        self.0.sort_unstable_by_key(|(node, _)| node.slot);
        self
    }

    /// Whether a node was refused for the quota alone.
    pub fn has_quota(&self) -> bool {
        self.0.iter().any(|(_, refusal)| matches!(refusal, Refusal::Quota(_)))
    }

    /// Whether a node was refused for pods that it is kept for.
    pub fn has_nominated(&self) -> bool {
        self.0.iter().any(|(_, refusal)| matches!(refusal, Refusal::Nominated(_)))
    }

    /// Why each of these nodes is not taken, and of the others, where `failed` are their reasons, each with how many nodes have it.
    pub fn counted<'s>(&'s self, failed: impl Iterator<Item = (&'s NodeReasons, usize)>) -> FitError {
        let refused = self.0.iter().map(|(_, refusal)| (refusal.reasons(), 1));
        let error = FitError::of_counted(failed.chain(refused));
        if self.has_nominated() { error.beside_nominated() } else { error }
    }

    /// As [`Self::counted`], with the nearest miss; `failed` are the other nodes.
    pub fn fit_error<'s>(&'s self, filters: &Filters<'_>, failed: Vec<FailedNodes<'s>>) -> FitError {
        let refused = self.0.iter().map(|(node, refusal)| {
            let reasons = refusal.reasons();
            let closeness = Closeness::of(&filters.demand.ask, node, reasons, filters.quotas());
            FailedNodes { first: node, count: 1, reasons, closeness }
        });
        let error = self.counted(failed.iter().map(|alike| (alike.reasons, alike.count)));
        error.beside_nearest(nearest(filters, failed.into_iter().chain(refused)))
    }
}

/// Every filter, prepared for one pod.
#[derive(Debug)]
pub struct Filters<'a> {
    pub(super) demand: &'a Demand,
    pub(super) world: &'a World,
    /// What the pod's namespace may still take, one for each request of cards.
    quotas: SmallVec<[Quota; 1]>,
    pub(super) cycle: Result<Cycle<'a>, Reason>,
    /// Whether there is nothing to test beside what one node makes of the pod: no quota bounds it, and no node is kept for another.
    open: bool,
}

impl<'a> Filters<'a> {
    /// Asks each plugin that looks at more than one node what it has to do for this pod.
    pub fn prepare(demand: &'a Demand, world: &'a World, counts: &mut PodCounts) -> Self {
        Self::prepare_beside(demand, world, counts, &world.nominations().kept_of_quota(demand))
    }

    /// As [`Self::prepare`], for a pod for which others would go: what is kept for any nominated pod of its namespace counts in its quota,
    /// whatever the priority. If it did not, a namespace could have a node kept for each priority, far beyond its quota.
    pub(super) fn prepare_to_preempt(demand: &'a Demand, world: &'a World, counts: &mut PodCounts) -> Self {
        Self::prepare_beside(demand, world, counts, &world.nominations().kept_of_namespace(demand))
    }

    fn prepare_beside(demand: &'a Demand, world: &'a World, counts: &mut PodCounts, kept: &Held) -> Self {
        let quotas = world.quotas().left_for(demand, kept);
        let cycle = Cycle::prepare(demand, world, counts);
        let must_reserve = demand.footprint.reservation.as_ref().is_some_and(|pod| pod.affinity.is_some());
        let mut filters = Self { demand, world, quotas, cycle, open: false };
        let bounded = filters.has_quota() || !world.nominations().is_empty();
        filters.open = !bounded && !must_reserve && filters.look_at_one_node();
        filters
    }

    /// What the plugins that score by more than one node find out for the pod.
    pub fn preferences(&self, counts: &mut PodCounts, weights: &ScoreWeights) -> Preferences<'a> {
        Preferences::prepare(self.demand, self.world, self.cycle.as_ref().ok(), counts, weights)
    }

    /// Why no node can have the pod, where that is known without looking at them: a quota that the pod exceeds
    /// whatever its cards, an object that is missing.
    pub fn rejected(&self) -> Option<FitError> {
        let Demand { ask, footprint, .. } = self.demand;
        let of_pod = |reason| FitError::of_pod(self.world.nodes.by_slot().count(), reason);
        let exceeded = || {
            let exceeded = |device: &ProfileRequest| {
                let least = device.request.least();
                self.world.quotas().exceeded(&footprint.namespace, &device.profile.name, least)
            };
            ask.devices.iter().find_map(exceeded)
        };
        let of_quota = exceeded().map(FitError::of_quota);
        of_quota.or_else(|| self.cycle.as_ref().err().cloned().map(of_pod))
    }

    /// The node that is nominated for the pod and tried before others, which it is unless its `rank` says that its line is full or that it is held up.
    pub fn nominated(&self, rank: impl Fn(&NodeName) -> usize) -> Option<&'a NodeName> {
        self.demand.nominated.as_ref().filter(|node| rank(node) < FULL_LINE)
    }

    /// How the quotas of the pod's namespace stand.
    pub fn standing(&self) -> QuotaStanding {
        let Demand { ask, footprint, .. } = self.demand;
        self.world.quotas().standing(&footprint.namespace, ask.profiles())
    }

    /// Which nodes are to be judged at first: with a quota, and where the pod may use a Reservation, every node is looked at.
    fn judging(&self) -> Judging {
        let looks_at_all = self.has_quota() || self.may_be_reserved() || self.demand.nominated.is_some();
        if looks_at_all { Judging::All } else { Judging::Best(LISTED) }
    }

    /// Whether there is nothing to test beside what one node makes of the pod.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// By slot, of so many, whether the node may pass, by what plugins know of all nodes at once; `None`: nothing is known. Every other node fails
    /// [`Self::test`].
    pub(super) fn may_pass(&self, slots: usize) -> Option<Vec<bool>> {
        self.cycle.as_ref().ok()?.may_pass(slots)
    }

    /// What the pod's namespace may still take, one for each of its requests of cards.
    pub fn quotas(&self) -> &[Quota] {
        &self.quotas
    }

    /// Whether a quota may refuse nodes, or let the pod have other cards there than its verdict says.
    pub(super) fn has_quota(&self) -> bool {
        self.quotas.iter().any(|quota| *quota != Quota::default())
    }

    /// Whether what one node makes of the pod depends on that node and the quota alone.
    pub fn look_at_one_node(&self) -> bool {
        self.cycle.as_ref().is_ok_and(Cycle::is_empty)
    }

    /// What the plugins that look at one node make of it.
    pub fn judge(&self, node: &NodeState) -> NodeVerdict {
        NodeVerdict::of(&self.demand.ask, node, self.world.into())
    }

    /// The node as it is for the pod within one of the Reservations there, and its scores: the one to be preferred, then by name, of those in which
    /// the pod passes every filter.
    pub(super) fn in_reservation(&self, node: &NodeState) -> Option<(Arc<NodeState>, NodeScores)> {
        let admitting = node.reservations.all.iter().filter(|reserved| reserved.admits(self.demand));
        let mut admitting: Vec<_> = admitting.collect();
        if admitting.len() > 1 {
            admitting.sort_by_cached_key(|reserved| reserved.preference(self.demand));
        }
        admitting.into_iter().find_map(|reserved| {
            let node = Arc::new(node.within(reserved));
            let NodeVerdict::Fits(fit) = self.judge(&node) else { return None };
            let other = self.test(&node, &fit.taken).ok()?;
            Some((node, other.unwrap_or(fit.scores)))
        })
    }

    /// Whether the pod may use a Reservation on some node, which is found out each time.
    pub(super) fn may_be_reserved(&self) -> bool {
        let has_some = |state: &Arc<NodeState>| !state.reservations.all.is_empty();
        self.demand.footprint.reservation.is_some() && self.world.nodes.by_slot().any(has_some)
    }

    /// The place of the Reservation within which a pod is judged on this node.
    pub(super) fn preference(&self, within: &NodeState) -> Option<Preference> {
        within.reservations.within.as_ref().map(|reserved| reserved.preference(self.demand))
    }

    /// Whether the pod must use a Reservation and is judged without one.
    fn lacks_reservation(&self, node: &NodeState) -> bool {
        let pod = self.demand.footprint.reservation.as_ref();
        node.reservations.within.is_none() && pod.is_some_and(|pod| pod.affinity.is_some())
    }

    /// Whether a node that the plugins which look at one node let through, with so much taken, passes all others too; the quota comes last. The node's
    /// scores, where the quota admits other cards only; `None`: those that it has already.
    pub fn test(&self, node: &Arc<NodeState>, taken: &[CardUsage]) -> Result<Option<NodeScores>, Refusal> {
        if self.lacks_reservation(node) {
            let of_pod = |reserved: &Arc<Reserved>| reserved.reservation.is_for(self.demand);
            let is_there = node.reservations.all.iter().any(of_pod);
            let lack = if is_there { Shortfall::ReservationInUse } else { Shortfall::Reservation };
            return Err(Refusal::Node(vec![Reason::Devices(DeviceReason::Typed(lack))]));
        }
        if self.open {
            return Ok(None);
        }
        let cycle = self.cycle.as_ref().map_err(|reason| Refusal::Node(vec![reason.clone()]))?;
        cycle.test(node).map_err(Refusal::Node)?;
        let nominations = self.world.nominations();
        nominations.test(self.demand, node, self.world, cycle).map_err(Refusal::Nominated)?;
        let Demand { ask, .. } = self.demand;
        verdict::within(ask, node, self.world.into(), &self.quotas, taken).map_err(Refusal::Quota)
    }

    /// What becomes of the pod on one node.
    pub fn try_on(&self, node: &Arc<NodeState>) -> Result<Decision, Refusal> {
        if self.in_reservation(node).is_some() {
            return Ok(self.decision(node));
        }
        match self.judge(node) {
            NodeVerdict::Fits(fit) => self.test(node, &fit.taken)?,
            NodeVerdict::Fails(fails) => return Err(Refusal::Node(fails.reasons)),
        };
        Ok(self.decision(node))
    }

    /// Whether the node passes every filter.
    pub(super) fn passes(&self, node: &Arc<NodeState>) -> bool {
        if self.in_reservation(node).is_some() {
            return true;
        }
        match self.judge(node) {
            NodeVerdict::Fits(fit) => self.test(node, &fit.taken).is_ok(),
            NodeVerdict::Fails(_) => false,
        }
    }

    /// The decision for a node that has passed every filter.
    pub fn decision(&self, node: &Arc<NodeState>) -> Decision {
        let Demand { ask, .. } = self.demand;
        let within = self.in_reservation(node).map(|(within, _)| within);
        let node = within.as_ref().unwrap_or(node);
        // Cards that are kept for other pods are not given away.
        let kept = self.world.nominations().kept(self.demand, node);
        let state = kept.as_ref().unwrap_or(node);
        let chosen = verdict::choose(ask, state, self.world.into(), &self.quotas);
        let allocations = chosen.expect("a node that has passed every filter fits");
        let steps = self.cycle.as_ref().ok().and_then(|cycle| cycle.steps(state).ok());
        let steps =
            steps.expect("a node that has passed every filter has volumes and devices for the claims");
        Decision { node: node.info.name.clone(), allocations, steps }
    }

    /// The node that is nominated for the pod, if that passes every filter: other nodes are not looked at then, as in kube-scheduler
    /// (v1.36 `pkg/scheduler/schedule_one.go`, `evaluateNominatedNode`). A node whose line is full by its `rank`, or that is held up, comes after others all the same.
    pub fn on_nominated(&self, rank: impl Fn(&NodeName) -> usize) -> Option<&'a Arc<NodeState>> {
        let node = self.world.node(self.nominated(rank)?)?;
        self.passes(node).then_some(node)
    }
}
