//! Whether a pod may stand beside the pods of a domain: its own required affinity and anti-affinity, and the anti-affinity of others.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/interpodaffinity/filtering.go`. Upstream's copy of a term keeps its negative
//! namespace selector and matches it against no labels at all; here a selector is held against the namespace's labels.

pub(in crate::scheduling) mod scoring;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use crate::scheduling::{
    change::Change,
    footprint::Footprint,
    node::NodeInfo,
    object::{Kind, Objects},
    pod::Demand,
    pod_counts::{Counted, PodCounts, Surroundings, Terminating},
    pod_selector::PodTerm,
    reason::Reason,
};

/// Domains that attract or repel one pod that is to be placed.
#[derive(Debug, Default)]
pub(in crate::scheduling) struct Neighbours {
    /// For each required term of affinity, the domains with a pod that matches all of them.
    attracting: Vec<Domains>,
    /// Whether the pod is the first of its kind: it matches its own terms and no other pod does.
    first: bool,
    /// For each required term of anti-affinity, the domains with a pod that matches it.
    repelling: Vec<Domains>,
    /// Domains with a pod whose required anti-affinity is about this one, by topology key.
    forbidden: HashMap<Arc<str>, HashSet<String>>,
}

/// Domains of one topology key, by the label's value.
#[derive(Debug)]
struct Domains {
    topology_key: Arc<str>,
    values: HashSet<String>,
}

impl Neighbours {
    /// The domains as they are now; `None`: no pod has a term that concerns this one, and it has none itself.
    pub(in crate::scheduling) fn prepare(
        demand: &Demand,
        around: Surroundings<'_>,
        counts: &mut PodCounts,
    ) -> Option<Self> {
        let footprint = &demand.footprint;
        let forbidden = forbidden(demand, around);
        if footprint.affinity.is_empty() && footprint.anti_affinity.is_empty() && forbidden.is_empty() {
            return None;
        }
        let all = counted(footprint.affinity.iter());
        let attracting: Vec<_> =
            footprint.affinity.iter().map(|term| Domains::with(term, &all, around, counts)).collect();
        let repelling = footprint.anti_affinity.iter();
        let repelling =
            repelling.map(|term| Domains::with(term, &counted([term.as_ref()]), around, counts)).collect();
        let alone = attracting.iter().all(|domains| domains.values.is_empty());
        let first = alone && all.matches(footprint, around.objects);
        Some(Self { attracting, first, repelling, forbidden })
    }

    /// Fails on a node whose domains lack a pod that the pod wants to be near, or have one that keeps it away.
    pub(in crate::scheduling) fn test(&self, node: &NodeInfo) -> Result<(), Reason> {
        let mut attracted = true;
        for domains in &self.attracting {
            match node.labels.get(&*domains.topology_key) {
                None => return Err(Reason::PodAffinity),
                Some(value) => attracted &= domains.values.contains(value),
            }
        }
        if !attracted && !self.first {
            return Err(Reason::PodAffinity);
        }
        let within = |domains: &Domains| {
            node.labels.get(&*domains.topology_key).is_some_and(|value| domains.values.contains(value))
        };
        if self.repelling.iter().any(within) {
            return Err(Reason::PodAntiAffinity);
        }
        let kept_away = |(key, values): (&Arc<str>, &HashSet<String>)| {
            node.labels.get(&**key).is_some_and(|value| values.contains(value))
        };
        if self.forbidden.iter().any(kept_away) {
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
        Change::Object(..) | Change::Nomination => false,
    }
}

impl Domains {
    /// The domains of the term's key in which one of these pods stands.
    fn with(term: &PodTerm, counted: &Counted, around: Surroundings<'_>, counts: &mut PodCounts) -> Self {
        let occupied = counts.of(counted, around).filter(|(_, count)| *count > 0);
        let values = occupied.filter_map(|(node, _)| node.labels.get(&*term.topology_key).cloned());
        Self { topology_key: term.topology_key.clone(), values: values.collect() }
    }
}

/// Pods that match every one of the terms, those that are being deleted too.
fn counted<'a>(terms: impl IntoIterator<Item = &'a PodTerm>) -> Counted {
    let selectors = terms.into_iter().map(|term| term.pods.clone()).collect();
    Counted { selectors, terminating: Terminating::Counted }
}

/// The domains with a pod whose required anti-affinity is about this one.
fn forbidden(demand: &Demand, around: Surroundings<'_>) -> HashMap<Arc<str>, HashSet<String>> {
    let mut forbidden: HashMap<Arc<str>, HashSet<String>> = HashMap::new();
    for state in around.repelling.iter().filter_map(|&slot| around.slots[slot].as_ref()) {
        for term in &state.anti_affinity {
            let Some(value) = state.info.labels.get(&*term.topology_key) else { continue };
            let known = forbidden.get(&term.topology_key).is_some_and(|values| values.contains(value));
            if !known && term.pods.matches(&demand.footprint, around.objects) {
                forbidden.entry(term.topology_key.clone()).or_default().insert(value.clone());
            }
        }
    }
    forbidden
}
