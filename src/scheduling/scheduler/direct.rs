//! Pods whose node kube-scheduler chooses: Berth chooses the cards there, and such a pod stands in its node's line as any other does.
//!
//! Which node it is, is never decided here.

use std::{fmt, sync::Arc};

use jiff::Timestamp;

use super::{PodProgress, Scheduler};
use crate::device::Allocation;
use crate::scheduling::{
    decide::{Filters, fit_error::FitError},
    model::{
        name::{NodeName, Uid},
        pod::{Claim, Demand},
    },
    plan::extension::{is_relieved, words},
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

impl Scheduler {
    /// This scheduler, which takes no pod from its queue: the node of each pod is chosen by kube-scheduler and told by
    /// [`Event::Directed`](crate::scheduling::Event::Directed).
    #[must_use]
    pub fn directed(mut self) -> Self {
        self.duty.directed = true;
        self
    }

    /// How far a pod is.
    pub fn direction(&self, pod: &Uid) -> Directed {
        let Some(entry) = self.pods.get(pod) else { return Directed::Unseen };
        let charge = self.snapshot.ledger().get(pod);
        if let Some(charge) = charge.filter(|charge| charge.commitment == Commitment::Bound) {
            return Directed::Bound(charge.node.clone());
        }
        match self.queue.progress(pod) {
            PodProgress::InLine(node) => Directed::InLine(node.clone()),
            _ => Directed::Waiting(entry.refused.clone()),
        }
    }

    /// Whether this node would have the pod if these of its pods were gone.
    pub fn relieves(&mut self, demand: &Demand, node: &NodeName, victims: &[Uid]) -> bool {
        is_relieved(demand, node, victims, &mut self.snapshot)
    }

    /// A node was chosen for a pod.
    pub(super) fn direct(&mut self, uid: &Uid, node: &NodeName, now: Timestamp) {
        match self.direction(uid) {
            Directed::Waiting(_) => {}
            Directed::InLine(other) if other != *node && !self.is_served(&other, uid) => self.forget(uid),
            Directed::Unseen | Directed::InLine(_) | Directed::Bound(_) => return,
        }
        let refused = match self.choose_cards(uid, node) {
            Ok(allocations) => {
                self.queue.order.remove(uid);
                self.assume(uid, node.clone(), allocations, Vec::new(), now);
                self.join_line(uid, node, now);
                None
            }
            Err(why) => Some(why),
        };
        if let Some(entry) = self.pods.get_mut(uid) {
            entry.refused = refused;
            if *self.queue.progress(uid) == PodProgress::Idle {
                self.enqueue_if_wanted(uid);
            }
        }
    }

    /// The pod is not to be bound to the node that was chosen, unless it is being bound already.
    pub(super) fn undirect(&mut self, uid: &Uid) {
        if let Directed::InLine(node) = self.direction(uid)
            && !self.is_served(&node, uid)
        {
            self.forget(uid);
            self.enqueue_if_wanted(uid);
        }
    }

    fn choose_cards(&mut self, uid: &Uid, node: &NodeName) -> Result<Vec<Allocation>, Untaken> {
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
