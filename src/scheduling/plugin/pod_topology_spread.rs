//! Whether a pod keeps the pods that its spread constraints are about evenly spread over the domains of a node label.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/podtopologyspread/filtering.go`.

pub(in crate::scheduling) mod scoring;
mod system_default;

use std::sync::Arc;

use super::pod_counts::{Counted, PodCounts, Terminating};
use super::taint_toleration::tolerates_all;
use crate::object::Toleration;
use crate::scheduling::model::node_affinity::NodeAffinity;
use crate::scheduling::{
    model::{
        change::Change,
        footprint::{Footprint, Inclusion, SpreadConstraint},
        pod::{Constraints, Demand},
        reason::Reason,
    },
    world::{
        node_state::NodeState,
        object::Objects,
        surroundings::Surroundings,
        topology::{ByDomain, Topology},
    },
};

/// How the pods of each constraint are spread, for one pod that is to be placed.
#[derive(Debug)]
pub(in crate::scheduling) struct Spread(Vec<Domains>);

/// How the pods of one constraint are spread.
#[derive(Debug)]
struct Domains {
    /// `None`: no node of the domain counts.
    matching: ByDomain<Option<i64>>,
    /// The fewest of any domain.
    fewest: i64,
    /// How many more the pod itself is: 1 where the constraint is about it, else 0.
    own: i64,
    max_skew: i64,
}

impl Spread {
    /// How pods are spread now; `None`: the pod has no spread constraint.
    pub(in crate::scheduling) fn prepare(
        demand: &Demand,
        around: Surroundings<'_>,
        counts: &mut PodCounts,
    ) -> Option<Self> {
        let constraints = &demand.footprint.spread;
        if constraints.is_empty() {
            return None;
        }
        let keyed = topologies(constraints, around, counts);
        let domains = |one| Domains::prepare(one, &keyed, demand, around, counts);
        Some(Self(constraints.iter().map(domains).collect()))
    }

    /// Fails on a node that lacks a topology key, or where the pod would make the skew too large.
    pub(in crate::scheduling) fn test(&self, node: &NodeState) -> Result<(), Reason> {
        for domains in &self.0 {
            let Some(matching) = domains.matching.of_node(node) else {
                return Err(Reason::SpreadLabelMissing);
            };
            if matching.unwrap_or_default() + domains.own - domains.fewest > domains.max_skew {
                return Err(Reason::SpreadSkew);
            }
        }
        Ok(())
    }
}

/// Whether the change could let a pod through that was rejected here: one that moves a count, or the set of domains.
pub(in crate::scheduling) fn helps(pod: &Footprint, change: &Change, objects: &Objects) -> bool {
    match change {
        Change::PodAdded(other) | Change::PodRemoved(other) => {
            pod.spread.iter().any(|constraint| constraint.pods.matches(other, objects))
        }
        Change::Node => true,
        Change::Object(..)
        | Change::Nomination
        | Change::DevicesFreed
        | Change::Charged(_)
        | Change::CardsClaimed(_) => false,
    }
}

impl Domains {
    fn prepare(
        constraint: &SpreadConstraint,
        keyed: &[Arc<Topology>],
        demand: &Demand,
        around: Surroundings<'_>,
        counts: &mut PodCounts,
    ) -> Self {
        let mut matching: ByDomain<Option<i64>> =
            ByDomain::of(counts.topology(&constraint.topology_key, around));
        let counting = Counting::of(constraint, keyed, demand);
        for (slot, node, count) in counted(constraint, around, counts) {
            if let Some(total) = matching.of_slot(slot).filter(|_| counting.admits(slot, node)) {
                *total.get_or_insert(0) += count;
            }
        }
        let domains = || matching.values().iter().flatten().copied();
        let fewest = domains().min().unwrap_or(i64::from(i32::MAX));
        Self {
            fewest: if domains().count() < constraint.min_domains { 0 } else { fewest },
            own: i64::from(constraint.pods.matches(&demand.footprint, around.objects)),
            max_skew: constraint.max_skew,
            matching,
        }
    }
}

/// The domains of each constraint's topology key.
fn topologies(
    constraints: &[SpreadConstraint],
    around: Surroundings<'_>,
    counts: &mut PodCounts,
) -> Vec<Arc<Topology>> {
    constraints.iter().map(|constraint| counts.topology(&constraint.topology_key, around)).collect()
}

/// Every node with its slot, and how many pods the constraint counts on it. An empty selector selects every pod, and counts none here.
fn counted<'a>(
    constraint: &SpreadConstraint,
    around: Surroundings<'a>,
    counts: &mut PodCounts,
) -> impl Iterator<Item = (usize, &'a NodeState, i64)> {
    let selects = constraint.pods.labels.as_ref().is_some_and(|labels| !labels.is_empty());
    let pods = Counted { selectors: vec![constraint.pods.clone()], terminating: Terminating::Skipped };
    counts.of(&pods, around).map(move |(slot, node, count)| (slot, node, if selects { count } else { 0 }))
}

/// Which nodes' pods a constraint counts.
struct Counting<'a> {
    /// The topology keys that a node must have.
    keyed: &'a [Arc<Topology>],
    /// What a node must pass; `None`: every node does.
    affinity: Option<&'a NodeAffinity>,
    tolerations: Option<&'a [Toleration]>,
}

impl<'a> Counting<'a> {
    /// Of nodes with all these topology keys, those that pass the tests that the constraint honours.
    fn of(constraint: &SpreadConstraint, keyed: &'a [Arc<Topology>], demand: &'a Demand) -> Self {
        let Constraints { affinity, tolerations, .. } = &demand.ask.constraints;
        let affinity = Some(affinity).filter(|_| constraint.node_affinity == Inclusion::Honor);
        let tolerations = Some(&**tolerations).filter(|_| constraint.node_taints == Inclusion::Honor);
        Self { keyed, affinity: affinity.filter(|affinity| !affinity.admits_all()), tolerations }
    }

    /// Whether the pods count of the node in this slot.
    fn admits(&self, slot: usize, node: &NodeState) -> bool {
        let info = &node.info;
        self.keyed.iter().all(|topology| topology.of_slot(slot).is_some())
            && self.affinity.is_none_or(|affinity| affinity.admits(&info.name, &info.labels))
            && self.tolerations.is_none_or(|tolerations| tolerates_all(tolerations, &info.taints))
    }
}
