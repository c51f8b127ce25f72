//! The cluster as the state machines beside the decisions read it.

use super::SchedulingCycle;
use crate::scheduling::{
    model::name::NodeName,
    node_flow::{NodeFlows, NodeView},
    prebind::PrebindView,
};

/// What the flow of a node reads.
pub(in crate::scheduling::scheduler) fn node_view<'a>(
    cycle: &'a SchedulingCycle,
    node: &'a NodeName,
    flows: &NodeFlows,
) -> NodeView<'a> {
    NodeView {
        name: node,
        info: cycle.snapshot.node(node).map(|state| &*state.info),
        ledger: cycle.snapshot.ledger(),
        pods: &cycle.pods,
        now: cycle.snapshot.now(),
        course: cycle.duty.course,
        lock_expiry: flows.lock_expiry,
        contest: flows.contest(cycle.snapshot.now()),
    }
}

/// What is read where claims are bound.
pub(in crate::scheduling::scheduler) fn prebind_view(cycle: &SchedulingCycle) -> PrebindView<'_> {
    PrebindView { snapshot: &cycle.snapshot, pods: &cycle.pods }
}
