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

/// How much of a resource there is, and is requested: cpu in thousandths, memory and storage in bytes, others counted.
#[derive(Debug, Serialize)]
struct ResourceRow<'a> {
    resource: &'a str,
    allocatable: i64,
    requested: i64,
}

/// The node as one viewer sees it.
pub(super) fn page<'a>(node: &'a FleetNode, viewer: &Viewer) -> NodePage<'a> {
    let state = node.state();
    let NodeInfo { labels, taints, allocatable, .. } = &*state.info;
    let text = |text: &str| excerpt(text, VALUE).into_owned();
    let resources = allocatable.iter().map(|(resource, allocatable)| ResourceRow {
        resource,
        allocatable,
        requested: state.requested.get(resource),
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
