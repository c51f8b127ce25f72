//! The cluster as the state machines beside the decisions read it.

use jiff::SignedDuration;

use super::SchedulingCycle;
use crate::scheduling::{model::name::NodeName, node_flow::NodeView, prebind::PrebindView};

/// What the flow of a node reads; `lock_expiry`: how long its device plugin may owe an answer.
pub(in crate::scheduling::scheduler) fn node_view<'a>(
    cycle: &'a SchedulingCycle,
    node: &'a NodeName,
    lock_expiry: SignedDuration,
) -> NodeView<'a> {
    NodeView {
        name: node,
        info: cycle.snapshot.node(node).map(|state| &*state.info),
        ledger: cycle.snapshot.ledger(),
        pods: &cycle.pods,
        now: cycle.snapshot.now(),
        course: cycle.duty.course,
        lock_expiry,
    }
}

/// What is read where claims are bound.
pub(in crate::scheduling::scheduler) fn prebind_view(cycle: &SchedulingCycle) -> PrebindView<'_> {
    PrebindView { snapshot: &cycle.snapshot, pods: &cycle.pods }
}
