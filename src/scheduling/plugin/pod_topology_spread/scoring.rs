//! How well nodes suit a pod by its spread constraints with `ScheduleAnyway`, or by those that it has by default.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/podtopologyspread/scoring.go`.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use super::{counted, includes, system_default};
use crate::scheduling::{
    footprint::SpreadConstraint,
    node::{NodeInfo, NodeName},
    pod::Demand,
    pod_counts::{PodCounts, Surroundings},
    score::{MOST, float, whole},
};

/// The topology whose domains are single nodes.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// How many matching pods there are by each constraint, for one pod that is to be placed.
#[derive(Debug)]
pub(in crate::scheduling) struct PreferredSpread<'a> {
    constraints: Cow<'a, [SpreadConstraint]>,
    /// In the order of the constraints.
    matching: Vec<Matching>,
    needed: Needed,
}

/// Which topology keys a node must have to be scored and to have its pods counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Needed {
    /// Those of every constraint.
    AllKeys,
    /// None: nodes without zones are still spread over by name. Of a constraint by zone those without one are a domain together.
    NoKey,
}

/// How many pods match one constraint.
#[derive(Debug)]
enum Matching {
    /// By the value of the topology key. A domain without pods may be absent.
    ByDomain(HashMap<String, i64>),
    /// By node. A node without pods is absent.
    ByNode(HashMap<NodeName, i64>),
}

impl<'a> PreferredSpread<'a> {
    /// How pods are spread now; `None`: the pod has no such constraint, by itself or by default.
    pub(in crate::scheduling) fn prepare(
        demand: &'a Demand,
        around: Surroundings<'_>,
        counts: &mut PodCounts,
    ) -> Option<Self> {
        let own = &*demand.footprint.preferred_spread;
        let (constraints, needed) = if own.is_empty() {
            (Cow::Owned(system_default::constraints(demand, around.objects)), Needed::NoKey)
        } else {
            (Cow::Borrowed(own), Needed::AllKeys)
        };
        if constraints.is_empty() {
            return None;
        }
        let keyed = if needed == Needed::AllKeys { &*constraints } else { &[] };
        let matching = |one: &SpreadConstraint| Matching::prepare(one, keyed, demand, around, counts);
        let matching = constraints.iter().map(matching).collect();
        Some(Self { constraints, matching, needed })
    }

    /// Whether the node has every topology key that is needed.
    fn concerns(&self, node: &NodeInfo) -> bool {
        let has = |constraint: &SpreadConstraint| node.labels.contains_key(&*constraint.topology_key);
        self.needed == Needed::NoKey || self.constraints.iter().all(has)
    }
}

impl Matching {
    fn prepare(
        constraint: &SpreadConstraint,
        keyed: &[SpreadConstraint],
        demand: &Demand,
        around: Surroundings<'_>,
        counts: &mut PodCounts,
    ) -> Self {
        let occupied = counted(constraint, around, counts).filter(|(_, pods)| *pods > 0);
        if &*constraint.topology_key == HOSTNAME {
            return Self::ByNode(occupied.map(|(info, pods)| (info.name.clone(), pods)).collect());
        }
        let mut domains = HashMap::new();
        for (info, pods) in occupied {
            if includes(constraint, keyed, demand, info) {
                *domains.entry(domain(constraint, info).to_owned()).or_default() += pods;
            }
        }
        Self::ByDomain(domains)
    }

    fn at(&self, node: &NodeInfo, value: &str) -> i64 {
        let matching = match self {
            Self::ByDomain(domains) => domains.get(value),
            Self::ByNode(nodes) => nodes.get(&node.name),
        };
        matching.copied().unwrap_or_default()
    }
}

/// The node's domain; empty where the topology key is missing.
fn domain<'n>(constraint: &SpreadConstraint, node: &'n NodeInfo) -> &'n str {
    node.labels.get(&*constraint.topology_key).map_or("", String::as_str)
}

/// By what the raw scores of the nodes that fit are normalised.
#[derive(Debug)]
pub(in crate::scheduling) struct SpreadScale<'a> {
    spread: &'a PreferredSpread<'a>,
    /// What one pod counts by each constraint.
    weights: Vec<f64>,
    least: i64,
    most: i64,
}

impl<'a> SpreadScale<'a> {
    /// The extremes over these nodes.
    pub(in crate::scheduling) fn of<'n>(
        spread: &'a PreferredSpread<'a>,
        feasible: impl Iterator<Item = &'n NodeInfo>,
    ) -> Self {
        let nodes: Vec<&NodeInfo> = feasible.filter(|node| spread.concerns(node)).collect();
        let weight = |constraint: &SpreadConstraint| {
            let domains = || nodes.iter().map(|node| domain(constraint, node)).collect::<HashSet<_>>();
            let size = if &*constraint.topology_key == HOSTNAME { nodes.len() } else { domains().len() };
            float(i64::try_from(size).unwrap_or(i64::MAX).saturating_add(2)).ln()
        };
        let weights = spread.constraints.iter().map(weight).collect();
        let mut scale = Self { spread, weights, least: 0, most: 0 };
        let raw: Vec<i64> = nodes.iter().map(|node| scale.raw(node)).collect();
        scale.least = raw.iter().copied().min().unwrap_or_default();
        scale.most = raw.iter().copied().max().unwrap_or_default();
        scale
    }

    /// 0 to 100, 100 where the fewest matching pods are; 0 where a topology key is missing.
    pub(in crate::scheduling) fn score(&self, node: &NodeInfo) -> i64 {
        match (self.spread.concerns(node), self.most) {
            (false, _) => 0,
            (true, 0) => MOST,
            (true, most) => MOST * (most + self.least - self.raw(node)) / most,
        }
    }

    /// How many matching pods there are, weighed by how many domains each constraint has. The skew that a constraint allows is added,
    /// so that it waters small differences down.
    fn raw(&self, node: &NodeInfo) -> i64 {
        let score = |((constraint, matching), weight): ((&SpreadConstraint, &Matching), &f64)| {
            let value = node.labels.get(&*constraint.topology_key)?;
            Some(float(matching.at(node, value)) * weight + float(constraint.max_skew - 1))
        };
        let constraints = self.spread.constraints.iter().zip(&self.spread.matching);
        whole(constraints.zip(&self.weights).filter_map(score).sum::<f64>().round())
    }
}
