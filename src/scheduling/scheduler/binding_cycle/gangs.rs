//! Gangs beside what else is known of their pods.

use super::BindingCycle;
use crate::scheduling::scheduler::scheduling_cycle::{gang::GangTrial, gang::GangView};

impl BindingCycle {
    /// Gangs beside what else is known of their pods.
    pub(in crate::scheduling::scheduler) fn gang_view(&self) -> GangView<'_> {
        GangView {
            gangs: &self.cycle.gangs,
            pods: &self.cycle.pods,
            queue: &self.cycle.queue,
            snapshot: &self.cycle.snapshot,
            prebinding: &self.prebinding,
            flows: &self.flows,
            directed: self.cycle.duty.directed,
        }
    }

    pub(in crate::scheduling::scheduler) fn gang_trial(&mut self) -> GangTrial<'_> {
        GangTrial {
            snapshot: &mut self.cycle.snapshot,
            classes: &mut self.cycle.classes,
            rejections: &mut self.cycle.queue.rejections,
            pods: &self.cycle.pods,
            flows: &self.flows,
        }
    }
}
