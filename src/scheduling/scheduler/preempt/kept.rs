//! Nodes that are kept for nominated pods while other pods of their priority could use them.
//!
//! A node is kept until the last victim is gone, as in kube-scheduler. Where all victims are of the pod's own namespace that costs the namespace
//! nothing: with victims that take an hour to end it could have free cards kept for an hour. So in that case the node is kept for [`KEPT`], and as
//! long as nobody else of the priority fits nowhere and would fit there.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::Scheduler;
use crate::scheduling::{
    decide::{Filters, fit_error::FitError},
    model::{
        name::{NodeName, Uid},
        steps::JUDGE,
    },
    plan::Plan,
};

/// For so long after the deletion of victims a node is kept in any case.
const KEPT: SignedDuration = SignedDuration::from_secs(30);

impl Scheduler {
    /// When kept nodes begin to go to others.
    pub(in crate::scheduling::scheduler) fn kept_deadline(&self) -> Option<Timestamp> {
        let begun = self.preempting.vain.kept().filter(|(uid, _)| self.snapshot.nominations().holds(uid));
        begun.filter_map(|(_, since)| since.checked_add(KEPT).ok()).min()
    }

    /// Decides pods again that would have a kept node, once that goes to others.
    pub(in crate::scheduling::scheduler) fn watch_kept(&mut self, now: Timestamp) {
        let is_due = |since: Timestamp| since.checked_add(KEPT).is_ok_and(|at| at <= now);
        if self.preempting.vain.take_kept(is_due) {
            for uid in self.queue.requeue.kept() {
                self.decide_waiting_again(&uid);
            }
        }
    }

    /// When the node that is kept for this pod goes to others; `None`: not before victims of other namespaces are gone, or there are none.
    fn kept_until(&self, nominee: &Uid) -> Option<Timestamp> {
        let namespace = &self.pods.get(nominee)?.info.key.namespace;
        let mut waiting = self.gang_view().unbound_mates(nominee);
        waiting.push(nominee.clone());
        let (nominations, ledger) = (self.snapshot.nominations(), self.snapshot.ledger());
        let victims = waiting.iter().flat_map(|uid| nominations.victims(uid));
        let mut left = victims.filter_map(|victim| ledger.get(victim)).peekable();
        left.peek()?;
        if left.any(|charge| charge.namespace != *namespace) {
            return None;
        }
        let since = waiting.iter().filter_map(|uid| self.preempting.vain.asked_at(uid)).min()?;
        since.checked_add(KEPT).ok()
    }

    /// Withdraws nominations so that a pod of their priority finds room that fits nowhere else; whether there is room now.
    pub(in crate::scheduling::scheduler) fn take_kept(
        &mut self,
        uid: &Uid,
        error: &FitError,
        now: Timestamp,
    ) -> bool {
        let Some(demand) = self.demand(uid).filter(|_| error.is_beside_nominated()) else { return false };
        let mates = self.gang_view().unbound_mates(uid);
        let mut kept: BTreeMap<NodeName, Vec<Uid>> = BTreeMap::new();
        for (nominee, node) in self.snapshot.nominations().of_priority(demand.priority) {
            let is_other = nominee != uid && !mates.contains(nominee);
            if is_other && self.kept_until(nominee).is_some_and(|until| until <= now) {
                kept.entry(node.clone()).or_default().push(nominee.clone());
            }
        }
        let before = self.versions();
        let counts = self.classes.counts();
        let mut plan = Plan::new(&mut self.snapshot);
        let mut would_fit = |(node, nominees): &(NodeName, Vec<Uid>)| {
            let mark = plan.mark();
            for nominee in nominees {
                plan.end_nomination(nominee);
            }
            counts.steps().add(JUDGE + demand.ask.cost(), 1);
            let filters = Filters::prepare(&demand, plan.world(), counts);
            let fits =
                filters.rejected().is_none() && plan.node(node).is_some_and(|state| filters.passes(state));
            drop(filters);
            plan.undo(mark);
            fits
        };
        let found = kept.into_iter().find(|node| would_fit(node));
        drop(plan);
        self.keep_rejections(before);
        let Some((_, nominees)) = found else { return false };
        for nominee in nominees {
            self.withdraw_nomination(&nominee);
            self.decide_waiting_again(&nominee);
        }
        true
    }
}
