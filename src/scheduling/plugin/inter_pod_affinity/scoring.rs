//! How well nodes suit a pod by the preferred terms of affinity between it and the pods that are there.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/interpodaffinity/scoring.go`.

use std::{collections::HashMap, sync::Arc};

use super::counted;
use crate::scheduling::{
    node::NodeInfo,
    pod::Demand,
    pod_counts::{PodCounts, Surroundings},
    pod_selector::PodTerm,
    score::{MOST, float, whole},
};

/// What a required term of affinity of a pod that is there counts (`hardPodAffinityWeight`, whose default is 1).
const REQUIRED: i64 = 1;

/// By topology key and value, how much the terms of both sides weigh: more is better.
#[derive(Debug, Default)]
pub(in crate::scheduling) struct PreferredNeighbours(HashMap<Arc<str>, HashMap<String, i64>>);

impl PreferredNeighbours {
    /// The weights as they are now; `None`: no term of either side matches a pod.
    pub(in crate::scheduling) fn prepare(
        demand: &Demand,
        around: Surroundings<'_>,
        counts: &mut PodCounts,
    ) -> Option<Self> {
        let mut domains = Self::default();
        for weighted in &demand.footprint.preferred {
            let counted = counted([&weighted.term]);
            for (node, pods) in counts.of(&counted, around).filter(|(_, pods)| *pods > 0) {
                domains.add(&weighted.term, node, weighted.weight.saturating_mul(pods));
            }
        }
        domains.add_of_others(demand, around);
        (!domains.0.is_empty()).then_some(domains)
    }

    /// Adds the terms of the pods that are there.
    fn add_of_others(&mut self, demand: &Demand, around: Surroundings<'_>) {
        for state in around.weighing.iter().filter_map(|&slot| around.slots[slot].as_ref()) {
            for pod in &state.pods {
                let required = pod.affinity.iter().map(|term| (term, REQUIRED));
                let preferred = pod.preferred.iter().map(|weighted| (&weighted.term, weighted.weight));
                for (term, weight) in required.chain(preferred) {
                    if term.pods.matches(&demand.footprint, around.objects) {
                        self.add(term, &state.info, weight);
                    }
                }
            }
        }
    }

    fn add(&mut self, term: &PodTerm, node: &NodeInfo, weight: i64) {
        let Some(value) = node.labels.get(&*term.topology_key) else { return };
        let domains = self.0.entry(term.topology_key.clone()).or_default();
        let total = domains.entry(value.clone()).or_default();
        *total = total.saturating_add(weight);
    }

    fn raw(&self, node: &NodeInfo) -> i64 {
        let weight = |(key, domains): (&Arc<str>, &HashMap<String, i64>)| {
            node.labels.get(&**key).and_then(|value| domains.get(value)).copied()
        };
        self.0.iter().filter_map(weight).fold(0, i64::saturating_add)
    }
}

/// By what the raw scores of the nodes that fit are normalised.
#[derive(Debug)]
pub(in crate::scheduling) struct NeighbourScale<'a> {
    domains: &'a PreferredNeighbours,
    least: i64,
    most: i64,
}

impl<'a> NeighbourScale<'a> {
    /// The extremes over these nodes.
    pub(in crate::scheduling) fn of<'n>(
        domains: &'a PreferredNeighbours,
        feasible: impl Iterator<Item = &'n NodeInfo>,
    ) -> Self {
        let scores: Vec<i64> = feasible.map(|node| domains.raw(node)).collect();
        let least = scores.iter().copied().min().unwrap_or_default();
        let most = scores.iter().copied().max().unwrap_or_default();
        Self { domains, least, most }
    }

    /// 0 to 100, 100 where the terms weigh most; 0 where they weigh the same on every node.
    pub(in crate::scheduling) fn score(&self, node: &NodeInfo) -> i64 {
        let range = self.most.saturating_sub(self.least);
        if range == 0 {
            return 0;
        }
        let above = self.domains.raw(node).saturating_sub(self.least);
        whole(float(MOST) * (float(above) / float(range)))
    }
}
