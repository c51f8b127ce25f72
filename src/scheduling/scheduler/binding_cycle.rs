//! The binding cycle: what becomes of a decision. It is assumed, claims are bound for it, and the pod joins the line of its node, where it is locked and
//! bound; or it is taken back.
//!
//! Whatever frees room does so here, and wakes the pods of the [scheduling cycle](super::scheduling_cycle) that may have it.

mod assume;
mod direct;
mod expire;
mod gangs;
mod holding;
pub(super) mod kept_rooms;
mod node_flows;
mod prebind;
mod preempt;
mod quota;
mod wake;

use super::{Settings, scheduling_cycle::SchedulingCycle};
use crate::scheduling::{model::name::Uid, node_flow::NodeFlows, prebind::Prebinding};

/// Pods that are decided, beside the cluster and the pods that are not.
#[derive(Debug)]
pub(super) struct BindingCycle {
    /// The cluster, and the pods that are to be decided.
    pub(super) cycle: SchedulingCycle,
    /// Pods whose claims are being bound.
    pub(super) prebinding: Prebinding,
    /// What goes on at each node.
    pub(super) flows: NodeFlows,
}

impl BindingCycle {
    /// Nothing was seen yet.
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            prebinding: Prebinding::new(settings.held_percent),
            flows: NodeFlows::new(settings.lock_expiry),
            cycle: SchedulingCycle::new(settings),
        }
    }

    /// Forgets a pod's charge; its node has more room and wakes who waits for that.
    pub(super) fn release(&mut self, uid: &Uid) {
        if let Some(charge) = self.cycle.snapshot.release(uid) {
            self.cycle.kept_rooms.note_released(&charge, self.cycle.snapshot.now());
            self.wake(&charge.node);
            self.cycle.wake_within_quota(&charge.pod.namespace);
            self.flows.touch(&charge.node);
            self.cycle.outbox.ended.push(charge, self.cycle.snapshot.now());
        }
    }
}
