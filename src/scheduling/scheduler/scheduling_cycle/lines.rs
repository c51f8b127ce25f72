//! What the line of a node asks of the cluster, and says of its pods.

use super::{SchedulingCycle, scheduling_queue::PodProgress};
use crate::scheduling::{
    effect::Effect,
    model::{
        name::{NodeName, Uid},
        pod::Claim,
    },
    node_flow::LineWait,
    plan::Plan,
};

impl SchedulingCycle {
    /// The Binding of a pod with what it is charged with.
    pub(in crate::scheduling::scheduler) fn binding(&self, uid: &Uid, node: NodeName) -> Option<Effect> {
        let (info, ledger) = (&self.pods.get(uid)?.info, self.snapshot.ledger());
        let allocations = ledger.dated(&ledger.get(uid)?.allocations, &node);
        let state = self.snapshot.node(&node);
        let devices = state.and_then(|state| state.info.devices.place(&info.claim));
        let zone = state.and_then(|state| Some(state.zone.as_ref()?.zone.clone()));
        Some(Effect::Bind { pod: info.key.clone(), node, allocations, devices, zone })
    }

    /// Says what a pod in the line of this node waits for.
    pub(in crate::scheduling::scheduler) fn tell_waiting(
        &mut self,
        uid: &Uid,
        node: &NodeName,
        wait: LineWait,
    ) {
        let waits = matches!(self.queue.progress(uid), PodProgress::InLine(line) if line == node);
        let entry = self.pods.get(uid).filter(|_| waits);
        if let Some(pod) = entry.map(|entry| entry.info.key.clone()) {
            self.outbox.effects.push(Effect::TellWaiting { pod, wait });
        }
    }

    /// Whether the node would give the pod just what it is charged with.
    pub(in crate::scheduling::scheduler) fn is_still_decided(&mut self, uid: &Uid, node: &NodeName) -> bool {
        let Some(demand) = self.pods.get(uid).and_then(|entry| entry.info.demand()) else { return false };
        let mut plan = Plan::new(&mut self.snapshot);
        let Some(before) = plan.evict(uid) else { return false };
        let judged = self.classes.judge(&demand, node, &plan);
        judged.is_some_and(|allocations| before.gives(&allocations))
    }

    /// A pod that is in no line goes back to the queue, if it is to be decided.
    pub(in crate::scheduling::scheduler) fn enqueue_if_wanted(&mut self, uid: &Uid) {
        if self.pods.get(uid).is_some_and(|entry| entry.info.claim != Claim::None) {
            self.enqueue(uid);
        }
    }
}
