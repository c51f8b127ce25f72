//! Pods that are decided alike: what was found for one holds for the others until something changes.

use std::sync::Arc;

use super::SchedulingCycle;
use crate::scheduling::{
    decide::{Decision, class::Classes, fit_error::FitError},
    model::{
        label_set::LabelSet,
        name::Uid,
        pod::{Ask, Claim, PodInfo, PreemptionPolicy},
    },
    node_flow::NodeFlows,
    snapshot::Snapshot,
};

/// What is equal of pods that are decided alike.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(in crate::scheduling::scheduler) struct Alike {
    ask: Arc<Ask>,
    namespace: Arc<str>,
    labels: LabelSet,
    priority: i32,
    preemption_policy: PreemptionPolicy,
}

impl Alike {
    /// Whether the class of such pods is known.
    pub(in crate::scheduling::scheduler) fn is_known(&self, classes: &Classes) -> bool {
        classes.knows(&self.ask)
    }

    /// `None`: the pod wants no place, or what is found for it holds for no other, since it looks around or a node is kept for it.
    pub(in crate::scheduling::scheduler) fn of(pod: &PodInfo) -> Option<Self> {
        let Claim::Place(ask) = &pod.claim else { return None };
        let footprint = &pod.footprint;
        if footprint.is_cross_node() || pod.status.nominated.is_some() {
            return None;
        }
        Some(Self {
            ask: ask.clone(),
            namespace: footprint.namespace.clone(),
            labels: footprint.labels.clone(),
            priority: pod.importance.priority,
            preemption_policy: pod.importance.preemption_policy,
        })
    }
}

/// The versions of nodes, quotas and other objects: the same as long as nothing has changed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(in crate::scheduling::scheduler) struct Versions {
    nodes: u64,
    quotas: u64,
    objects: u64,
}

impl Versions {
    /// The versions of a cluster as it stands.
    pub(in crate::scheduling::scheduler) fn of(snapshot: &Snapshot) -> Self {
        Self {
            nodes: snapshot.generation(),
            quotas: snapshot.quotas().version(),
            objects: snapshot.objects().version(),
        }
    }
}

impl SchedulingCycle {
    /// The best node and its cards, or why there is none, as [`Self::decide`] finds them; a pod like one that was rejected since
    /// the last change is rejected for the same.
    pub(in crate::scheduling::scheduler) fn decide_as_alike(
        &mut self,
        uid: &Uid,
        flows: &NodeFlows,
    ) -> Result<Decision, FitError> {
        let Some(alike) = self.alike(uid) else { return self.decide(uid, flows) };
        match self.queue.rejections.find(&alike, Versions::of(&self.snapshot), &self.classes) {
            Some(error) => Err(error.clone()),
            None => self.decide(uid, flows),
        }
    }

    /// `None`: what is found for the pod holds for no other; a node may be kept for it, or nothing preempted for it for a while.
    pub(in crate::scheduling::scheduler) fn alike(&self, uid: &Uid) -> Option<Alike> {
        let alike = self.pods.get(uid).and_then(|entry| Alike::of(&entry.info));
        let demand = || self.pods.get(uid).and_then(|entry| entry.info.demand());
        let is_for_it = || demand().is_some_and(|demand| self.snapshot.has_reservation_for(&demand));
        let by_claim = || demand().is_some_and(|demand| self.snapshot.may_serve_by_claim(&demand));
        let is_paused = || self.preempting.preempts_not_before(uid, &self.preempt_view()).is_some();
        alike.filter(|_| {
            !self.snapshot.nominations().holds(uid) && !is_for_it() && !by_claim() && !is_paused()
        })
    }
}
