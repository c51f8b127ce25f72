//! The opening and closing of revocable zones.

use jiff::Timestamp;

use super::Scheduler;
use crate::scheduling::{model::tdm::ZoneState, node_flow::NodeFlowInput};

impl Scheduler {
    /// Takes in the time. A zone that has opened wakes the pods that it would have; from one that has closed, those that wait in its
    /// nodes' lines go back to the queue, and those that run there are evicted.
    pub(super) fn watch_zones(&mut self, now: Timestamp) {
        for node in self.binding.cycle.snapshot.set_now(now) {
            if self
                .binding
                .cycle
                .snapshot
                .node(&node)
                .is_some_and(|state| state.zone.as_ref().is_some_and(ZoneState::is_open))
            {
                // Pods that the node did not have for the time that was left are not known to it: all classes judge it anew.
                if let Some(slot) = self.binding.cycle.snapshot.nodes.slot(&node) {
                    self.binding.cycle.classes.forget(slot);
                }
                self.binding.wake(&node);
            } else {
                self.binding.advance(&node, NodeFlowInput::Dismissed);
                self.evictions.begin(now);
            }
        }
    }
}
