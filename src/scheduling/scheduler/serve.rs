//! Serving the nodes on which something has changed or whose time has come, until nothing goes on any more.

use jiff::Timestamp;

use super::{
    Scheduler,
    binding_cycle::BindingCycle,
    evict::EvictionView,
    scheduling_cycle::{SchedulingCycle, conditions::ConditionInput, kept_rooms::RoomView, mix},
};
use crate::scheduling::{
    effect::Effect,
    finding::{Concern, Raised},
    model::{measure::Measure, name::NodeName},
    node_flow::{Course, NodeFlowInput},
};

impl Scheduler {
    /// When something is to be looked at again although nothing has happened.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let BindingCycle { cycle, prebinding, flows } = &self.binding;
        let retell = cycle.conditions.deadline();
        let [next_audit, audit] = self.audits.deadline(cycle.queue.turn_began());
        let queue = [cycle.queue.deadline(), audit];
        // No pod is taken from the queue where kube-scheduler chooses the nodes.
        let queue = queue.into_iter().filter(|_| !cycle.duty.directed);
        let others = [
            next_audit,
            prebinding.next_deadline(),
            cycle.preempting.kept_deadline(cycle.snapshot.nominations()),
            self.evictions.deadline(EvictionView::of(cycle)),
            cycle.gangs.deadline(),
            RoomView::of(cycle).deadline().filter(|_| !cycle.duty.directed),
            cycle.queue.lists.deadline().filter(|_| cycle.awaits_lists()),
            mix::deadline(cycle),
        ];
        let onward = queue.chain(others).flatten();
        let onward = onward.filter(|_| cycle.duty.course == Course::Onward && cycle.is_synced());
        let zones = cycle.snapshot.zones().next_change();
        // Before all is listed these can't be met.
        let met = flows.next_deadline().into_iter().chain(retell).filter(|_| cycle.is_synced());
        met.chain(zones).chain(onward).min()
    }

    pub(super) fn meet_deadlines(&mut self, now: Timestamp) {
        let cycle = &mut self.binding.cycle;
        for uid in cycle.queue.overdue(now) {
            cycle.outbox.measures.push(Measure::Flushed);
            cycle.decide_waiting_again(&uid);
        }
        cycle.watch_lists(now);
        cycle.queue.lists.watch(now);
        cycle.advance_conditions(ConditionInput::TimePassed(now));
        self.binding.flows.touch_due(now);
    }

    /// Goes on with the nodes on which something has changed.
    pub(super) fn serve_nodes(&mut self, now: Timestamp) {
        loop {
            let touched = self.binding.flows.take_touched();
            if touched.is_empty() {
                return;
            }
            for node in touched {
                let state = self.binding.cycle.snapshot.node(&node);
                if let Some(expired) = state.map(|state| state.info.devices.expired(now)) {
                    self.binding.expire(&node, &expired);
                }
                let SchedulingCycle { snapshot, pods, outbox, .. } = &mut self.binding.cycle;
                outbox.effects.extend(reported(&node, self.findings.watch(&node, snapshot, pods)));
                self.binding.advance(&node, NodeFlowInput::Touched);
            }
            // A pod that its node would no longer have is back in the queue.
            self.schedule(now);
        }
    }
}

/// What is to be reported of a node.
fn reported(node: &NodeName, Raised { new, now }: Raised) -> impl Iterator<Item = Effect> {
    let report = |(pod, finding)| Effect::ReportFinding { of: Concern::Pod(pod), finding };
    let count = now.map(|findings| Effect::CountFindings { node: node.clone(), findings });
    new.into_iter().map(report).chain(count)
}
