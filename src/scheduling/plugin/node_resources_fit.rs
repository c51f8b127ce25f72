//! Whether a node has room for what a pod requests of the resources that Kubernetes accounts, and for one more pod; and how much of them is
//! requested then.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/noderesources/fit.go`.

use std::{borrow::Cow, sync::Arc};

use super::{
    contract::{
        Cure, FeasibleNodes, Filter, PreScore, PreScored, Reasons, Rejection, SchedulingPlugin, Shortage,
    },
    pod_counts::PodCounts,
    scene::Scene,
    score::range::MOST,
};
use crate::{
    device::ProfileRequest,
    scheduling::{
        model::{
            pod::{Ask, Demand},
            resources::ResourceAmounts,
        },
        world::{World, node_parts::NodePart, node_state::NodeState},
    },
};

/// Rejects a node that has no room for what the pod requests, or for one more pod, and prefers nodes by how much is requested of them. The weight is
/// 1 in kube-scheduler; here it is 0 unless it is set, since pods are packed by their cards.
#[derive(Debug)]
pub struct NodeResourcesFit;

impl SchedulingPlugin for NodeResourcesFit {
    const NAME: &'static str = "NodeResourcesFit";
    const WEIGHT: Option<u32> = Some(0);

    type Reason = ResourceReason;

    fn reads(_ask: &Ask) -> Option<&'static [NodePart]> {
        Some(&[NodePart::Amounts])
    }
}

impl Filter for NodeResourcesFit {
    fn test(scene: &Scene<'_>) -> Result<(), Reasons<ResourceReason>> {
        let short = short(scene);
        if short.is_empty() { Ok(()) } else { Err(short) }
    }
}

/// Every resource of which too little is free. A resource of a dialect's own need not be advertised by the node, nor need one that
/// a claim serves there.
fn short(scene: &Scene<'_>) -> Reasons<ResourceReason> {
    let (node, allocatable) = (scene.node, &scene.node.info.allocatable);
    let mut short = Reasons::new();
    if node.is_full() {
        short.push(ResourceReason::TooManyPods);
    }
    // Most nodes have enough of each, which is found out sooner without names.
    if scene.ask.resources.fits(allocatable, &node.requested) {
        return short;
    }
    for (name, requested) in scene.ask.resources.iter().filter(|&(_, amount)| amount > 0) {
        let capacity = allocatable.get(name);
        let free = capacity.saturating_sub(node.requested.get(name));
        if requested <= free {
            continue;
        }
        let unadvertised = scene.device_resources.contains(name) && !allocatable.names(name);
        let counts =
            |device: &&ProfileRequest| device.by_class.as_ref().is_some_and(|by| *by.resource == *name);
        let shares =
            || scene.ask.devices.iter().find(counts).is_some_and(|device| node.serves_by_claim(device));
        let by_claim = || node.class_of(name).is_some() || shares();
        if !unadvertised && !by_claim() {
            short.push(ResourceReason::Insufficient { resource: name.into(), requested, free, capacity });
        }
    }
    short
}

/// Why a node has no room.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, thiserror::Error)]
pub enum ResourceReason {
    /// It has as many pods as it may have.
    #[error("Too many pods")]
    TooManyPods,
    /// It has too little of a resource. Amounts are in thousandths for cpu, else in units.
    #[error("Insufficient {resource}")]
    Insufficient {
        /// The resource's name.
        resource: Arc<str>,
        /// How much the pod requests.
        requested: i64,
        /// How much is free.
        free: i64,
        /// How much there is on the empty node.
        capacity: i64,
    },
}

impl Rejection for ResourceReason {
    fn name(&self) -> Cow<'static, str> {
        match self {
            Self::TooManyPods => "TooManyPods".into(),
            Self::Insufficient { resource, .. } => format!("Insufficient {resource}").into(),
        }
    }

    fn kind(&self) -> Self {
        match self {
            Self::TooManyPods => Self::TooManyPods,
            Self::Insufficient { resource, .. } => {
                Self::Insufficient { resource: resource.clone(), requested: 0, free: 0, capacity: 0 }
            }
        }
    }

    fn cure(&self) -> Cure {
        match self {
            Self::Insufficient { requested, capacity, .. } if requested > capacity => Cure::Nothing,
            _ => Cure::Eviction,
        }
    }

    fn shortage(&self) -> Option<Shortage<'_>> {
        match self {
            Self::TooManyPods => None,
            Self::Insufficient { resource, requested, free, .. } => {
                Some(Shortage { resource, requested: *requested, free: *free })
            }
        }
    }
}

/// How a node is scored by what is requested of it with the pod, and by which resources: `scoringStrategy` of kube-scheduler's
/// `NodeResourcesFitArgs`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ScoringStrategy {
    /// What is better.
    pub strategy: ScoringStrategyType,
    /// The resources, each with its weight above 0.
    pub resources: Vec<(String, i64)>,
}

/// What is better.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ScoringStrategyType {
    /// The less is requested, the better.
    LeastAllocated,
    /// The more is requested, the better.
    MostAllocated,
    /// The score at the part that is requested, by the line through these points, which are in order of their utilization and at least one.
    RequestedToCapacityRatio(Vec<ShapePoint>),
}

/// A point of a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ShapePoint {
    /// In percent.
    pub utilization: i64,
    /// From 0 to [`MOST_OF_POINT`].
    pub score: i64,
}

/// The highest score of a point (v1.36 `pkg/scheduler/apis/config/types.go`, `MaxCustomPriorityScore`).
pub const MOST_OF_POINT: i64 = 10;

impl Default for ScoringStrategy {
    fn default() -> Self {
        let resources = ["cpu", "memory"].map(|name| (name.to_owned(), 1));
        Self { strategy: ScoringStrategyType::LeastAllocated, resources: resources.into() }
    }
}

impl PreScore for NodeResourcesFit {
    type Found<'a> = PodRequests<'a>;

    fn prepare<'a>(demand: &'a Demand, world: &'a World, _counts: &mut PodCounts) -> Option<PodRequests<'a>> {
        let strategy = world.arguments().get::<ScoringStrategy>();
        let strategy = strategy.map_or_else(|| Cow::Owned(ScoringStrategy::default()), Cow::Borrowed);
        Some(PodRequests { strategy, own: &demand.ask.resources })
    }
}

/// What the pod requests, and how nodes are scored by it.
#[derive(Debug)]
pub struct PodRequests<'a> {
    strategy: Cow<'a, ScoringStrategy>,
    own: &'a ResourceAmounts,
}

impl PreScored for PodRequests<'_> {
    fn normalised(&self, feasible: FeasibleNodes<'_>) -> Vec<i64> {
        feasible.each(|node| self.score(node))
    }
}

impl PodRequests<'_> {
    /// 0 to 100: the mean of the scores by each resource that the node has. Sources: v1.36 `resource_allocation.go`, `least_allocated.go`,
    /// `most_allocated.go`, `requested_to_capacity_ratio.go` beside `fit.go`. Upstream also counts devices of a class that stands for an
    /// extended resource; here a node has only the amount of it that is allocatable.
    fn score(&self, node: &NodeState) -> i64 {
        let (mut sum, mut weights) = (0, 0);
        for (name, weight) in &self.strategy.resources {
            let own = self.own.scored(name);
            if !counts(name, own) {
                continue;
            }
            let capacity = node.info.allocatable.get(name);
            if capacity <= 0 {
                continue;
            }
            let score =
                self.strategy.strategy.score(node.requested.scored(name).saturating_add(own), capacity);
            if score == 0
                && matches!(self.strategy.strategy, ScoringStrategyType::RequestedToCapacityRatio(_))
            {
                // As upstream: a resource by which the node is worth nothing does not lower the mean.
                continue;
            }
            sum += score * weight;
            weights += weight;
        }
        match self.strategy.strategy {
            _ if weights == 0 => 0,
            ScoringStrategyType::RequestedToCapacityRatio(_) => (2 * sum + weights) / (2 * weights),
            ScoringStrategyType::LeastAllocated | ScoringStrategyType::MostAllocated => sum / weights,
        }
    }
}

/// Whether nodes are compared by a resource of which the pod requests this much: cpu, memory and ephemeral storage always, others that a pod may
/// request only if it does.
fn counts(name: &str, requested: i64) -> bool {
    let is_native = ["cpu", "memory", "ephemeral-storage"].contains(&name);
    let is_scalar = || name.contains('/') || name.starts_with("hugepages-");
    is_native || requested > 0 && is_scalar()
}

impl ScoringStrategyType {
    /// 0 to 100, by one resource.
    fn score(&self, requested: i64, capacity: i64) -> i64 {
        // Containers that request nothing count, so that more may seem to be requested than there is.
        match self {
            Self::LeastAllocated if requested > capacity => 0,
            Self::LeastAllocated => percent(capacity - requested, capacity),
            Self::MostAllocated => percent(requested.min(capacity), capacity),
            Self::RequestedToCapacityRatio(shape) => at(shape, percent(requested.min(capacity), capacity)),
        }
    }
}

/// How many whole percent of this capacity a part of it is.
fn percent(part: i64, capacity: i64) -> i64 {
    i64::try_from(i128::from(part) * i128::from(MOST) / i128::from(capacity)).unwrap_or(MOST)
}

/// The height of the line through these points at this utilization, 0 to 100. Beyond its ends it is level.
fn at(shape: &[ShapePoint], utilization: i64) -> i64 {
    let height = |point: &ShapePoint| point.score * (MOST / MOST_OF_POINT);
    match shape.iter().position(|point| utilization <= point.utilization) {
        Some(next) if next > 0 => {
            let (before, next) = (&shape[next - 1], &shape[next]);
            let (rise, run) = (height(next) - height(before), next.utilization - before.utilization);
            height(before) + rise * (utilization - before.utilization) / run
        }
        Some(_) => shape.first().map_or(0, height),
        None => shape.last().map_or(0, height),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{object::Quantity, scheduling::model::node::NodeInfo};

    fn amounts(of: &[(&str, &str)]) -> ResourceAmounts {
        let of: BTreeMap<String, Quantity> =
            of.iter().map(|&(name, amount)| (name.to_owned(), amount.into())).collect();
        ResourceAmounts::read(&of).unwrap()
    }

    /// The score of a node with 8 cpu and 8 foo, of which 2 cpu and 1 foo are requested, for a pod that requests this much.
    fn score(own: &[(&str, &str)], strategy: ScoringStrategyType, resources: &[(&str, i64)]) -> i64 {
        let resources = resources.iter().map(|&(name, weight)| (name.to_owned(), weight)).collect();
        let own = amounts(own);
        let requests =
            PodRequests { strategy: Cow::Owned(ScoringStrategy { strategy, resources }), own: &own };
        let mut snapshot = crate::scheduling::Snapshot::default();
        let allocatable = amounts(&[("cpu", "8"), ("example.com/foo", "8"), ("pods", "100")]);
        snapshot.set_node(NodeInfo { name: "n".into(), allocatable, ..NodeInfo::default() });
        let mut node = NodeState::clone(snapshot.node("n").unwrap());
        node.requested = amounts(&[("cpu", "2"), ("example.com/foo", "1")]);
        requests.score(&node)
    }

    fn ratio(shape: &[(i64, i64)]) -> ScoringStrategyType {
        let point = |&(utilization, score): &(i64, i64)| ShapePoint { utilization, score };
        ScoringStrategyType::RequestedToCapacityRatio(shape.iter().map(point).collect())
    }

    #[test]
    fn a_node_is_worth_what_its_strategy_says() {
        let asks = [("cpu", "1"), ("example.com/foo", "1")];
        let (cpu, both) = ([("cpu", 1)], [("cpu", 3), ("example.com/foo", 1)]);
        assert_eq!(score(&asks, ScoringStrategyType::LeastAllocated, &cpu), 62);
        assert_eq!(score(&asks, ScoringStrategyType::MostAllocated, &cpu), 37);
        assert_eq!(score(&asks, ScoringStrategyType::LeastAllocated, &both), (3 * 62 + 75) / 4);
        // From 0 at 25 % to 100 at 75 %: 24 at 37 %, and 0 at 25 %, which is left out.
        assert_eq!(score(&asks, ratio(&[(25, 0), (75, 10)]), &both), 24);
        assert_eq!(score(&asks, ratio(&[(25, 10), (75, 0)]), &both), 82, "(3 · 76 + 100) / 4");
        assert_eq!(score(&asks, ratio(&[(50, 3)]), &cpu), 30, "level beyond the ends");
    }

    #[test]
    fn a_resource_that_the_pod_does_not_request_or_the_node_does_not_have_is_left_out() {
        let cpu = [("cpu", "1")];
        for other in ["example.com/foo", "memory", "ephemeral-storage", "pods", "example.com/bar"] {
            let resources = [("cpu", 1), (other, 5)];
            assert_eq!(score(&cpu, ScoringStrategyType::LeastAllocated, &resources), 62, "{other}");
            assert_eq!(score(&cpu, ScoringStrategyType::LeastAllocated, &resources[1..]), 0, "{other}");
        }
        assert_eq!(
            score(&[("cpu", "7")], ScoringStrategyType::LeastAllocated, &[("cpu", 1)]),
            0,
            "more than there is"
        );
        assert_eq!(score(&[("cpu", "7")], ScoringStrategyType::MostAllocated, &[("cpu", 1)]), 100);
    }
}
