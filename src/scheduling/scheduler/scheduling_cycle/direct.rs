//! Pods whose node kube-scheduler chooses: Berth chooses the cards there, and such a pod stands in its node's line as any other does.
//!
//! Which node it is, is never decided here.

use std::sync::Arc;

use super::{
    SchedulingCycle,
    directed::{Directed, Untaken},
    scheduling_queue::PodProgress,
};
use crate::{
    device::Allocation,
    scheduling::{
        decide::Filters,
        model::{
            name::{NodeName, Uid},
            pod::Claim,
        },
        plugin::pod_counts::PodCounts,
        world::ledger::Commitment,
    },
};

impl SchedulingCycle {
    /// The cards of the node that was chosen for the pod, or why it is not taken.
    pub(in crate::scheduling::scheduler) fn choose_cards(
        &mut self,
        uid: &Uid,
        node: &NodeName,
    ) -> Result<Vec<Allocation>, Untaken> {
        let info = self.pods.get(uid).map(|entry| &*entry.info);
        if let Some(Claim::Unreadable(why)) = info.map(|info| &info.claim) {
            return Err(Untaken::Request(why.0.as_str().into()));
        }
        let demand = info.and_then(crate::scheduling::PodInfo::demand);
        let demand = demand.ok_or(Untaken::Unwanted)?;
        let state = self.snapshot.node(node).ok_or_else(|| Untaken::Unknown(node.clone()))?;
        let mut counts = PodCounts::default();
        let filters = Filters::prepare(&demand, self.snapshot.world(), &mut counts);
        if let Some(error) = filters.rejected() {
            return Err(Untaken::Fit(Arc::new(error)));
        }
        let decision = filters.try_on(state).map_err(|refusal| Untaken::Node(refusal.reasons().clone()))?;
        Ok(decision.allocations)
    }
}

/// How far a pod is.
pub(in crate::scheduling::scheduler) fn direction(cycle: &SchedulingCycle, pod: &Uid) -> Directed {
    let Some(entry) = cycle.pods.get(pod) else { return Directed::Unseen };
    let charge = cycle.snapshot.ledger().get(pod);
    if let Some(charge) = charge.filter(|charge| charge.commitment == Commitment::Bound) {
        return Directed::Bound(charge.node.clone());
    }
    match cycle.queue.progress(pod) {
        PodProgress::InLine(node) => Directed::InLine(node.clone()),
        _ => Directed::Waiting(entry.refused.as_deref().cloned()),
    }
}
