//! Whether a pod may stand beside the pods of a domain: its own required affinity and anti-affinity, and the anti-affinity of others.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/interpodaffinity/filtering.go`. Upstream's copy of a term keeps its negative
//! namespace selector and matches it against no labels at all; here a selector is held against the namespace's labels.

pub mod scoring;

use std::{borrow::Cow, sync::Arc};

use smallvec::smallvec;

use super::{
    contract::{PreFilter, PreFiltered, PreScore, Reach, Reasons, Rejection, SchedulingPlugin},
    pod_counts::{CountedPods, PodCounts, Terminating},
};
use crate::scheduling::{
    model::{change::Change, footprint::Footprint, kind::Kind, pod::Demand, pod_selector::PodTerm},
    world::{World, node_state::NodeState, object::Objects, topology::ByDomain},
};
use scoring::PreferredNeighbours;

/// Rejects a node beside whose domains' pods the pod may not stand, and prefers nodes by the preferred terms of both sides.
#[derive(Debug)]
pub struct InterPodAffinity;

impl SchedulingPlugin for InterPodAffinity {
    const NAME: &'static str = "InterPodAffinity";
    const REACH: Reach = Reach::Cluster;
    const WEIGHT: Option<u32> = Some(2);

    type Reason = NeighbourReason;

    /// A pod to be near has come, or one to be away from has gone.
    fn helps(pod: &Footprint, change: &Change, objects: &Objects) -> bool {
        let about = |term: &PodTerm, other: &Footprint| term.pods.matches(other, objects);
        match change {
            Change::PodAdded(other) => pod.neighbours.affinity.iter().any(|term| about(term, other)),
            Change::PodRemoved(other) => {
                pod.neighbours.anti_affinity.iter().any(|term| about(term, other))
                    || other.neighbours.anti_affinity.iter().any(|term| about(term, pod))
                    // The first pod of a group needs no other once the last that matched is gone.
                    || pod.neighbours.affinity.iter().any(|term| about(term, other))
            }
            Change::Node | Change::Object(Kind::Namespace, _) => true,
            Change::Object(..)
            | Change::Nomination
            | Change::DevicesFreed
            | Change::ResourcesFreed
            | Change::Charged(_)
            | Change::CardsClaimed(_) => false,
        }
    }
}

impl PreFilter for InterPodAffinity {
    type Found<'a> = Neighbours;

    fn prepare<'a>(
        demand: &'a Demand,
        world: &'a World,
        counts: &mut PodCounts,
    ) -> Result<Option<Neighbours>, NeighbourReason> {
        Ok(Neighbours::of(demand, world, counts))
    }
}

impl PreScore for InterPodAffinity {
    type Found<'a> = PreferredNeighbours;

    fn prepare<'a>(
        demand: &'a Demand,
        world: &'a World,
        counts: &mut PodCounts,
    ) -> Option<PreferredNeighbours> {
        PreferredNeighbours::of(demand, world, counts)
    }
}

/// Why the pods of a node's domains keep a pod away.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, thiserror::Error)]
pub enum NeighbourReason {
    /// No pod that the pod must be near stands there.
    #[error("node(s) didn't match pod affinity rules")]
    Affinity,
    /// A pod that the pod must be away from stands there.
    #[error("node(s) didn't match pod anti-affinity rules")]
    AntiAffinity,
    /// A pod that must be away from the pod stands there.
    #[error("node(s) didn't satisfy existing pods anti-affinity rules")]
    ExistingAntiAffinity,
}

impl Rejection for NeighbourReason {
    fn name(&self) -> Cow<'static, str> {
        match self {
            Self::Affinity => "PodAffinity".into(),
            Self::AntiAffinity => "PodAntiAffinity".into(),
            Self::ExistingAntiAffinity => "ExistingPodAntiAffinity".into(),
        }
    }
}

/// Domains that attract or repel one pod that is to be placed.
#[derive(Debug, Default)]
pub struct Neighbours {
    /// For each required term of affinity, the domains with a pod that matches all of them.
    attracting: Vec<Occupied>,
    /// Whether the pod is the first of its kind: it matches its own terms and no other pod does.
    first: bool,
    /// For each required term of anti-affinity, the domains with a pod that matches it.
    repelling: Vec<Occupied>,
    /// For each topology key, the domains with a pod whose required anti-affinity is about this one.
    forbidden: Vec<Occupied>,
}

/// Whether one of some pods stands in a domain.
type Occupied = ByDomain<bool>;

impl Neighbours {
    /// The domains as they are now; `None`: no pod has a term that concerns this one, and it has none itself.
    fn of(demand: &Demand, world: &World, counts: &mut PodCounts) -> Option<Self> {
        let footprint = &demand.footprint;
        let forbidden = forbidden(demand, world, counts);
        if footprint.neighbours.affinity.is_empty()
            && footprint.neighbours.anti_affinity.is_empty()
            && forbidden.is_empty()
        {
            return None;
        }
        let all = counted(footprint.neighbours.affinity.iter());
        let attracting: Vec<_> =
            footprint.neighbours.affinity.iter().map(|term| occupied(term, &all, world, counts)).collect();
        let repelling = footprint.neighbours.anti_affinity.iter();
        let repelling =
            repelling.map(|term| occupied(term, &counted([term.as_ref()]), world, counts)).collect();
        let alone = attracting.iter().all(|domains| !domains.values().contains(&true));
        let first = alone && all.matches(footprint, world.objects());
        Some(Self { attracting, first, repelling, forbidden })
    }
}

impl PreFiltered<'_, NeighbourReason> for Neighbours {
    fn test(&self, node: &NodeState) -> Result<(), Reasons<NeighbourReason>> {
        let mut attracted = true;
        for domains in &self.attracting {
            match domains.of_node(node) {
                None => return Err(smallvec![NeighbourReason::Affinity]),
                Some(occupied) => attracted &= occupied,
            }
        }
        if !attracted && !self.first {
            return Err(smallvec![NeighbourReason::Affinity]);
        }
        let within = |domains: &Occupied| domains.of_node(node).is_some_and(|occupied| *occupied);
        if self.repelling.iter().any(within) {
            return Err(smallvec![NeighbourReason::AntiAffinity]);
        }
        if self.forbidden.iter().any(within) {
            return Err(smallvec![NeighbourReason::ExistingAntiAffinity]);
        }
        Ok(())
    }

    fn narrow(&self, may_pass: &mut [bool]) -> bool {
        for domains in &self.attracting {
            domains.narrow(may_pass, |occupied| occupied.is_some_and(|occupied| *occupied || self.first));
        }
        for domains in self.repelling.iter().chain(&self.forbidden) {
            domains.narrow(may_pass, |occupied| occupied.is_none_or(|occupied| !occupied));
        }
        true
    }
}

/// The domains of the term's key in which one of these pods stands.
fn occupied(term: &PodTerm, counted: &CountedPods, world: &World, counts: &mut PodCounts) -> Occupied {
    let mut domains = Occupied::of(counts.topology(&term.topology_key, world));
    for (slot, _) in counts.of(counted, world) {
        if let Some(occupied) = domains.of_slot_mut(slot) {
            *occupied = true;
        }
    }
    domains
}

/// Pods that match every one of the terms, those that are being deleted too.
fn counted<'a>(terms: impl IntoIterator<Item = &'a PodTerm>) -> CountedPods {
    let selectors = terms.into_iter().map(|term| term.pods.clone()).collect();
    CountedPods { selectors, terminating: Terminating::Counted }
}

/// For each topology key, the domains with a pod whose required anti-affinity is about this one.
fn forbidden(demand: &Demand, world: &World, counts: &mut PodCounts) -> Vec<Occupied> {
    let mut forbidden: Vec<(&Arc<str>, Occupied)> = Vec::new();
    // Pods that are alike share their terms, so that what holds of one mostly holds of the next: where its domains are, if it is about this pod.
    let mut last: Option<(&Arc<PodTerm>, Option<usize>)> = None;
    for (slot, state) in world.nodes.repelling() {
        for term in &state.anti_affinity {
            let key = &term.topology_key;
            let place = match last {
                Some((last, place)) if Arc::ptr_eq(last, term) => place,
                _ => {
                    let known = forbidden.iter().position(|(known, _)| *known == key);
                    if known.and_then(|place| forbidden[place].1.of_slot(slot)) == Some(&true) {
                        continue;
                    }
                    let is_about = term.pods.matches(&demand.footprint, world.objects());
                    let place = is_about.then(|| {
                        known.unwrap_or_else(|| {
                            forbidden.push((key, Occupied::of(counts.topology(key, world))));
                            forbidden.len() - 1
                        })
                    });
                    last = Some((term, place));
                    place
                }
            };
            if let Some(occupied) = place.and_then(|place| forbidden[place].1.of_slot_mut(slot)) {
                *occupied = true;
            }
        }
    }
    let domains = forbidden.into_iter().map(|(_, domains)| domains);
    domains.filter(|domains| domains.values().contains(&true)).collect()
}
