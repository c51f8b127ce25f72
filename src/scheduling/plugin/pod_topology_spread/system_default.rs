//! The spread constraints that a pod has by default where it states none: those of its Services and of its controller are spread over
//! nodes and zones, as far as scores can.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/podtopologyspread/plugin.go` (`systemDefaultConstraints`), `common.go`
//! (`buildDefaultConstraints`) and `pkg/scheduler/framework/plugins/helper/spread.go` (`DefaultSelector`).

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    object::{LabelSelector, Labels, metadata::Controller, node::HOSTNAME, selector::LabelValues},
    scheduling::{
        model::{
            footprint::{Inclusion, SpreadConstraint, SpreadConstraints},
            label_set::LabelSet,
            pod::Demand,
            pod_selector::PodSelector,
        },
        world::object::{Objects, selecting::SelectedPods},
    },
};

/// Topology keys, and the skew that each allows.
const CONSTRAINTS: [(&str, i64); 2] = [(HOSTNAME, 3), ("topology.kubernetes.io/zone", 5)];

/// The constraints of a pod that states none, required or preferred; none where neither a Service nor a controller selects it.
pub(super) fn constraints(demand: &Demand, objects: &Objects) -> Vec<SpreadConstraint> {
    let footprint = &demand.footprint;
    if *footprint.spread != SpreadConstraints::default() {
        return Vec::new();
    }
    let controller = demand.origin.as_ref().and_then(|origin| origin.controller.as_ref());
    let selector = selector(&footprint.namespace, &footprint.labels, controller, objects);
    if selector.is_empty() {
        return Vec::new();
    }
    let pods = PodSelector {
        namespaces: BTreeSet::from([footprint.namespace.clone()]),
        namespace_selector: None,
        labels: Some(selector),
    };
    let constraint = |(key, max_skew): (&str, i64)| SpreadConstraint {
        max_skew,
        topology_key: key.into(),
        pods: pods.clone(),
        min_domains: 1,
        node_affinity: Inclusion::Honor,
        node_taints: Inclusion::Ignore,
    };
    CONSTRAINTS.map(constraint).into()
}

/// What all Services that select the pod and its controller demand of their pods together; empty where there are none.
fn selector(
    namespace: &Arc<str>,
    labels: &LabelSet,
    controller: Option<&Controller>,
    objects: &Objects,
) -> LabelSelector {
    let mut selector = LabelSelector::default();
    let is_met = |wanted: &&Labels| wanted.iter().all(|(key, value)| labels.value(key) == Some(value));
    for wanted in objects.services(namespace).filter(is_met) {
        selector.match_labels.extend(wanted.clone());
    }
    match controller.and_then(|controller| objects.selected_by(controller, namespace)) {
        Some(SelectedPods::Labels(labels)) => selector.match_labels.extend(labels.clone()),
        Some(SelectedPods::Requirements(requirements)) => {
            selector = requirements.iter().cloned().fold(selector, LabelSelector::and);
        }
        None => {}
    }
    selector
}
