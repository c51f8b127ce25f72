//! Pods that are spread over zones with a skew of 1, judged by Kubernetes' rule and without any of Berth's code.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;

use crate::record::{Pod, text};

/// The zone of a node; `None`: it has none, and no pod that is spread may stand there.
pub(crate) fn zone(node: &Value) -> Option<&str> {
    node["metadata"]["labels"]["zone"].as_str()
}

/// How many pods count in each zone; one that is being deleted does not.
pub(crate) fn counts(nodes: &[Arc<Value>], pods: &[Arc<Pod>]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for node in nodes {
        let Some(zone) = zone(node) else { continue };
        let name = text(node, "/metadata/name");
        let here = |pod: &&Arc<Pod>| pod.node == name && pod.spreads && pod.is_live() && !pod.terminating;
        *counts.entry(zone.to_owned()).or_default() += pods.iter().filter(here).count();
    }
    counts
}

/// Whether one more pod may stand in the zone: with it, the zone has at most one more than the zone with the fewest.
pub(crate) fn admits(counts: &BTreeMap<String, usize>, zone: &str) -> bool {
    let fewest = counts.values().min().copied().unwrap_or_default();
    counts.get(zone).is_some_and(|count| *count <= fewest)
}

/// Which pods were bound at the last look; `None`: there was none.
#[derive(Debug, Default)]
pub(crate) struct Spread {
    bound: Option<BTreeSet<String>>,
}

impl Spread {
    /// While all is calm: the one pod that was bound since the last look stands where it may. Of several it is not known which was
    /// decided first.
    pub(crate) fn judge(&mut self, nodes: &[Arc<Value>], pods: &[Arc<Pod>]) -> Option<String> {
        let bound =
            pods.iter().filter(|pod| pod.ours && pod.spreads && pod.is_live() && !pod.node.is_empty());
        let bound: BTreeSet<String> = bound.map(|pod| pod.uid.clone()).collect();
        let before = self.bound.replace(bound.clone())?;
        let new: Vec<&String> = bound.difference(&before).collect();
        let [new] = new[..] else { return None };
        let (new, others): (Vec<_>, Vec<_>) = pods.iter().cloned().partition(|pod| pod.uid == *new);
        let counts = counts(nodes, &others);
        let new = new.first()?;
        let node = nodes.iter().find(|node| text(node, "/metadata/name") == new.node)?;
        let right = zone(node).is_some_and(|zone| admits(&counts, zone));
        (!right).then(|| format!("{} was bound to {} where the others are {counts:?}", new.name, new.node))
    }
}
