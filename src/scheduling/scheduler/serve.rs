//! Serving the lines: one pod of a node at a time is decided once more, locked and bound.

use jiff::Timestamp;

use super::{Scheduler, Work};
use crate::{
    device::Lock,
    scheduling::{
        class::judge,
        effect::Effect,
        line::{Serving, Step},
        node::{NodeInfo, NodeName},
        pod::{Ask, Claim, PodKey, Stage, Uid},
    },
};

/// What a node's lock means to the pod at the head of its line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Gate {
    /// None is needed, or the pod holds it.
    Open,
    /// It can be taken.
    Takeable,
    /// Somebody else is being served.
    Shut,
}

/// Whether this pod holds the lock.
pub(super) fn is_held_by(lock: &Lock, pod: &PodKey) -> bool {
    match lock {
        Lock::Held { owner: Some(owner), .. } => {
            *owner.namespace == *pod.namespace && *owner.name == *pod.name
        }
        _ => false,
    }
}

impl Scheduler {
    /// When something is to be looked at again although nothing has happened.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let lines = self.lines.nodes().filter_map(|node| self.line_deadline(node));
        lines.chain(self.queue.next_expiry()).min()
    }

    pub(super) fn meet_deadlines(&mut self, now: Timestamp) {
        for uid in self.queue.expired(now) {
            self.enqueue(&uid);
        }
        let due = self.lines.nodes().filter(|node| self.line_deadline(node).is_some_and(|at| at <= now));
        let due: Vec<NodeName> = due.cloned().collect();
        for node in due {
            self.lines.touch(&node);
        }
    }

    pub(super) fn serve_lines(&mut self, now: Timestamp) {
        loop {
            let touched = self.lines.take_touched();
            if touched.is_empty() {
                return;
            }
            for node in touched {
                self.serve(&node, now);
            }
            // A pod that its node would no longer have is back in the queue.
            self.schedule(now);
        }
    }

    fn serve(&mut self, node: &NodeName, now: Timestamp) {
        let step =
            self.lines.get(node).and_then(|line| line.serving.as_ref()).map(|serving| serving.step.clone());
        match step {
            None => self.serve_next(node, now),
            Some(Step::AwaitingNode { stale }) => {
                let moved = self.snapshot.node(node).is_none_or(|state| state.info.resource_version != stale);
                if moved {
                    self.stop_serving(node);
                    self.serve_next(node, now);
                }
            }
            Some(Step::Rebinding { at }) if at <= now => self.bind(node),
            Some(Step::Locking { .. } | Step::Binding | Step::Doubting | Step::Rebinding { .. }) => {}
        }
    }

    /// Puts the pod that is being served back to the head of the line.
    fn stop_serving(&mut self, node: &NodeName) {
        if let Some(line) = self.lines.get_mut(node)
            && let Some(serving) = line.serving.take()
        {
            line.waiting.push_front(serving.uid);
        }
    }

    fn serve_next(&mut self, node: &NodeName, now: Timestamp) {
        while let Some(uid) = self.lines.get(node).and_then(|line| line.waiting.front().cloned()) {
            if self.agent_is_busy(node, now) {
                return;
            }
            let Some(ask) = self.decide_again(&uid, node, now) else {
                self.forget(&uid);
                self.enqueue_if_wanted(&uid);
                continue;
            };
            let Some(info) = self.snapshot.node(node).map(|state| state.info.clone()) else {
                return;
            };
            let Some(key) = self.pods.get(&uid).map(|entry| entry.info.key.clone()) else {
                return;
            };
            match self.gate(&info, &ask, &key, now) {
                Gate::Shut => {}
                Gate::Open => {
                    self.start_serving(node, uid, Step::Binding);
                    self.bind(node);
                }
                Gate::Takeable => {
                    let resource_version = info.resource_version.clone();
                    let step = Step::Locking { resource_version: resource_version.clone() };
                    self.start_serving(node, uid, step);
                    let (node, profile) = (node.clone(), ask.profile.name);
                    self.effects.push(Effect::TakeLock { pod: key, node, resource_version, profile });
                }
            }
            return;
        }
    }

    /// Decides a pod in line once more, on the node as it now is; `None`: the node would no longer have it.
    fn decide_again(&mut self, uid: &Uid, node: &NodeName, now: Timestamp) -> Option<std::sync::Arc<Ask>> {
        let Claim::Place(ask) = self.pods.get(uid)?.info.claim.clone() else {
            return None;
        };
        self.snapshot.release(uid);
        let state = self.snapshot.node(node)?;
        let (assignment, _) = judge(&ask, state, &self.settings.device_resources).ok()?;
        self.assume(uid, node.clone(), assignment, now);
        Some(ask)
    }

    fn enqueue_if_wanted(&mut self, uid: &Uid) {
        if self.pods.get(uid).is_some_and(|entry| entry.info.claim != Claim::None) {
            self.enqueue(uid);
        }
    }

    fn start_serving(&mut self, node: &NodeName, uid: Uid, step: Step) {
        if let Some(line) = self.lines.get_mut(node) {
            line.waiting.retain(|waiting| *waiting != uid);
            line.serving = Some(Serving { uid, step, bindings: 0 });
        }
    }

    /// Sends the Binding of the pod that is being served.
    pub(super) fn bind(&mut self, node: &NodeName) {
        let Some(serving) = self.lines.get_mut(node).and_then(|line| line.serving.as_mut()) else {
            return;
        };
        serving.step = Step::Binding;
        serving.bindings += 1;
        let uid = serving.uid.clone();
        let charge = self.snapshot.ledger().get(&uid).and_then(|charge| charge.assignment.clone());
        let (Some(entry), Some(assignment)) = (self.pods.get(&uid), charge) else {
            return;
        };
        let Claim::Place(ask) = &entry.info.claim else {
            return;
        };
        let (pod, profile) = (entry.info.key.clone(), ask.profile.name);
        let assignment = self.snapshot.ledger().dated(assignment, node);
        self.effects.push(Effect::Bind { pod, node: node.clone(), profile, assignment });
    }

    /// Whether the node's agent owes an answer for a bound pod; one that is silent for too long is reported and passed over.
    fn agent_is_busy(&mut self, node: &NodeName, now: Timestamp) -> bool {
        let mut busy = false;
        let mut silent = Vec::new();
        for (uid, charge) in self.snapshot.ledger().on_node(node).filter(|(_, charge)| charge.is_in_flight())
        {
            let overdue = charge.since.checked_add(self.settings.lock_expiry).is_ok_and(|at| at <= now);
            if overdue { silent.push(uid.clone()) } else { busy = true }
        }
        for uid in silent {
            if let Some(entry) = self.pods.get_mut(&uid).filter(|entry| !entry.silence_told) {
                entry.silence_told = true;
                self.effects.push(Effect::TellSilent { pod: entry.info.key.clone(), node: node.clone() });
            }
        }
        busy
    }

    fn gate(&self, info: &NodeInfo, ask: &Ask, pod: &PodKey, now: Timestamp) -> Gate {
        match info.lock(ask.profile.name) {
            None => Gate::Open,
            Some(lock) if is_held_by(lock, pod) => Gate::Open,
            Some(Lock::Free | Lock::Malformed { .. }) => Gate::Takeable,
            Some(Lock::Held { owner: None, since }) => self.once_expired(*since, now),
            Some(Lock::Held { owner: Some(owner), since }) => {
                let name = (owner.namespace.as_str().into(), owner.name.as_str().into());
                let holder = self.by_name.get(&name).and_then(|uid| self.pods.get(uid));
                match holder {
                    None => Gate::Takeable,
                    Some(holder) if holder.info.stage == Stage::Ended => Gate::Takeable,
                    // One of ours that is not being served: taken before a restart, and never bound.
                    Some(holder) if matches!(holder.info.claim, Claim::Place(_)) => Gate::Takeable,
                    Some(_) => self.once_expired(*since, now),
                }
            }
        }
    }

    fn once_expired(&self, since: Timestamp, now: Timestamp) -> Gate {
        let expired = since.checked_add(self.settings.lock_expiry).is_ok_and(|at| at <= now);
        if expired { Gate::Takeable } else { Gate::Shut }
    }

    /// When a node's line is to be looked at although nothing has happened.
    fn line_deadline(&self, node: &NodeName) -> Option<Timestamp> {
        let line = self.lines.get(node)?;
        match line.serving.as_ref().map(|serving| &serving.step) {
            Some(Step::Rebinding { at }) => return Some(*at),
            Some(_) => return None,
            None => {}
        }
        let expiry = self.settings.lock_expiry;
        let held = self.snapshot.node(node)?.info.locks.iter().filter_map(|lock| match lock.state {
            Lock::Held { since, .. } => Some(since),
            Lock::Free | Lock::Malformed { .. } => None,
        });
        let owed = self.snapshot.ledger().on_node(node).filter(|(_, charge)| charge.is_in_flight());
        let owed = owed.map(|(_, charge)| charge.since);
        held.chain(owed).filter_map(|since| since.checked_add(expiry).ok()).max()
    }

    /// The pod that the node is occupied with, if it is this one.
    pub(super) fn is_served(&self, node: &NodeName, uid: &Uid) -> bool {
        let serving = self.lines.get(node).and_then(|line| line.serving.as_ref());
        let in_line = self.pods.get(uid).is_some_and(|entry| entry.work == Work::InLine(node.clone()));
        in_line && serving.is_some_and(|serving| serving.uid == *uid)
    }
}
