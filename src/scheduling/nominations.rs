//! Pods that wait for room on a node that was nominated for them: it is kept for them against pods of lower priority.
//!
//! Source: v1.36 `pkg/scheduler/framework/runtime/framework.go` (`RunFilterPluginsWithNominatedPods`). The pods of other schedulers
//! count too: their room was made by evicting others.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    cycle::Cycle,
    filter::filter,
    footprint::Footprint,
    node::NodeName,
    pod::{Demand, PodInfo, Uid},
    pod_counts::{PodCounts, Surroundings},
    reason::NodeReasons,
    snapshot::NodeState,
};

/// Every nominated pod that holds nothing yet.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Nominations {
    by_pod: BTreeMap<Uid, Nomination>,
    by_node: BTreeMap<NodeName, BTreeSet<Uid>>,
}

/// A node that is kept for a pod.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Nomination {
    node: NodeName,
    priority: i32,
    footprint: Arc<Footprint>,
}

impl Nominations {
    /// Takes in what a pod's status says; whether that differs from what was known.
    pub(super) fn see(&mut self, pod: &PodInfo) -> bool {
        let nomination = pod.nominated.as_ref().map(|node| Nomination {
            node: node.clone(),
            priority: pod.priority,
            footprint: pod.footprint.clone(),
        });
        if self.by_pod.get(&pod.key.uid) == nomination.as_ref() {
            return false;
        }
        self.remove(&pod.key.uid);
        if let Some(nomination) = nomination {
            self.by_node.entry(nomination.node.clone()).or_default().insert(pod.key.uid.clone());
            self.by_pod.insert(pod.key.uid.clone(), nomination);
        }
        true
    }

    /// Takes out a pod that holds something or is gone; whether it was nominated.
    pub(super) fn remove(&mut self, pod: &Uid) -> bool {
        let Some(nomination) = self.by_pod.remove(pod) else { return false };
        if let Some(pods) = self.by_node.get_mut(&nomination.node) {
            pods.remove(pod);
            if pods.is_empty() {
                self.by_node.remove(&nomination.node);
            }
        }
        true
    }

    /// Whether no node is kept for a pod.
    pub(super) fn is_empty(&self) -> bool {
        self.by_pod.is_empty()
    }

    /// Whether the pod is nominated.
    pub(super) fn holds(&self, pod: &Uid) -> bool {
        self.by_pod.contains_key(pod)
    }

    /// The other pods that are nominated to this node and of no lower priority.
    fn before(&self, demand: &Demand, node: &str) -> Vec<Arc<Footprint>> {
        let pods = self.by_node.get(node).into_iter().flatten().filter(|uid| **uid != demand.uid);
        let nominations = pods.filter_map(|uid| self.by_pod.get(uid));
        let before = nominations.filter(|nomination| nomination.priority >= demand.priority);
        before.map(|nomination| nomination.footprint.clone()).collect()
    }

    /// Whether a node that has room for the pod would still have it beside the pods that it is kept for. `cycle` is what the plugins
    /// found out for the pod without them. Of their cards nothing is known.
    pub fn test(
        &self,
        demand: &Demand,
        node: &Arc<NodeState>,
        around: Surroundings<'_>,
        cycle: &Cycle<'_>,
    ) -> Result<(), NodeReasons> {
        let before = self.before(demand, &node.info.name);
        if before.is_empty() {
            return Ok(());
        }
        // What looks at more than one node has nothing to do for the pod, unless these pods keep others away or share its claims.
        let alone = cycle.is_empty() && demand.footprint.claims.is_empty();
        let alone = alone && before.iter().all(|pod| pod.anti_affinity.is_empty());
        let kept = Arc::new(NodeState::clone(node).beside(before));
        filter(&demand.ask, &kept, around.device_resources, &[])?;
        if alone {
            return Ok(());
        }
        let mut slots = around.slots.to_vec();
        let (mut repelling, mut claiming) = (around.repelling.clone(), around.claiming.clone());
        for (slot, state) in slots.iter_mut().enumerate() {
            if state.as_ref().is_some_and(|state| state.info.name == kept.info.name) {
                *state = Some(kept.clone());
                repelling.insert(slot);
                claiming.insert(slot);
            }
        }
        let around = Surroundings { slots: &slots, repelling: &repelling, claiming: &claiming, ..around };
        // Counts are kept by generation, and this state has none of its own.
        let mut counts = PodCounts::default();
        let cycle = Cycle::prepare(demand, around, &mut counts).map_err(|reason| vec![reason])?;
        cycle.test(&kept)
    }
}
