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

    /// The nodes among those in these slots that have every topology key that is needed.
    fn concerned<'s>(&self, slots: &'s [usize]) -> Cow<'s, [usize]> {
        if self.needed == RequiredKeys::NoKey
            || self.topologies.iter().all(|topology| topology.has_all(slots))
        {
            return Cow::Borrowed(slots);
        }
        let has_all = |slot: &usize| self.topologies.iter().all(|topology| topology.of_slot(*slot).is_some());
        slots.iter().copied().filter(has_all).collect()
    }
}

impl PreScored for PreferredSpread<'_> {
    /// 100 where the fewest matching pods are; 0 where a topology key is missing.
    fn normalised(&self, feasible: FeasibleNodes<'_>) -> Vec<i64> {
        let concerned = self.concerned(feasible.slots);
        let mut scores = Vec::with_capacity(concerned.len());
        let (mut least, mut most) = (i64::MAX, 0);
        for sum in self.sums(&concerned) {
            let raw = nearest(sum);
            (least, most) = (raw.min(least), raw.max(most));
            scores.push(raw);
        }
        for_each_different(
            &mut scores,
            |raw| {
                if most == 0 { MOST } else { MOST * (most + least - raw) / most }
            },
        );
        if concerned.len() == feasible.slots.len() {
            return scores;
        }
        let mut concerned = concerned.iter().zip(scores).peekable();
        let score =
            |slot: &usize| concerned.next_if(|(other, _)| *other == slot).map_or(0, |(_, score)| score);
        feasible.slots.iter().map(score).collect()
    }
}

impl PreferredSpread<'_> {
    /// How many matching pods there are for each of these nodes, which fit and have every topology key that is needed, weighed by how many domains each
    /// constraint has. The skew that a constraint allows is added, so that it waters small differences down.
    fn sums(&self, slots: &[usize]) -> Vec<f64> {
        let mut sums = vec![0.0; slots.len()];
        for ((constraint, topology), matching) in
            self.constraints.iter().zip(&self.topologies).zip(&self.matching)
        {
            let of_nodes = &*constraint.topology_key == HOSTNAME;
            let size = if of_nodes { slots.len() } else { count_domains(topology, slots) };
            let weight = float(i64::try_from(size).unwrap_or(i64::MAX).saturating_add(2)).ln();
            let score = |pods: i64| float(pods) * weight + float(constraint.max_skew - 1);
            matching.add(&mut sums, slots, topology, score);
        }
        sums
    }
}

/// The whole number that is nearest to one that is not negative, of two the higher one.
fn nearest(sum: f64) -> i64 {
    let below = whole(sum);
    below + i64::from(sum - float(below) >= 0.5)
}

impl Matching {
    fn prepare(
        constraint: &SpreadConstraint,
        topology: &Arc<Topology>,
        counting: &Counting<'_>,
        world: &World,
        counts: &mut PodCounts,
    ) -> Self {
        let occupied = counted(constraint, world, counts);
        if &*constraint.topology_key == HOSTNAME {
            let mut by_slot = vec![0; world.nodes.slots().len()];
            for (slot, pods) in occupied {
                by_slot[slot] = pods;
            }
            return Self::ByNode(by_slot);
        }
        let mut domains = ByDomain::of(topology.clone());
        let mut unlabelled = 0;
        for (slot, pods) in occupied.filter(|(slot, _)| counting.admits(*slot, world)) {
            *domains.of_slot_mut(slot).unwrap_or(&mut unlabelled) += pods;
        }
        // Upstream reads a label that is missing as an empty value.
        if let Some(pods) = domains.of_value("") {
            *pods += unlabelled;
        }
        Self::ByDomain(domains)
    }

    /// Adds to each sum the score of the node in the same place of the slots, by how many pods match in its domain; nothing where the topology key is missing.
    fn add(&self, sums: &mut [f64], slots: &[usize], topology: &Topology, score: impl Fn(i64) -> f64) {
        match self {
            Self::ByDomain(domains) => {
                let scores = domains.map(|pods| score(*pods));
                for (sum, score) in sums.iter_mut().zip(scores.of_slots(slots)) {
                    *sum += score.copied().unwrap_or_default();
                }
            }
            Self::ByNode(by_slot) => {
                for (sum, slot) in
                    sums.iter_mut().zip(slots).filter(|(_, slot)| topology.of_slot(**slot).is_some())
                {
                    *sum += score(by_slot.get(*slot).copied().unwrap_or_default());
                }
            }
        }
    }
}

/// In how many domains the nodes are; those that lack the topology key are in one with those that have an empty value of it.
fn count_domains(topology: &Arc<Topology>, slots: &[usize]) -> usize {
    if slots.len() == topology.nodes().iter().sum::<usize>() && topology.has_all(slots) {
        return topology.nodes().iter().filter(|nodes| **nodes > 0).count();
    }
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
