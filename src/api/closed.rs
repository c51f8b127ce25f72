//! Why pods without tolerations do not go to a node.

use std::collections::BTreeSet;

use crate::scheduling::model::node::NodeInfo;

/// `cordoned`, `notReady`, `tainted`; none: the node is open.
pub fn closed(node: &NodeInfo) -> BTreeSet<&'static str> {
    let keeps_off = |effect: &str| matches!(effect, "NoSchedule" | "NoExecute");
    let taints = node.taints.iter().filter(|taint| keeps_off(&taint.effect));
    let why = taints.map(|taint| match taint.key.as_str() {
        "node.kubernetes.io/unschedulable" => "cordoned",
        "node.kubernetes.io/not-ready" | "node.kubernetes.io/unreachable" => "notReady",
        _ => "tainted",
    });
    node.cordoned.then_some("cordoned").into_iter().chain(why).collect()
}
