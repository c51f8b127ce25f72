//! Nominations for which a quota has no room any more.

use std::sync::Arc;

use super::BindingCycle;
use crate::scheduling::{
    model::{name::Uid, pod::Deletion},
    plan::Plan,
    preempt::PreemptInput,
    scheduler::scheduling_cycle::alike::Versions,
    world::ledger::Charge,
};

impl BindingCycle {
    /// Withdraws nominations of pods of the namespace that its quota has no room for any more, now that another pod of it holds a place. Pods that
    /// are being deleted, or are to be for a nominated pod, do not count.
    pub(in crate::scheduling::scheduler) fn end_nominations_beyond_quota(&mut self, namespace: &Arc<str>) {
        let nominations = self.cycle.snapshot.nominations().clone();
        if !self.cycle.snapshot.quotas().bound(namespace) || !nominations.has_of(namespace) {
            return;
        }
        let before = Versions::of(&self.cycle.snapshot);
        let goes = |uid: &Uid, charge: &Charge| {
            charge.importance.deletion != Deletion::None || nominations.is_victim(uid)
        };
        let going = self.cycle.snapshot.ledger().all();
        let going = going.filter(|(uid, charge)| charge.pod.namespace == *namespace && goes(uid, charge));
        let mut going: Vec<Uid> = going.map(|(uid, _)| uid.clone()).collect();
        going.sort();
        let mut plan = Plan::new(&mut self.cycle.snapshot);
        for uid in &going {
            plan.evict(uid);
        }
        let beyond = nominations.beyond(namespace, plan.quotas());
        drop(plan);
        self.cycle.queue.rejections.keep(before, &self.cycle.snapshot);
        for uid in beyond {
            self.advance_preempt(PreemptInput::Withdrawn(&uid));
            self.cycle.decide_waiting_again(&uid);
        }
    }
}
