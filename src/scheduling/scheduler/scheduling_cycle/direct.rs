//! Pods whose node kube-scheduler chooses: Berth chooses the cards there, and such a pod stands in its node's line as any other does.
//!
//! Which node it is, is never decided here.

use std::{fmt, sync::Arc};

use super::{SchedulingCycle, scheduling_queue::PodProgress};
use crate::device::Allocation;
use crate::scheduling::{
    decide::{Filters, fit_error::FitError},
    model::{
        name::{NodeName, Uid},
        pod::Claim,
    },
    plan::extension::words,
    plugin::{NodeReasons, pod_counts::PodCounts},
    world::ledger::Commitment,
};

/// How far a pod is whose node was chosen.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Directed {
    /// It was not seen yet.
    Unseen,
    /// It waits for a node to be chosen, for this reason where one was and could not be taken.
    Waiting(Option<Untaken>),
    /// It stands in the line of this node or is being bound.
    InLine(NodeName),
    /// It is bound to this node.
    Bound(NodeName),
}

/// Why the node that was chosen for a pod is not taken.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Untaken {
    /// The pod's request can't be read; what is wrong, in the words of what has read it.
    Request(Arc<str>),
    /// The pod is not to be placed.
    Unwanted,
    /// This node is not known.
    Unknown(NodeName),
    /// No node would have the pod.
    Fit(Arc<FitError>),
    /// The node would not have the pod, for these reasons.
    Node(NodeReasons),
}

impl fmt::Display for Untaken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(why) => formatter.write_str(why),
            Self::Unwanted => {
                formatter.write_str("the pod is not to be placed: it is gated, ended or being deleted")
            }
            Self::Unknown(node) => write!(formatter, "node {node} is not known"),
            Self::Fit(error) => error.fmt(formatter),
            Self::Node(reasons) => formatter.write_str(&words(reasons)),
        }
    }
}

impl SchedulingCycle {
    pub(in crate::scheduling::scheduler) fn choose_cards(
        &mut self,
        uid: &Uid,
        node: &NodeName,
    ) -> Result<Vec<Allocation>, Untaken> {
        let info = self.pods.get(uid).map(|entry| &entry.info);
        if let Some(Claim::Unreadable(why)) = info.map(|info| &info.claim) {
            return Err(Untaken::Request(why.as_str().into()));
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
        _ => Directed::Waiting(entry.refused.clone()),
    }
}
