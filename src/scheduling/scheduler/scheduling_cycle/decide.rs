//! Finding the best node and its cards for a pod, or why there are none.

use std::sync::Arc;

use jiff::Timestamp;

use super::SchedulingCycle;
use crate::{
    device::{Allocation, InitPhase},
    scheduling::{
        decide::{Decision, fit_error::FitError},
        model::{
            name::{NodeName, Uid},
            node_resources::charged,
            pod::{Ask, Demand, PodInfo, Stage},
            prebind_step::PrebindStep,
        },
        node_flow::{Course, NodeFlows},
        world::ledger::{Charge, Commitment},
    },
};

impl SchedulingCycle {
    /// The best node and its cards, or why there is none.
    pub(in crate::scheduling::scheduler) fn decide(
        &mut self,
        uid: &Uid,
        flows: &NodeFlows,
    ) -> Result<Decision, FitError> {
        let demand = self.demand(uid).expect("only a pod that wants a place is decided");
        self.classes.decide(&demand, &self.snapshot, |node| flows.rank(node))
    }

    /// What the pod asks for, with the node that is kept for it, whether its status states that already or not.
    pub(in crate::scheduling::scheduler) fn demand(&self, uid: &Uid) -> Option<Demand> {
        self.snapshot.nominations().demand(&self.pods.get(uid)?.info)
    }

    /// Judges for a pod that may come, once there is something to judge by.
    pub(in crate::scheduling::scheduler) fn prepare(&mut self, ask: &Arc<Ask>) {
        if self.duty.course == Course::Onward && self.is_synced() {
            self.classes.warm(ask, &self.snapshot);
        }
    }
}

/// What a decision charges to the pod until it is confirmed or forgotten.
pub(in crate::scheduling::scheduler) fn assumed(
    pod: &PodInfo,
    node: NodeName,
    allocations: Vec<Allocation>,
    steps: Vec<PrebindStep>,
    now: Timestamp,
) -> Charge {
    Charge {
        node,
        pod: pod.key.clone(),
        allocations: allocations.into(),
        init: InitPhase::Ahead,
        footprint: charged(pod, &steps),
        steps: steps.into(),
        importance: pod.importance.clone(),
        placer: pod.placer,
        commitment: Commitment::Assumed,
        stage: Stage::Pending,
        since: now,
        tenure: None,
    }
}
