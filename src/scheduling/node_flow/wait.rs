//! Why the pod at the head of a line is not served: reporting it while it lasts, and looking for other nodes for those that wait.
//!
//! It must not decide whether the pod is served: that is asked of the locks and of the charges.

use super::{NodeFlow, lock::NodeLocks, reason::LineWait, request::NodeFlowRequest, view::NodeView};
use crate::{
    device::Lock,
    scheduling::model::{
        name::{NodeName, Uid},
        node::NodeInfo,
        pod::Ask,
    },
};

impl NodeFlow {
    /// The pod at the head of the line waits, for this reason. If that lasts, the pods that wait here may go elsewhere.
    pub(super) fn block(&mut self, uid: &Uid, view: &NodeView<'_>, why: impl FnOnce(&NodeLocks) -> LineWait) {
        let due = self.line.note_wait(uid, view.now);
        self.held_up |= due;
        if self.held_up {
            let waiting = self.line.waiting().cloned().collect();
            self.requests.push(NodeFlowRequest::FindOtherNodes(waiting));
        }
        if due {
            let why = why(&self.locks);
            self.requests.push(NodeFlowRequest::TellWaiting(uid.clone(), why));
        }
    }

    /// No pod waits here; the node is no longer held up unless it still would be.
    pub(super) fn unblock(&mut self, view: &NodeView<'_>) {
        self.line.end_wait();
        if self.held_up
            && !self.agent.is_busy(&self.locks, view)
            && !self.locks.are_held(view, &mut self.requests)
        {
            self.held_up = false;
        }
    }

    /// Puts the node after all others at once while its plugin's answer is not to come soon: nothing that a pod in its line could wait for
    /// shows when the plugin will be done.
    pub(super) fn pass_over_if_stuck(&mut self, view: &NodeView<'_>) {
        self.held_up |= self.agent.is_stuck(&self.locks, view);
    }
}

/// Whose answer the node's device plugin owes.
pub(super) fn busy_because(locks: &NodeLocks, view: &NodeView<'_>) -> LineWait {
    let in_flight = view.charges().find(|(uid, charge)| locks.is_in_flight(uid, charge, view));
    let allocating =
        in_flight.and_then(|(uid, charge)| Some((view.pods.pod(uid)?.key.clone(), charge.since)));
    LineWait::Plugin { node: view.name.clone(), allocating }
}

/// Who holds the lock that a pod waits for.
pub(super) fn locked_because(node: &NodeName, info: &NodeInfo, ask: &Ask) -> LineWait {
    let mut locks = info.locks_for(ask).map(|lock| &lock.state);
    let held = locks.find_map(|lock| match lock {
        Lock::Held { owner, since } => Some((owner.clone(), *since)),
        _ => None,
    });
    LineWait::Lock { node: node.clone(), held }
}
