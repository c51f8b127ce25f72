//! Pods whose node kube-scheduler has chosen: they join the line of that node as any other does.

use jiff::Timestamp;

use super::BindingCycle;
use crate::scheduling::{
    model::name::{NodeName, Uid},
    scheduler::scheduling_cycle::{direct::direction, directed::Directed, scheduling_queue::PodProgress},
};

impl BindingCycle {
    /// A node was chosen for a pod.
    pub(in crate::scheduling::scheduler) fn direct(&mut self, uid: &Uid, node: &NodeName, now: Timestamp) {
        match direction(&self.cycle, uid) {
            Directed::Waiting(_) => {}
            Directed::InLine(other) if other != *node && !self.flows.serves(&other, uid) => self.forget(uid),
            Directed::Unseen | Directed::InLine(_) | Directed::Bound(_) => return,
        }
        let refused = match self.cycle.choose_cards(uid, node) {
            Ok(allocations) => {
                self.cycle.queue.order.remove(uid);
                self.assume(uid, node.clone(), allocations, Vec::new(), now);
                self.join_line(uid, node, now);
                None
            }
            Err(why) => Some(why),
        };
        if let Some(entry) = self.cycle.pods.get_mut(uid) {
            entry.refused = refused.map(Box::new);
            if *self.cycle.queue.progress(uid) == PodProgress::Idle {
                self.cycle.enqueue_if_wanted(uid);
            }
        }
    }

    /// The pod is not to be bound to the node that was chosen, unless it is being bound already.
    pub(in crate::scheduling::scheduler) fn undirect(&mut self, uid: &Uid) {
        if let Directed::InLine(node) = direction(&self.cycle, uid)
            && !self.flows.serves(&node, uid)
        {
            self.forget(uid);
            self.cycle.enqueue_if_wanted(uid);
        }
    }
}
