//! Serving the lines: one pod of a node at a time is decided once more, locked and bound.

use jiff::Timestamp;

use super::{Course, Scheduler, Work, blocked::locked_because, decide::assumed, lock::Gate};
use crate::scheduling::plan::Plan;
use crate::scheduling::{
    effect::Effect,
    model::{
        measure::Measure,
        name::{NodeName, Uid},
        pod::{Ask, Claim},
    },
    node_flow::line::{Serving, Step},
    world::ledger::Charge,
};

impl Scheduler {
    /// When something is to be looked at again although nothing has happened.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let retell = self.reports.retells.first().map(|(at, _)| *at);
        let queue =
            [self.waiting.queue.next_deadline(), self.turn_deadline(), self.waiting.unlisted.deadline()];
        // No pod is taken from the queue where kube-scheduler chooses the nodes.
        let queue = queue.into_iter().filter(|_| !self.directed);
        let others = [
            self.reports.next_audit,
            self.prebind_deadline(),
            self.kept_deadline(),
            self.eviction_deadline(),
            self.gangs.deadline(),
            self.gang_lists_deadline(),
            self.claim_lists_deadline(),
        ];
        let onward = queue.chain(others).flatten();
        let onward = onward.filter(|_| self.course == Course::Onward && self.is_synced());
        let zones = self.snapshot.next_zone_change();
        self.lines.next_deadline().into_iter().chain(retell).chain(zones).chain(onward).min()
    }

    pub(super) fn meet_deadlines(&mut self, now: Timestamp) {
        self.flush(now);
        self.watch_lists(now);
        self.watch_gang_lists(now);
        self.watch_claim_lists(now);
        self.retell(now);
        self.lines.touch_due(now);
    }

    pub(super) fn serve_lines(&mut self, now: Timestamp) {
        loop {
            let touched = self.lines.take_touched();
            if touched.is_empty() {
                return;
            }
            for node in touched {
                self.serve(&node, now);
                // Whatever moves a deadline touches the line.
                self.lines.set_deadline(&node, self.line_deadline(&node, now));
            }
            // A pod that its node would no longer have is back in the queue.
            self.schedule(now);
        }
    }

    fn serve(&mut self, node: &NodeName, now: Timestamp) {
        self.watch_expiries(node, now);
        self.watch_cards(node);
        self.watch_unread(node);
        self.watch_unassigned(node);
        self.withdraw(node, now);
        self.watch_agent(node, now);
        self.pass_over_if_stuck(node, now);
        if self.course == Course::Standby {
            return self.unblock(node, now);
        }
        let step =
            self.lines.get(node).and_then(|line| line.serving.as_ref()).map(|serving| serving.step.clone());
        match step {
            None if self.course == Course::Draining => {}
            None => self.serve_next(node, now),
            // Its lock was not taken: it is as any other that waits.
            Some(Step::Relocking { .. }) if self.course == Course::Draining => self.stop_serving(node),
            Some(Step::Relocking { at }) if at <= now => {
                self.stop_serving(node);
                self.serve_next(node, now);
            }
            Some(Step::Rebinding { at }) if at <= now => self.bind_again(node, now),
            Some(Step::Fencing { at }) if at <= now => self.doubt(node),
            Some(_) => {}
        }
        self.tidy(node, now);
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
                self.block(node, &uid, now, |scheduler| scheduler.busy_because(node));
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
                Gate::Shut => self.block(node, &uid, now, |_| locked_because(&info, &ask)),
                Gate::Open => {
                    self.measure_wait(&uid, now);
                    self.start_serving(node, uid, Step::Binding, None);
                    self.bind(node);
                }
                Gate::Takeable => {
                    let resource_version = info.resource_version.clone();
                    // The lock of some plugins says no more than this: it is all that tells ours from another's.
                    let since = Timestamp::from_second(now.as_second()).unwrap_or(now);
                    self.start_serving(node, uid, Step::Locking, Some(since));
                    let locks = info.locks_for(&ask).map(|lock| lock.name.clone()).collect();
                    let node = node.clone();
                    self.outbox.effects.push(Effect::TakeLock {
                        pod: key,
                        node,
                        resource_version,
                        locks,
                        since,
                    });
                }
            }
            return;
        }
        self.unblock(node, now);
    }

    /// Keeps in mind when a pod joined its line.
    pub(super) fn line_up(&mut self, uid: &Uid, now: Timestamp) {
        if let Some(entry) = self.pods.get_mut(uid) {
            entry.lined_up = Some(now);
        }
    }

    /// The pod has the lock of the node in whose line it stood, or needs none.
    pub(super) fn measure_wait(&mut self, uid: &Uid, now: Timestamp) {
        if let Some(since) = self.pods.get_mut(uid).and_then(|entry| entry.lined_up.take()) {
            self.outbox.measures.push(Measure::LockWait(now.duration_since(since)));
        }
    }

    /// Decides a pod once more, on the node in whose line it stands as that now is; `None`: the node would no longer have it, or its gang
    /// lost a place before any of its pods was bound.
    pub(super) fn decide_again(
        &mut self,
        uid: &Uid,
        node: &NodeName,
        now: Timestamp,
    ) -> Option<std::sync::Arc<Ask>> {
        if self.is_of_broken_gang(uid) {
            return None;
        }
        let info = &self.pods.get(uid)?.info;
        let demand = info.demand()?;
        let mut plan = Plan::new(&mut self.snapshot);
        let start = plan.mark();
        let mut before = plan.evict_beside_kept(uid);
        let mut judged = self.classes.judge(&demand, node, &plan);
        if judged.is_none() {
            // Beside this pod, a nominated pod may have chosen cards that it shares with it once its victims are gone, and not before. Without it
            // they choose as they had when it was decided: else it would be decided for this node and turned away there without end.
            plan.undo(start);
            before = plan.evict(uid);
            judged = self.classes.judge(&demand, node, &plan);
        }
        let allocations = judged?;
        let is_as_before = |before: &Charge| before.steps.is_empty() && before.gives(&allocations);
        if !before.as_ref().is_some_and(is_as_before) {
            plan.place(uid, assumed(info, node.clone(), allocations, Vec::new(), now));
            plan.commit();
            // Cards that it was to have and no longer is are there for others.
            self.wake(node);
            self.wake_within_quota_of(uid);
        }
        Some(demand.ask)
    }

    pub(super) fn enqueue_if_wanted(&mut self, uid: &Uid) {
        if self.pods.get(uid).is_some_and(|entry| entry.info.claim != Claim::None) {
            self.enqueue(uid);
        }
    }

    fn start_serving(&mut self, node: &NodeName, uid: Uid, step: Step, lock_since: Option<Timestamp>) {
        if let Some(line) = self.lines.get_mut(node) {
            line.waiting.retain(|waiting| *waiting != uid);
            line.blocked = None;
            line.serving =
                Some(Serving { uid, step, bindings: 0, doubted: None, not_before: None, lock_since });
        }
        self.lines.go_on(node);
    }

    /// Sends the Binding of the pod that is being served.
    pub(super) fn bind(&mut self, node: &NodeName) {
        let Some(line) = self.lines.get_mut(node) else { return };
        let Some(serving) = line.serving.as_mut() else { return };
        serving.step = Step::Binding;
        serving.bindings += 1;
        let uid = serving.uid.clone();
        line.refusals = 0;
        let ledger = self.snapshot.ledger();
        let (Some(entry), Some(charge)) = (self.pods.get(&uid), ledger.get(&uid)) else {
            return;
        };
        if matches!(entry.info.claim, Claim::Place(_)) {
            let pod = entry.info.key.clone();
            let allocations = ledger.dated(&charge.allocations, node);
            let state = self.snapshot.node(node);
            let devices = state.and_then(|state| state.info.device_place(&entry.info.claim));
            let zone = state.and_then(|state| Some(state.zone.as_ref()?.zone.clone()));
            self.outbox.effects.push(Effect::Bind { pod, node: node.clone(), allocations, devices, zone });
        }
    }

    /// Sends the Binding once more, if the node is still as it was decided and its lock still the pod's; else the pod is given up
    /// here, or the lock taken again.
    fn bind_again(&mut self, node: &NodeName, now: Timestamp) {
        if !self.is_still_decided(node) {
            self.give_up(node, now);
        } else if self.has_its_lock(node) {
            self.bind(node);
        } else {
            self.lock_again(node, now);
        }
    }

    fn is_still_decided(&mut self, node: &NodeName) -> bool {
        let serving = self.lines.get(node).and_then(|line| line.serving.as_ref());
        let Some(uid) = serving.map(|serving| serving.uid.clone()) else { return false };
        let Some(demand) = self.pods.get(&uid).and_then(|entry| entry.info.demand()) else { return false };
        let mut plan = Plan::new(&mut self.snapshot);
        let Some(before) = plan.evict(&uid) else { return false };
        let judged = self.classes.judge(&demand, node, &plan);
        judged.is_some_and(|allocations| before.gives(&allocations))
    }

    /// When a node is to be looked at although nothing has happened.
    fn line_deadline(&self, node: &NodeName, now: Timestamp) -> Option<Timestamp> {
        let serving = self.lines.get(node).and_then(|line| line.serving.as_ref());
        let step = match serving.map(|serving| &serving.step) {
            Some(Step::Rebinding { at } | Step::Relocking { at } | Step::Fencing { at }) => Some(*at),
            _ => None,
        };
        let idle = step.is_none() && self.course != Course::Draining;
        let waits = self.lock_deadlines(node).chain(self.agent_deadlines(node)).chain(self.expiries(node));
        let waits = waits.chain(self.blocked_deadline(node)).filter(|at| *at > now);
        step.into_iter().chain(waits.filter(|_| idle)).min()
    }

    /// The pod that the node is occupied with, if it is this one.
    pub(super) fn is_served(&self, node: &NodeName, uid: &Uid) -> bool {
        let serving = self.lines.get(node).and_then(|line| line.serving.as_ref());
        let in_line = self.pods.get(uid).is_some_and(|entry| entry.work == Work::InLine(node.clone()));
        in_line && serving.is_some_and(|serving| serving.uid == *uid)
    }
}
