//! Nodes that are kept for nominated pods while other pods of their priority could use them.
//!
//! A node is kept until the last victim is gone, as in kube-scheduler. Where all victims are of the pod's own namespace that costs the namespace
//! nothing: with victims that take an hour to end it could have free cards kept for an hour. So in that case the node is kept for [`KEPT`], and as
//! long as nobody else of the priority fits nowhere and would fit there.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{Preempting, request::PreemptRequest, view::PreemptView};
use crate::scheduling::{
    model::{
        name::{NodeName, Uid},
        pod::Demand,
    },
    world::nominations::Nominations,
};

/// For so long after the deletion of victims a node is kept in any case.
const KEPT: SignedDuration = SignedDuration::from_secs(30);

impl Preempting {
    /// When kept nodes begin to go to others.
    pub(in crate::scheduling) fn kept_deadline(&self, nominations: &Nominations) -> Option<Timestamp> {
        let begun = self.vain.kept().filter(|(uid, _)| nominations.holds(uid));
        begun.filter_map(|(_, since)| since.checked_add(KEPT).ok()).min()
    }

    /// Has pods decided again that would have a kept node, once that goes to others.
    pub(super) fn watch_kept(&mut self, now: Timestamp) {
        let is_due = |since: Timestamp| since.checked_add(KEPT).is_ok_and(|at| at <= now);
        if self.vain.take_kept(is_due) {
            self.requests.push(PreemptRequest::WakeKept);
        }
    }

    /// The nodes that go to a pod that needs them, of those that are kept for others of its priority, and for whom; `mates` are the other pods of a
    /// pod's gang that are not bound.
    pub(in crate::scheduling) fn kept_long_enough(
        &self,
        demand: &Demand,
        mates: impl Fn(&Uid) -> Vec<Uid>,
        view: &PreemptView<'_>,
    ) -> BTreeMap<NodeName, Vec<Uid>> {
        let own = mates(&demand.uid);
        let mut kept: BTreeMap<NodeName, Vec<Uid>> = BTreeMap::new();
        for (nominee, node) in view.snapshot.nominations().of_priority(demand.priority) {
            if *nominee == demand.uid || own.contains(nominee) {
                continue;
            }
            if self.kept_until(nominee, mates(nominee), view).is_some_and(|until| until <= view.now()) {
                kept.entry(node.clone()).or_default().push(nominee.clone());
            }
        }
        kept
    }

    /// When the node that is kept for this pod goes to others; `None`: not before victims of other namespaces are gone, or there are none.
    fn kept_until(&self, nominee: &Uid, mates: Vec<Uid>, view: &PreemptView<'_>) -> Option<Timestamp> {
        let namespace = &view.pods.pod(nominee)?.key.namespace;
        let mut waiting = mates;
        waiting.push(nominee.clone());
        let (nominations, ledger) = (view.snapshot.nominations(), view.snapshot.ledger());
        let victims = waiting.iter().flat_map(|uid| nominations.victims(uid));
        let mut left = victims.filter_map(|victim| ledger.get(victim)).peekable();
        left.peek()?;
        if left.any(|charge| charge.pod.namespace != *namespace) {
            return None;
        }
        let since = waiting.iter().filter_map(|uid| self.vain.asked_at(uid)).min()?;
        since.checked_add(KEPT).ok()
    }
}
