//! Serving the line: one pod at a time is decided once more, locked and bound.

use jiff::Timestamp;

use super::{
    NodeFlow,
    cover::cover,
    input::Fit,
    line::NodeFlowStep,
    lock::LockState,
    request::NodeFlowRequest,
    view::{Course, NodeView},
    wait::{busy_because, locked_because},
};
use crate::scheduling::{
    model::{measure::Measure, name::Uid, pod::Claim},
    world::node_state::Agent,
};

impl NodeFlow {
    /// Goes on with whatever can go on now.
    pub(super) fn go_on(&mut self, view: &NodeView<'_>) {
        self.agent.withdraw(view, &mut self.requests);
        if let Some(agent) = self.agent.watch(&self.locks, view, &mut self.requests) {
            self.requests.push(NodeFlowRequest::SetAgent(agent));
            if agent == Agent::Silent {
                self.dismiss();
            }
        }
        self.pass_over_if_stuck(view);
        if view.course == Course::Standby {
            return self.unblock(view);
        }
        cover(self, view);
        match self.line.served.as_ref().map(|served| (&served.step, &served.uid)) {
            None if view.course == Course::Draining => {}
            None => self.serve_next(view),
            // Its lock was not taken: it is as any other that waits.
            Some((NodeFlowStep::Relocking { .. }, _)) if view.course == Course::Draining => {
                self.line.put_back();
            }
            Some((NodeFlowStep::Relocking { at }, _)) if *at <= view.now => {
                self.line.put_back();
                self.serve_next(view);
            }
            Some((NodeFlowStep::Rebinding { at }, uid)) if *at <= view.now => {
                self.requests.push(NodeFlowRequest::Judge(uid.clone()));
            }
            Some((NodeFlowStep::Fencing { at }, _)) if *at <= view.now => self.doubt_binding(view),
            Some(_) => {}
        }
        self.release_dead(view);
    }

    /// Serves the head of the line, unless the node's device plugin is busy: it is decided once more.
    fn serve_next(&mut self, view: &NodeView<'_>) {
        let Some(head) = self.line.head().cloned() else { return self.unblock(view) };
        if self.agent.is_busy(&self.locks, view) {
            self.block(&head, view, |locks| busy_because(locks, view));
        } else {
            self.requests.push(NodeFlowRequest::Decide(head));
        }
    }

    /// The pod was decided once more.
    pub(super) fn decided(&mut self, uid: &Uid, fit: Fit, view: &NodeView<'_>) {
        match self.line.served.as_ref().filter(|served| served.uid == *uid).map(|served| &served.step) {
            Some(NodeFlowStep::Rebinding { .. }) => {
                self.bind_again(fit, view);
                self.release_dead(view);
            }
            Some(_) if fit == Fit::Fits => self.bind(view),
            Some(_) => self.requeue(uid),
            None => {
                match fit {
                    Fit::Fits if self.line.head() == Some(uid) => self.lock_or_bind(uid, view),
                    Fit::Fits => self.serve_next(view),
                    Fit::Rejected => {
                        self.requeue(uid);
                        self.serve_next(view);
                    }
                }
                self.release_dead(view);
            }
        }
    }

    /// The pod goes back to the queue.
    fn requeue(&mut self, uid: &Uid) {
        self.line.leave(uid);
        self.requests.push(NodeFlowRequest::Requeue(uid.clone()));
    }

    /// The head of the line fits: its locks are taken where it needs any, else it is bound.
    fn lock_or_bind(&mut self, uid: &Uid, view: &NodeView<'_>) {
        let (Some(info), Some(pod)) = (view.info, view.pods.pod(uid)) else { return };
        let Claim::Place(ask) = &pod.claim else { return };
        match self.locks.state_for((&pod.key, ask), view, &mut self.requests) {
            LockState::Held => self.block(uid, view, |_| locked_because(view.name, info, ask)),
            LockState::NotNeeded => {
                self.begin(NodeFlowStep::Binding, None);
                self.measure_wait(view);
                self.bind(view);
            }
            LockState::Available => {
                // The lock of some plugins says no more than this: it is all that tells ours from another's.
                let since = Timestamp::from_second(view.now.as_second()).unwrap_or(view.now);
                self.begin(NodeFlowStep::Locking, Some(since));
                self.requests.push(NodeFlowRequest::TakeLock {
                    pod: pod.key.clone(),
                    resource_version: info.resource_version.clone(),
                    locks: info.locks_for(ask).map(|lock| lock.name.clone()).collect(),
                    since,
                });
            }
        }
    }

    fn begin(&mut self, step: NodeFlowStep, lock_since: Option<Timestamp>) {
        self.line.begin(step, lock_since);
        self.held_up = false;
    }

    /// The pod that is served has the node's locks, or needs none.
    pub(super) fn measure_wait(&mut self, view: &NodeView<'_>) {
        let wait = self.line.take_wait(view.now);
        self.requests.extend(wait.map(|wait| NodeFlowRequest::Measure(Measure::LockWait(wait))));
    }

    /// Sends the Binding of the pod that is served.
    pub(super) fn bind(&mut self, view: &NodeView<'_>) {
        let Some(served) = self.line.served.as_mut() else { return };
        served.step = NodeFlowStep::Binding;
        served.bindings += 1;
        self.line.refusals = 0;
        if view.wants_place(&served.uid) && view.ledger.get(&served.uid).is_some() {
            if let Some(pod) = view.pods.pod(&served.uid) {
                self.locks.note_binding(&pod.key);
            }
            self.requests.push(NodeFlowRequest::Bind(served.uid.clone()));
        }
    }

    /// Sends the Binding once more, if the node is still as it was decided and its lock still the pod's; else the pod is given up
    /// here, or the lock taken again.
    fn bind_again(&mut self, fit: Fit, view: &NodeView<'_>) {
        if fit == Fit::Rejected {
            self.give_up(view);
        } else if self.has_its_locks(view) {
            self.bind(view);
        } else {
            self.lock_again(view);
        }
    }

    /// Gives back the locks whose holders will never be served here, once nothing is to be decided at the moment.
    fn release_dead(&mut self, view: &NodeView<'_>) {
        if self.awaits_decision() || self.line.served.is_some() || view.course != Course::Onward {
            return;
        }
        let release = self.locks.release_dead(view, &mut self.requests);
        self.requests.extend(release);
    }

    /// Whether a pod is to be decided before the flow can go on.
    pub(super) fn awaits_decision(&self) -> bool {
        matches!(self.requests.last(), Some(NodeFlowRequest::Decide(_) | NodeFlowRequest::Judge(_)))
    }

    /// When the flow is to go on although nothing has happened.
    pub(super) fn next_deadline(&self, view: &NodeView<'_>) -> Option<Timestamp> {
        if let Some(
            NodeFlowStep::Rebinding { at } | NodeFlowStep::Relocking { at } | NodeFlowStep::Fencing { at },
        ) = self.line.served.as_ref().map(|served| &served.step)
        {
            return Some(*at);
        }
        if view.course == Course::Draining {
            return None;
        }
        let locks = self.locks.deadlines(self.line.has_waiting(), view);
        let expiries = view.info.into_iter().flat_map(|info| &info.devices.expiries).map(|(_, at)| *at);
        let waits = locks
            .chain(self.agent.deadlines(&self.locks, view))
            .chain(expiries)
            .chain(self.line.wait_deadline());
        waits.filter(|at| *at > view.now).min()
    }
}
