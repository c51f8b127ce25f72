//! One node with cards, and its other resources.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    fleet::{FleetNode, ShownNode},
    viewer::Viewer,
};
use crate::{
    excerpt::{VALUE, excerpt},
    scheduling::model::node::NodeInfo,
};

/// A node.
#[derive(Debug, Serialize)]
pub(super) struct NodePage<'a> {
    #[serde(flatten)]
    node: ShownNode<'a>,
    labels: BTreeMap<String, String>,
    taints: Vec<TaintRow<'a>>,
    resources: Vec<ResourceRow<'a>>,
}

#[derive(Debug, Serialize)]
struct TaintRow<'a> {
    key: &'a str,
    value: &'a str,
    effect: &'a str,
}

/// How much of a resource there is, and is requested, as quantities of Kubernetes.
#[derive(Debug, Serialize)]
struct ResourceRow<'a> {
    resource: &'a str,
    allocatable: String,
    requested: String,
}

/// The node as one viewer sees it.
pub(super) fn page<'a>(node: &'a FleetNode, viewer: &Viewer) -> NodePage<'a> {
    let state = node.state();
    let NodeInfo { labels, taints, allocatable, .. } = &*state.info;
    let text = |text: &str| excerpt(text, VALUE).into_owned();
    let resources = allocatable.iter().map(|(resource, allocatable)| ResourceRow {
        resource,
        allocatable: quantity(resource, allocatable),
        requested: quantity(resource, state.requested.get(resource)),
    });
    NodePage {
        node: node.shown(viewer),
        labels: labels.iter().map(|(key, value)| (text(key), text(value))).collect(),
        taints: taints
            .iter()
            .map(|taint| TaintRow { key: &taint.key, value: &taint.value, effect: &taint.effect })
            .collect(),
        resources: resources.collect(),
    }
}

/// An amount as Kubernetes writes it: cpu is counted in thousandths, memory and storage in bytes.
fn quantity(resource: &str, amount: i64) -> String {
    let is_bytes = matches!(resource, "memory" | "ephemeral-storage") || resource.starts_with("hugepages-");
    match (resource, amount) {
        (_, 0) => "0".to_owned(),
        ("cpu", millis) if millis % 1000 == 0 => (millis / 1000).to_string(),
        ("cpu", millis) => format!("{millis}m"),
        (_, bytes) if is_bytes => {
            let units = [("Gi", 30), ("Mi", 20), ("Ki", 10)];
            let unit = units.into_iter().find(|(_, shift)| bytes % (1 << shift) == 0);
            unit.map_or_else(|| bytes.to_string(), |(name, shift)| format!("{}{name}", bytes >> shift))
        }
        (_, count) => count.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_in_the_largest_unit_that_is_exact() {
        let cases = [
            ("cpu", 8000, "8"),
            ("cpu", 12_500, "12500m"),
            ("memory", 32 << 30, "32Gi"),
            ("memory", (1 << 30) + (1 << 20), "1025Mi"),
            ("memory", 1500, "1500"),
            ("hugepages-2Mi", 0, "0"),
            ("pods", 110, "110"),
        ];
        for (resource, amount, written) in cases {
            assert_eq!(quantity(resource, amount), written, "{resource} {amount}");
        }
    }
}
