//! Whether a pod keeps the pods that its spread constraints are about evenly spread over the domains of a node label.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/podtopologyspread/filtering.go`.

pub mod scoring;
mod system_default;

use std::{borrow::Cow, sync::Arc};

use smallvec::smallvec;

use super::{
    contract::{PreFilter, PreFiltered, PreScore, Reach, Reasons, Rejection, SchedulingPlugin},
    pod_counts::{CountedPods, PodCounts, Terminating},
    taint_toleration::tolerates_all,
};
use crate::object::Toleration;
use crate::scheduling::model::node_affinity::NodeAffinityTerms;
use crate::scheduling::{
    model::{
        change::Change,
        footprint::{Footprint, Inclusion, SpreadConstraint},
        pod::{Constraints, Demand},
    },
    world::{
        World,
        node_state::NodeState,
        object::Objects,
        topology::{ByDomain, Topology},
    },
};
use scoring::PreferredSpread;

/// Rejects a node where the pod would be spread too unevenly from others, and prefers nodes where it is spread more evenly.
#[derive(Debug)]
pub struct PodTopologySpread;

impl SchedulingPlugin for PodTopologySpread {
    const NAME: &'static str = "PodTopologySpread";
    const REACH: Reach = Reach::Cluster;
    const WEIGHT: Option<u32> = Some(2);

    type Reason = SpreadReason;

    /// Changes that move a count, or the set of domains.
    fn helps(pod: &Footprint, change: &Change, objects: &Objects) -> bool {
        match change {
            Change::PodAdded(other) | Change::PodRemoved(other) => {
                pod.spread.required.iter().any(|constraint| constraint.pods.matches(other, objects))
            }
            Change::Node => true,
            Change::Object(..)
            | Change::Nomination
            | Change::DevicesFreed
            | Change::ResourcesFreed
            | Change::Charged(_)
            | Change::CardsClaimed(_) => false,
        }
    }
}

impl PreFilter for PodTopologySpread {
    type Found<'a> = Spread;

    fn prepare<'a>(
        demand: &'a Demand,
        world: &'a World,
        counts: &mut PodCounts,
    ) -> Result<Option<Spread>, SpreadReason> {
        Ok(Spread::of(demand, world, counts))
    }
}

impl PreScore for PodTopologySpread {
    type Found<'a> = PreferredSpread<'a>;

    fn prepare<'a>(
        demand: &'a Demand,
        world: &'a World,
        counts: &mut PodCounts,
    ) -> Option<PreferredSpread<'a>> {
        PreferredSpread::of(demand, world, counts)
    }
}

/// Why a pod's spread constraints keep it from a node.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, thiserror::Error)]
pub enum SpreadReason {
    /// The node lacks the topology key of a constraint.
    #[error("node(s) didn't match pod topology spread constraints (missing required label)")]
    LabelMissing,
    /// The pod would spread the constraint's pods too unevenly.
    #[error("node(s) didn't match pod topology spread constraints")]
    Skew,
}

impl Rejection for SpreadReason {
    fn name(&self) -> Cow<'static, str> {
        match self {
            Self::LabelMissing => "PodTopologySpreadMissingLabel".into(),
            Self::Skew => PodTopologySpread::NAME.into(),
        }
    }
}

/// How the pods of each constraint are spread, for one pod that is to be placed.
#[derive(Debug)]
pub struct Spread(Vec<SpreadDomains>);

/// How the pods of one constraint are spread.
#[derive(Debug)]
struct SpreadDomains {
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
    fn of(demand: &Demand, world: &World, counts: &mut PodCounts) -> Option<Self> {
        let constraints = &demand.footprint.spread.required;
        if constraints.is_empty() {
            return None;
        }
        let keyed = topologies(constraints, world, counts);
        let domains = |one| SpreadDomains::prepare(one, &keyed, demand, world, counts);
        Some(Self(constraints.iter().map(domains).collect()))
    }
}

impl PreFiltered<'_, SpreadReason> for Spread {
    fn test(&self, node: &NodeState) -> Result<(), Reasons<SpreadReason>> {
        for domains in &self.0 {
            let Some(matching) = domains.matching.of_node(node) else {
                return Err(smallvec![SpreadReason::LabelMissing]);
            };
            if domains.is_skewed(*matching) {
                return Err(smallvec![SpreadReason::Skew]);
            }
        }
        Ok(())
    }

    fn narrow(&self, may_pass: &mut [bool]) -> bool {
        for domains in &self.0 {
            domains
                .matching
                .narrow(may_pass, |matching| matching.is_some_and(|one| !domains.is_skewed(*one)));
        }
        true
    }
}

impl SpreadDomains {
    /// Whether a domain with so many pods would have too many with the pod.
    fn is_skewed(&self, matching: Option<i64>) -> bool {
        matching.unwrap_or_default() + self.own - self.fewest > self.max_skew
    }

    fn prepare(
        constraint: &SpreadConstraint,
        keyed: &[Arc<Topology>],
        demand: &Demand,
        world: &World,
        counts: &mut PodCounts,
    ) -> Self {
        let topology = counts.topology(&constraint.topology_key, world);
        let counting = Counting::of(constraint, keyed, demand);
        let mut matching = counting.domains(topology, world);
        for (slot, pods) in counted(constraint, world, counts) {
            if let Some(total) = matching.of_slot_mut(slot).filter(|_| counting.admits(slot, world)) {
                *total.get_or_insert(0) += pods;
            }
        }
        let domains = || matching.values().iter().flatten().copied();
        let fewest = domains().min().unwrap_or(i64::from(i32::MAX));
        Self {
            fewest: if domains().count() < constraint.min_domains { 0 } else { fewest },
            own: i64::from(constraint.pods.matches(&demand.footprint, world.objects())),
            max_skew: constraint.max_skew,
            matching,
        }
    }
}

/// The domains of each constraint's topology key.
fn topologies(constraints: &[SpreadConstraint], world: &World, counts: &mut PodCounts) -> Vec<Arc<Topology>> {
    constraints.iter().map(|constraint| counts.topology(&constraint.topology_key, world)).collect()
}

/// The slots of the nodes on which there are pods that the constraint is about, each with how many. An empty selector selects every pod, and counts none
/// here.
fn counted(
    constraint: &SpreadConstraint,
    world: &World,
    counts: &mut PodCounts,
) -> impl Iterator<Item = (usize, i64)> {
    let selects = constraint.pods.labels.as_ref().is_some_and(|labels| !labels.is_empty());
    let pods = CountedPods { selectors: vec![constraint.pods.clone()], terminating: Terminating::Skipped };
    counts.of(&pods, world).filter(move |_| selects)
}

/// Which nodes' pods a constraint counts.
struct Counting<'a> {
    /// The topology keys that a node must have.
    keyed: &'a [Arc<Topology>],
    /// What a node must pass; `None`: every node does.
    affinity: Option<&'a NodeAffinityTerms>,
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
    fn admits(&self, slot: usize, world: &World) -> bool {
        let of_node = |state: &Arc<NodeState>| {
            let info = &state.info;
            self.affinity.is_none_or(|affinity| affinity.admits(&info.name, &info.labels))
                && self.tolerations.is_none_or(|tolerations| tolerates_all(tolerations, &info.taints))
        };
        self.keyed.iter().all(|topology| topology.of_slot(slot).is_some())
            && world.nodes.at(slot).is_some_and(of_node)
    }

    /// The domains of a topology key, which is one of those that a node must have: none of their pods is counted yet; `None`: no node of the domain counts.
    fn domains(&self, topology: Arc<Topology>, world: &World) -> ByDomain<Option<i64>> {
        if self.keyed.len() == 1 && self.affinity.is_none() && self.tolerations.is_none() {
            return ByDomain::of_nodes(topology, |nodes| (nodes > 0).then_some(0));
        }
        let mut domains = ByDomain::of(topology);
        for slot in (0..world.nodes.slots().len()).filter(|slot| self.admits(*slot, world)) {
            if let Some(counted) = domains.of_slot_mut(slot) {
                *counted = Some(0);
            }
        }
        domains
    }
}
