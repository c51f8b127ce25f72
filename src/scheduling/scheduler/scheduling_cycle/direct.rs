//! Pods whose node kube-scheduler chooses: Berth chooses the cards there, and such a pod stands in its node's line as any other does.
//!
//! Which node it is, is never decided here.

use super::{SchedulingCycle, scheduling_queue::PodProgress};
use crate::device::Allocation;
use crate::scheduling::{
    decide::Filters,
    model::{
        name::{NodeName, Uid},
        pod::Claim,
    },
    plan::extension::words,
    plugin::pod_counts::PodCounts,
    world::ledger::Commitment,
};

/// How far a pod is whose node was chosen.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Directed {
    /// It was not seen yet.
    Unseen,
    /// It waits for a node to be chosen, for this reason where one was and could not be taken.
    Waiting(Option<String>),
    /// It stands in the line of this node or is being bound.
    InLine(NodeName),
    /// It is bound to this node.
    Bound(NodeName),
}

impl SchedulingCycle {
    pub(in crate::scheduling::scheduler) fn choose_cards(
        &mut self,
        uid: &Uid,
        node: &NodeName,
    ) -> Result<Vec<Allocation>, String> {
        let info = self.pods.get(uid).map(|entry| &entry.info);
        if let Some(Claim::Unreadable(why)) = info.map(|info| &info.claim) {
            return Err(why.clone());
        }
        let demand = info.and_then(crate::scheduling::PodInfo::demand);
        let demand = demand.ok_or("the pod is not to be placed: it is gated, ended or being deleted")?;
        let state = self.snapshot.node(node).ok_or_else(|| format!("node {node} is not known"))?;
        let mut counts = PodCounts::default();
        let filters = Filters::prepare(&demand, self.snapshot.world(), &mut counts);
        if let Some(error) = filters.rejected() {
            return Err(error.to_string());
        }
        let decision = filters.try_on(state).map_err(|refusal| words(refusal.reasons()))?;
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
        _ => Directed::Waiting(entry.refused.clone()),
    }
}
