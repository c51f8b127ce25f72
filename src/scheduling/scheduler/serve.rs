//! Serving the nodes on which something has changed or whose time has come, until nothing goes on any more.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{Course, Scheduler};
use crate::{
    device::ProfileName,
    scheduling::{
        effect::Effect,
        finding::{Concern, Raised},
        model::{measure::Measure, name::NodeName},
        node_flow::NodeFlowInput,
    },
};

impl Scheduler {
    /// When something is to be looked at again although nothing has happened.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let retell = self.reports.retells.first().map(|(at, _)| *at);
        let audit = self.reports.audits.are_left().then(|| self.queue.turn_began());
        let queue = [self.queue.deadline(), audit];
        // No pod is taken from the queue where kube-scheduler chooses the nodes.
        let queue = queue.into_iter().filter(|_| !self.duty.directed);
        let others = [
            self.reports.next_audit,
            self.prebinding.next_deadline(),
            self.preempting.kept_deadline(self.snapshot.nominations()),
            self.evictions.deadline(self.eviction_view()),
            self.gangs.deadline(),
            self.queue.lists.deadline().filter(|_| self.awaits_lists()),
        ];
        let onward = queue.chain(others).flatten();
        let onward = onward.filter(|_| self.duty.course == Course::Onward && self.is_synced());
        let zones = self.snapshot.zones().next_change();
        self.flows.next_deadline().into_iter().chain(retell).chain(zones).chain(onward).min()
    }

    pub(super) fn meet_deadlines(&mut self, now: Timestamp) {
        for uid in self.queue.overdue(now) {
            self.outbox.measures.push(Measure::Flushed);
            self.decide_waiting_again(&uid);
        }
        self.watch_lists(now);
        self.queue.lists.watch(now);
        self.retell(now);
        self.flows.touch_due(now);
    }

    /// Goes on with the nodes on which something has changed.
    pub(super) fn serve_nodes(&mut self, now: Timestamp) {
        loop {
            let touched = self.flows.take_touched();
            if touched.is_empty() {
                return;
            }
            for node in touched {
                self.watch_expiries(&node, now);
                self.watch_findings(&node);
                self.advance(&node, NodeFlowInput::Touched);
            }
            // A pod that its node would no longer have is back in the queue.
            self.schedule(now);
        }
    }

    /// Finds out what is wrong on the node, and reports what is new.
    fn watch_findings(&mut self, node: &NodeName) {
        let Raised { new, now } = self.reports.findings.watch(node, &self.snapshot, &self.pods);
        let new =
            new.into_iter().map(|(pod, finding)| Effect::ReportFinding { of: Concern::Pod(pod), finding });
        self.outbox.effects.extend(new);
        let now = now.map(|findings| Effect::CountFindings { node: node.clone(), findings });
        self.outbox.effects.extend(now);
    }

    /// Finds out which of the node's plugins have given no sign for too long: no pod is sent to their cards until they do.
    fn watch_expiries(&mut self, node: &NodeName, now: Timestamp) {
        if let Some(expired) = self.snapshot.node(node).map(|state| state.info.devices.expired(now)) {
            self.expire(node, &expired);
        }
    }

    /// Takes in which of the node's plugins have given no sign for too long; who waits for one that is back is decided again.
    pub(super) fn expire(&mut self, node: &NodeName, expired: &BTreeSet<ProfileName>) {
        let before = self.snapshot.set_expired(node, expired.clone());
        if !before.is_subset(expired) {
            self.wake(node);
        }
        if !expired.is_subset(&before) {
            self.advance(node, NodeFlowInput::Dismissed);
        }
    }
}
