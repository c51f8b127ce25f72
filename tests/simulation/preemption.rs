//! What must hold of preemption: no pod goes for a pod that no node is kept for, and what is kept for a pod is given to no other.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};

use crate::record::Pod;

/// A victim may be deleted so long after the pod that it goes for was last seen to be nominated: that may be gone by then.
const MEMORY: SignedDuration = SignedDuration::from_mins(2);
/// A Binding that was decided before a nomination may arrive so long after it.
const LATE: SignedDuration = SignedDuration::from_secs(30);

/// Nominations and victims, as the API server has shown them.
#[derive(Debug, Default)]
pub(crate) struct Preemptions {
    /// By node, the priorities of pods that it was kept for, and until when.
    kept: BTreeMap<String, BTreeMap<i64, Timestamp>>,
    /// Since when pods are nominated to their nodes.
    nominated: BTreeMap<String, (String, Timestamp)>,
    preempted: BTreeSet<String>,
}

impl Preemptions {
    /// Takes in all pods as they are, and names the pods that are preempted for none.
    pub(crate) fn see(&mut self, pods: &[Arc<Pod>], now: Timestamp) -> Vec<String> {
        let waiting = |pod: &&Arc<Pod>| pod.is_live() && pod.node.is_empty() && !pod.nominated.is_empty();
        let mut nominated = BTreeMap::new();
        for pod in pods.iter().filter(waiting) {
            self.kept.entry(pod.nominated.clone()).or_default().insert(pod.priority, now);
            let before = self.nominated.get(&pod.uid).filter(|(node, _)| *node == pod.nominated);
            let since = before.map_or(now, |(_, since)| *since);
            nominated.insert(pod.uid.clone(), (pod.nominated.clone(), since));
        }
        self.nominated = nominated;
        let mut violations = Vec::new();
        for pod in pods.iter().filter(|pod| pod.preempted) {
            if self.preempted.insert(pod.uid.clone()) && !self.was_kept(pod, now) {
                violations.push(format!(
                    "{} was preempted on {}, which was kept for no pod of higher priority",
                    pod.name, pod.node
                ));
            }
        }
        violations
    }

    fn was_kept(&self, victim: &Pod, now: Timestamp) -> bool {
        let kept = self.kept.get(&victim.node).into_iter().flatten();
        kept.into_iter().any(|(priority, last)| *priority > victim.priority && *last + MEMORY >= now)
    }

    /// The pods of higher priority for which this node has been kept for so long that a pod which is bound there now was decided after it.
    pub(crate) fn kept_before<'a>(
        &'a self,
        bound: &'a Pod,
        pods: &'a [Arc<Pod>],
        now: Timestamp,
    ) -> impl Iterator<Item = &'a Arc<Pod>> {
        let is_kept = move |pod: &&Arc<Pod>| {
            let nomination = self.nominated.get(&pod.uid);
            pod.ours
                && pod.priority > bound.priority
                && nomination.is_some_and(|(node, since)| *node == bound.node && *since + LATE < now)
        };
        pods.iter().filter(is_kept)
    }
}
