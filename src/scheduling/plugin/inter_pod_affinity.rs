//! Whether a pod may stand beside the pods of a domain: its own required affinity and anti-affinity, and the anti-affinity of others.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/interpodaffinity/filtering.go`. Upstream's copy of a term keeps its negative
//! namespace selector and matches it against no labels at all; here a selector is held against the namespace's labels.

pub(in crate::scheduling) mod scoring;

use std::{collections::HashMap, sync::Arc};

use super::pod_counts::{Counted, PodCounts, Terminating};
use crate::scheduling::{
    model::{
        change::Change, footprint::Footprint, kind::Kind, pod::Demand, pod_selector::PodTerm, reason::Reason,
    },
    world::{node_state::NodeState, object::Objects, surroundings::Surroundings, topology::ByDomain},
};

/// Domains that attract or repel one pod that is to be placed.
#[derive(Debug, Default)]
pub(in crate::scheduling) struct Neighbours {
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
    pub(in crate::scheduling) fn prepare(
        demand: &Demand,
        around: Surroundings<'_>,
        counts: &mut PodCounts,
    ) -> Option<Self> {
        let footprint = &demand.footprint;
        let forbidden = forbidden(demand, around, counts);
        if footprint.affinity.is_empty() && footprint.anti_affinity.is_empty() && forbidden.is_empty() {
            return None;
        }
        let all = counted(footprint.affinity.iter());
        let attracting: Vec<_> =
            footprint.affinity.iter().map(|term| occupied(term, &all, around, counts)).collect();
        let repelling = footprint.anti_affinity.iter();
        let repelling =
            repelling.map(|term| occupied(term, &counted([term.as_ref()]), around, counts)).collect();
        let alone = attracting.iter().all(|domains| !domains.values().contains(&true));
        let first = alone && all.matches(footprint, around.objects);
        Some(Self { attracting, first, repelling, forbidden })
    }

    /// Fails on a node whose domains lack a pod that the pod wants to be near, or have one that keeps it away.
    pub(in crate::scheduling) fn test(&self, node: &NodeState) -> Result<(), Reason> {
        let mut attracted = true;
        for domains in &self.attracting {
            match domains.of_node(node) {
                None => return Err(Reason::PodAffinity),
                Some(occupied) => attracted &= occupied,
            }
        }
        if !attracted && !self.first {
            return Err(Reason::PodAffinity);
        }
        let within = |domains: &Occupied| domains.of_node(node).is_some_and(|occupied| *occupied);
        if self.repelling.iter().any(within) {
            return Err(Reason::PodAntiAffinity);
        }
        if self.forbidden.iter().any(within) {
            return Err(Reason::ExistingAntiAffinity);
        }
        Ok(())
    }
}

/// Whether the change could let a pod through that was rejected here: a pod to be near has come, or one to be away from has gone.
pub(in crate::scheduling) fn helps(pod: &Footprint, change: &Change, objects: &Objects) -> bool {
    let about = |term: &PodTerm, other: &Footprint| term.pods.matches(other, objects);
    match change {
        Change::PodAdded(other) => pod.affinity.iter().any(|term| about(term, other)),
        Change::PodRemoved(other) => {
            pod.anti_affinity.iter().any(|term| about(term, other))
                || other.anti_affinity.iter().any(|term| about(term, pod))
                // The first pod of a group needs no other once the last that matched is gone.
                || pod.affinity.iter().any(|term| about(term, other))
        }
        Change::Node | Change::Object(Kind::Namespace, _) => true,
        Change::Object(..)
        | Change::Nomination
        | Change::DevicesFreed
        | Change::Charged(_)
        | Change::CardsClaimed(_) => false,
    }
}

/// The domains of the term's key in which one of these pods stands.
fn occupied(term: &PodTerm, counted: &Counted, around: Surroundings<'_>, counts: &mut PodCounts) -> Occupied {
    let mut domains = Occupied::of(counts.topology(&term.topology_key, around));
    for (slot, _, _) in counts.of(counted, around).filter(|(_, _, pods)| *pods > 0) {
        if let Some(occupied) = domains.of_slot(slot) {
            *occupied = true;
        }
    }
    domains
}

/// Pods that match every one of the terms, those that are being deleted too.
fn counted<'a>(terms: impl IntoIterator<Item = &'a PodTerm>) -> Counted {
    let selectors = terms.into_iter().map(|term| term.pods.clone()).collect();
    Counted { selectors, terminating: Terminating::Counted }
}

/// For each topology key, the domains with a pod whose required anti-affinity is about this one.
fn forbidden(demand: &Demand, around: Surroundings<'_>, counts: &mut PodCounts) -> Vec<Occupied> {
    let mut forbidden: HashMap<&Arc<str>, Occupied> = HashMap::new();
    for &slot in around.repelling {
        let Some(state) = &around.slots[slot] else { continue };
        for term in &state.anti_affinity {
            let key = &term.topology_key;
            let known =
                forbidden.get_mut(key).and_then(|domains| domains.of_slot(slot)).is_some_and(|known| *known);
            if known
                || !state.info.labels.contains_key(&**key)
                || !term.pods.matches(&demand.footprint, around.objects)
            {
                continue;
            }
            let domains = forbidden.entry(key).or_insert_with(|| Occupied::of(counts.topology(key, around)));
            if let Some(occupied) = domains.of_slot(slot) {
                *occupied = true;
            }
        }
    }
    forbidden.into_values().collect()
}
