//! How well nodes suit a pod by its spread constraints with `ScheduleAnyway`, or by those that it has by default.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/podtopologyspread/scoring.go`.

use std::{borrow::Cow, sync::Arc};

use super::{Counting, counted, system_default, topologies};
use crate::object::node::HOSTNAME;
use crate::scheduling::{
    model::{footprint::SpreadConstraint, pod::Demand},
    plugin::{
        contract::{FeasibleNodes, PreScored},
        pod_counts::PodCounts,
        score::range::{MOST, float, for_each_different, whole},
    },
    world::{
        World,
        topology::{ByDomain, Topology},
    },
};

/// How many matching pods there are by each constraint, for one pod that is to be placed.
#[derive(Debug)]
pub struct PreferredSpread<'a> {
    constraints: Cow<'a, [SpreadConstraint]>,
    /// The domains of the topology keys, in the order of the constraints.
    topologies: Vec<Arc<Topology>>,
    /// In the order of the constraints.
    matching: Vec<Matching>,
    needed: RequiredKeys,
}

/// Which topology keys a node must have to be scored and to have its pods counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum RequiredKeys {
    /// Those of every constraint.
    AllKeys,
    /// None: nodes without zones are still spread over by name. Of a constraint by zone those without one are a domain together.
    NoKey,
}

/// How many pods match one constraint.
#[derive(Debug)]
enum Matching {
    /// By domain of the topology key.
    ByDomain(ByDomain<i64>),
    /// By node, in the order of their slots.
    ByNode(Vec<i64>),
}

impl<'a> PreferredSpread<'a> {
    /// How pods are spread now; `None`: the pod has no such constraint, by itself or by default.
    pub(super) fn of(demand: &'a Demand, world: &World, counts: &mut PodCounts) -> Option<Self> {
        let own = &*demand.footprint.spread.preferred;
        let (constraints, needed) = if own.is_empty() {
            (Cow::Owned(system_default::constraints(demand, world.objects())), RequiredKeys::NoKey)
        } else {
            (Cow::Borrowed(own), RequiredKeys::AllKeys)
        };
        if constraints.is_empty() {
            return None;
        }
        let topologies = topologies(&constraints, world, counts);
        let keyed = if needed == RequiredKeys::AllKeys { &*topologies } else { &[] };
        let matching = constraints.iter().zip(&topologies).map(|(one, topology)| {
            let counting = Counting::of(one, keyed, demand);
            Matching::prepare(one, topology, &counting, world, counts)
        });
        let matching = matching.collect();
        Some(Self { constraints, topologies, matching, needed })
    }

    /// Whether the node in this slot has every topology key that is needed.
    fn concerns(&self, slot: usize) -> bool {
        let has = |topology: &Arc<Topology>| topology.of_slot(slot).is_some();
        self.needed == RequiredKeys::NoKey || self.topologies.iter().all(has)
    }
}

impl PreScored for PreferredSpread<'_> {
    /// 100 where the fewest matching pods are; 0 where a topology key is missing.
    fn normalised(&self, feasible: FeasibleNodes<'_>) -> Vec<i64> {
        let slots = feasible.slots.iter().copied();
        let concerned: Vec<usize> = slots.filter(|slot| self.concerns(*slot)).collect();
        let mut scores = self.raw(&concerned);
        let least = scores.iter().copied().min().unwrap_or_default();
        let most = scores.iter().copied().max().unwrap_or_default();
        for_each_different(
            &mut scores,
            |raw| {
                if most == 0 { MOST } else { MOST * (most + least - raw) / most }
            },
        );
        if concerned.len() == feasible.slots.len() {
            return scores;
        }
        let mut concerned = concerned.into_iter().zip(scores).peekable();
        let score =
            |slot: &usize| concerned.next_if(|(other, _)| other == slot).map_or(0, |(_, score)| score);
        feasible.slots.iter().map(score).collect()
    }
}

impl PreferredSpread<'_> {
    /// How many matching pods there are for each of these nodes, which fit and have every topology key that is needed, weighed by how many domains each
    /// constraint has. The skew that a constraint allows is added, so that it waters small differences down.
    fn raw(&self, slots: &[usize]) -> Vec<i64> {
        let mut sums = vec![0.0; slots.len()];
        for ((constraint, topology), matching) in
            self.constraints.iter().zip(&self.topologies).zip(&self.matching)
        {
            let of_nodes = &*constraint.topology_key == HOSTNAME;
            let size = if of_nodes { slots.len() } else { count_domains(topology, slots) };
            let weight = float(i64::try_from(size).unwrap_or(i64::MAX).saturating_add(2)).ln();
            let score = |pods: i64| float(pods) * weight + float(constraint.max_skew - 1);
            for (sum, slot) in sums.iter_mut().zip(slots) {
                *sum += matching.at(*slot, topology).map_or(0.0, score);
            }
        }
        sums.into_iter().map(|sum| whole(sum.round())).collect()
    }
}

impl Matching {
    fn prepare(
        constraint: &SpreadConstraint,
        topology: &Arc<Topology>,
        counting: &Counting<'_>,
        world: &World,
        counts: &mut PodCounts,
    ) -> Self {
        let occupied = counted(constraint, world, counts).filter(|(_, _, pods)| *pods > 0);
        if &*constraint.topology_key == HOSTNAME {
            let mut by_slot = vec![0; world.nodes.slots().len()];
            for (slot, _, pods) in occupied {
                by_slot[slot] = pods;
            }
            return Self::ByNode(by_slot);
        }
        let mut domains = ByDomain::of(topology.clone());
        let mut unlabelled = 0;
        for (slot, _, pods) in occupied.filter(|(slot, node, _)| counting.admits(*slot, node)) {
            *domains.of_slot_mut(slot).unwrap_or(&mut unlabelled) += pods;
        }
        // Upstream reads a label that is missing as an empty value.
        if let Some(pods) = domains.of_value("") {
            *pods += unlabelled;
        }
        Self::ByDomain(domains)
    }

    /// How many there are in the domain of the node in this slot; `None`: the topology key is missing.
    fn at(&self, slot: usize, topology: &Topology) -> Option<i64> {
        topology.of_slot(slot)?;
        let matching = match self {
            Self::ByDomain(domains) => domains.of_slot(slot),
            Self::ByNode(by_slot) => by_slot.get(slot),
        };
        Some(matching.copied().unwrap_or_default())
    }
}

/// In how many domains the nodes are; those that lack the topology key are in one with those that have an empty value of it.
fn count_domains(topology: &Arc<Topology>, slots: &[usize]) -> usize {
    let mut domains = ByDomain::of(topology.clone());
    let mut unlabelled = false;
    for slot in slots {
        *domains.of_slot_mut(*slot).unwrap_or(&mut unlabelled) = true;
    }
    if let Some(empty) = domains.of_value("") {
        *empty |= unlabelled;
        unlabelled = false;
    }
    domains.values().iter().filter(|is_there| **is_there).count() + usize::from(unlabelled)
}
