//! How well nodes suit a pod by the preferred terms of affinity between it and the pods that are there.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/interpodaffinity/scoring.go`.

use std::{collections::HashMap, sync::Arc};

use smallvec::SmallVec;

use super::counted;
use crate::scheduling::{
    model::{footprint::NeighbourTerms, pod::Demand, pod_selector::PodTerm},
    plugin::{
        contract::{FeasibleNodes, PreScored},
        pod_counts::PodCounts,
        score::range::{MOST, float, for_each_different, whole},
    },
    world::{World, topology::ByDomain},
};

/// What a required term of affinity of a pod that is there counts (`hardPodAffinityWeight`, whose default is 1).
const REQUIRED: i64 = 1;

/// By topology key and domain, how much the terms of both sides weigh: more is better.
#[derive(Debug, Default)]
pub struct PreferredNeighbours {
    weights: Vec<ByDomain<i64>>,
    /// Where in `weights` those of a key are.
    places: HashMap<Arc<str>, usize>,
}

impl PreferredNeighbours {
    /// The weights as they are now; `None`: no term of either side matches a pod.
    pub(super) fn of(demand: &Demand, world: &World, counts: &mut PodCounts) -> Option<Self> {
        let mut weights = Self::default();
        let mut is_any = false;
        for weighted in &demand.footprint.neighbours.preferred {
            let counted = counted([&weighted.term]);
            let place = weights.place_of(&weighted.term, world, counts);
            let domains = &mut weights.weights[place];
            for (slot, pods) in counts.of(&counted, world) {
                is_any |= add(domains, slot, weighted.weight.saturating_mul(pods));
            }
        }
        is_any |= weights.add_of_others(demand, world, counts);
        is_any.then_some(weights)
    }

    /// Adds the terms of the pods that are there; whether one matches.
    fn add_of_others(&mut self, demand: &Demand, world: &World, counts: &mut PodCounts) -> bool {
        if !world.nodes.has_weighing() {
            return false;
        }
        let weighing = counts.weighing(world);
        // Whether a term is about the pod is found out once for all pods that have it.
        let mut about_pod = |terms: &Arc<NeighbourTerms>| {
            let required = terms.affinity.iter().map(|term| (term, REQUIRED));
            let preferred = terms.preferred.iter().map(|weighted| (&weighted.term, weighted.weight));
            let about = required.chain(preferred);
            let about = about.filter(|(term, _)| term.pods.matches(&demand.footprint, world.objects()));
            about
                .map(|(term, weight)| (self.place_of(term, world, counts), weight))
                .collect::<PlacedWeights>()
        };
        let about: Vec<PlacedWeights> = weighing.lists().iter().map(&mut about_pod).collect();
        if about.iter().all(PlacedWeights::is_empty) {
            return false;
        }
        let mut is_any = false;
        for (slot, number, pods) in weighing.in_slots(world.nodes.weighing()) {
            for (place, weight) in &about[number] {
                is_any |= add(&mut self.weights[*place], slot, weight.saturating_mul(pods));
            }
        }
        is_any
    }

    /// Where the weights by domain of a term's topology key are.
    fn place_of(&mut self, term: &PodTerm, world: &World, counts: &mut PodCounts) -> usize {
        let Self { weights, places } = self;
        *places.entry(term.topology_key.clone()).or_insert_with(|| {
            weights.push(ByDomain::of(counts.topology(&term.topology_key, world)));
            weights.len() - 1
        })
    }
}

/// The places of some topology keys, each with a weight.
type PlacedWeights = SmallVec<[(usize, i64); 1]>;

/// Adds to the domain of the node in this slot; whether the node is in one.
fn add(domains: &mut ByDomain<i64>, slot: usize, weight: i64) -> bool {
    let Some(total) = domains.of_slot_mut(slot) else { return false };
    *total = total.saturating_add(weight);
    true
}

impl PreScored for PreferredNeighbours {
    /// 100 where the terms weigh most; 0 everywhere if they weigh the same on every node.
    fn normalised(&self, feasible: FeasibleNodes<'_>) -> Vec<i64> {
        let mut scores = vec![0_i64; feasible.slots.len()];
        for domains in &self.weights {
            for (score, weight) in scores.iter_mut().zip(domains.of_slots(feasible.slots)) {
                *score = score.saturating_add(weight.copied().unwrap_or_default());
            }
        }
        let (mut least, mut most) = (i64::MAX, i64::MIN);
        for score in &scores {
            (least, most) = (least.min(*score), most.max(*score));
        }
        let range = most.saturating_sub(least);
        for_each_different(&mut scores, |score| {
            let above = float(score.saturating_sub(least));
            if range == 0 { 0 } else { whole(float(MOST) * (above / float(range))) }
        });
        scores
    }
}
