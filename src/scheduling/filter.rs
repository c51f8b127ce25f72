//! Whether a node can serve a pod, test by test in kube-scheduler's order; the cards come last.

use std::collections::BTreeSet;

use super::{
    allocate::allocate,
    node::NodeInfo,
    pod::Ask,
    reason::{NodeReasons, Reason},
    resources::ResourceAmounts,
    snapshot::{Agent, NodeState},
    taint,
};
use crate::device::{Assignment, Quota};

/// The cards that the node would give, or every reason of the first test that it fails.
///
/// `device_resources` are the dialects' own: a node need not advertise them. `quota` is what the pod's namespace may still take.
pub fn filter(
    ask: &Ask,
    node: &NodeState,
    device_resources: &BTreeSet<String>,
    quota: Quota,
) -> Result<Assignment, NodeReasons> {
    let constraints = &ask.constraints;
    let info = &node.info;
    if info.cordoned && !taint::tolerates_cordon(&constraints.tolerations) {
        return Err(vec![Reason::Unschedulable]);
    }
    if !taint::tolerates_all(&constraints.tolerations, &info.taints) {
        return Err(vec![Reason::UntoleratedTaint]);
    }
    if !constraints.affinity.admits(&info.name, &info.labels) {
        return Err(vec![Reason::AffinityMismatch]);
    }
    let short = short_resources(&ask.resources, node, device_resources);
    if !short.is_empty() {
        return Err(short);
    }
    if node.agent == Agent::Silent {
        return Err(vec![Reason::SilentAgent]);
    }
    cards(ask, info, node, quota)
}

fn cards(ask: &Ask, info: &NodeInfo, node: &NodeState, quota: Quota) -> Result<Assignment, NodeReasons> {
    let offer = info.offer(&ask.profile.name).ok_or_else(|| vec![Reason::NoDevices])?;
    if node.expired.contains(&ask.profile.name) {
        return Err(vec![Reason::ExpiredRegistration]);
    }
    let inventory = offer.inventory.as_ref().ok_or_else(|| vec![Reason::UnreadableDevices])?;
    if inventory.cards().is_empty() {
        return Err(vec![Reason::NoDevices]);
    }
    if node.usage.unread().iter().any(|other| info.may_be_cards_of(inventory.cards(), other)) {
        return Err(vec![Reason::UnreadableAssignment]);
    }
    allocate(&ask.request, inventory, &node.usage, &ask.profile, quota)
}

/// `pkg/scheduler/framework/plugins/noderesources/fit.go`
fn short_resources(
    wanted: &ResourceAmounts,
    node: &NodeState,
    device_resources: &BTreeSet<String>,
) -> NodeReasons {
    let allocatable = &node.info.allocatable;
    let mut short = Vec::new();
    if allocatable.names("pods") && node.pods >= allocatable.get("pods") {
        short.push(Reason::TooManyPods);
    }
    for (name, amount) in wanted.iter().filter(|&(_, amount)| amount > 0) {
        let unadvertised = device_resources.contains(name) && !allocatable.names(name);
        if !unadvertised && amount > allocatable.get(name).saturating_sub(node.requested.get(name)) {
            short.push(Reason::Insufficient(name.to_owned()));
        }
    }
    short
}
