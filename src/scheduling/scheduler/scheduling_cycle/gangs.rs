//! What changes of gangs do to their pods that wait.

use super::SchedulingCycle;
use crate::scheduling::{
    model::kind::Kind,
    plan::gang::{Applicant, Pool},
};
use jiff::Timestamp;
use std::sync::Arc;

impl SchedulingCycle {
    /// A PodGroup has changed, or all of its kind for want of a name: their pods that wait are decided again.
    pub(in crate::scheduling::scheduler) fn wake_gangs(&mut self, kind: Kind, name: Option<&Arc<str>>) {
        for uid in self.gangs.note_group(kind, name) {
            self.decide_waiting_again(&uid);
        }
    }

    /// Until when no pods are preempted for the gang, since one of its pods has had others preempted in vain.
    pub(in crate::scheduling::scheduler) fn gang_preempts_not_before(
        &self,
        pool: &Pool<'_>,
    ) -> Option<Timestamp> {
        let view = self.preempt_view();
        let paused = |applicant: &Applicant| self.preempting.preempts_not_before(applicant.uid(), &view);
        pool.applicants.iter().filter_map(paused).max()
    }
}
