//! What preemption reads of the cluster: victims for a pod that fits nowhere, and pods that nodes are kept for.

use super::{SchedulingCycle, alike::Versions};
use crate::scheduling::{
    decide::{fit_error::FitError, no_room::NoRoom},
    model::name::{NodeName, Uid},
    plan::preemption::{self, Candidate},
    preempt::PreemptView,
};

impl SchedulingCycle {
    /// What preemption reads of the cluster.
    pub(in crate::scheduling::scheduler) fn preempt_view(&self) -> PreemptView<'_> {
        PreemptView { snapshot: &self.snapshot, pods: &self.pods, course: self.duty.course }
    }

    /// The pods that could go for a pod that fits nowhere, with its priority; `None`: it may preempt none now, or that is known already.
    pub(in crate::scheduling::scheduler) fn choose_victims(
        &mut self,
        uid: &Uid,
        error: &FitError,
    ) -> Option<Result<(i32, Candidate), NoRoom>> {
        let demand = self.demand(uid)?;
        let rules = match self.preempting.rules_for(&demand, error, &self.preempt_view())? {
            Ok(rules) => rules,
            Err(no_room) => return Some(Err(no_room)),
        };
        let before = Versions::of(&self.snapshot);
        let counts = self.classes.counts();
        let chosen = preemption::choose(&demand, &mut self.snapshot, counts, rules);
        self.queue.rejections.keep(before, &self.snapshot);
        let why = |hopeless| match preemption::exceeded_beside_nominated(&demand, &self.snapshot) {
            Some(exceeded) => NoRoom::Quota(exceeded),
            None => NoRoom::Hopeless(hopeless),
        };
        Some(chosen.map(|candidate| (demand.priority, candidate)).map_err(why))
    }

    /// Decides the pods again that this node is kept for and whose victims are gone: after a change of the node, it may make no room for them.
    pub(in crate::scheduling::scheduler) fn wake_nominated(&mut self, node: &NodeName) {
        for uid in self.snapshot.nominations().on_node(node) {
            if !self.preempting.awaits_victims(&uid, &self.preempt_view()) {
                self.decide_waiting_again(&uid);
            }
        }
    }

    /// Decides pods again that may preempt others, now that it is known which budgets there are.
    pub(in crate::scheduling::scheduler) fn end_wait_for_budgets(&mut self) {
        let waiting = self.pods.uids().filter(|uid| self.queue.order.has_set_aside(uid));
        let mut waiting: Vec<Uid> = waiting.cloned().collect();
        waiting.sort();
        for uid in waiting {
            self.decide_waiting_again(&uid);
        }
    }
}
