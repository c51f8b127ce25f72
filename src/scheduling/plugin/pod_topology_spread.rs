//! Whether a pod keeps the pods that its spread constraints are about evenly spread over the domains of a node label.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/podtopologyspread/filtering.go`.

pub(in crate::scheduling) mod scoring;
mod system_default;

use std::{collections::HashMap, sync::Arc};

use super::taint_toleration::tolerates_all;
use crate::scheduling::{
    change::Change,
    footprint::{Footprint, Inclusion, SpreadConstraint},
    node::NodeInfo,
    object::Objects,
    pod::{Ask, Demand},
    pod_counts::{Counted, PodCounts, Surroundings, Terminating},
    reason::Reason,
};

/// How the pods of each constraint are spread, for one pod that is to be placed.
#[derive(Debug)]
pub(in crate::scheduling) struct Spread(Vec<Domains>);

/// How the pods of one constraint are spread.
#[derive(Debug)]
struct Domains {
    topology_key: Arc<str>,
    matching: HashMap<String, i64>,
    /// The fewest of any domain.
    fewest: i64,
    /// How many more the pod itself is: 1 where the constraint is about it, else 0.
    own: i64,
    max_skew: i64,
}

impl Spread {
    /// How pods are spread now; `None`: the pod has no spread constraint.
    pub(in crate::scheduling) fn prepare(
        demand: &Demand,
        around: Surroundings<'_>,
        counts: &mut PodCounts,
    ) -> Option<Self> {
        let constraints = &demand.footprint.spread;
        if constraints.is_empty() {
            return None;
        }
        Some(Self(constraints.iter().map(|one| Domains::prepare(one, demand, around, counts)).collect()))
    }

    /// Fails on a node that lacks a topology key, or where the pod would make the skew too large.
    pub(in crate::scheduling) fn test(&self, node: &NodeInfo) -> Result<(), Reason> {
        for domains in &self.0 {
            let Some(value) = node.labels.get(&*domains.topology_key) else {
                return Err(Reason::SpreadLabelMissing);
            };
            let matching = domains.matching.get(value).copied().unwrap_or(0);
            if matching + domains.own - domains.fewest > domains.max_skew {
                return Err(Reason::SpreadSkew);
            }
        }
        Ok(())
    }
}

/// Whether the change could let a pod through that was rejected here: one that moves a count, or the set of domains.
pub(in crate::scheduling) fn helps(pod: &Footprint, change: &Change, objects: &Objects) -> bool {
    match change {
        Change::PodAdded(other) | Change::PodRemoved(other) => {
            pod.spread.iter().any(|constraint| constraint.pods.matches(other, objects))
        }
        Change::Node => true,
        Change::Object(..) | Change::Nomination => false,
    }
}

impl Domains {
    fn prepare(
        constraint: &SpreadConstraint,
        demand: &Demand,
        around: Surroundings<'_>,
        counts: &mut PodCounts,
    ) -> Self {
        let mut matching: HashMap<String, i64> = HashMap::new();
        for (info, count) in counted(constraint, around, counts) {
            if !includes(constraint, &demand.footprint.spread, demand, info) {
                continue;
            }
            let Some(value) = info.labels.get(&*constraint.topology_key) else { continue };
            match matching.get_mut(value) {
                Some(total) => *total += count,
                None => {
                    matching.insert(value.clone(), count);
                }
            }
        }
        let fewest = matching.values().copied().min().unwrap_or(i64::from(i32::MAX));
        Self {
            topology_key: constraint.topology_key.clone(),
            fewest: if matching.len() < constraint.min_domains { 0 } else { fewest },
            own: i64::from(constraint.pods.matches(&demand.footprint, around.objects)),
            max_skew: constraint.max_skew,
            matching,
        }
    }
}

/// Every node, and how many pods the constraint counts on it. An empty selector selects every pod, and counts none here.
fn counted<'a>(
    constraint: &SpreadConstraint,
    around: Surroundings<'a>,
    counts: &mut PodCounts,
) -> impl Iterator<Item = (&'a NodeInfo, i64)> {
    let selects = constraint.pods.labels.as_ref().is_some_and(|labels| !labels.is_empty());
    let pods = Counted { selectors: vec![constraint.pods.clone()], terminating: Terminating::Skipped };
    counts.of(&pods, around).map(move |(node, count)| (node, if selects { count } else { 0 }))
}

/// Whether a node's pods count: it has the topology key of every constraint in `all`, and passes the tests that this one honours.
fn includes(
    constraint: &SpreadConstraint,
    all: &[SpreadConstraint],
    demand: &Demand,
    node: &NodeInfo,
) -> bool {
    let Ask { constraints, .. } = &*demand.ask;
    all.iter().all(|one| node.labels.contains_key(&*one.topology_key))
        && (constraint.node_affinity == Inclusion::Ignore
            || constraints.affinity.admits(&node.name, &node.labels))
        && (constraint.node_taints == Inclusion::Ignore
            || tolerates_all(&constraints.tolerations, &node.taints))
}
