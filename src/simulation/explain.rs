//! What each node makes of a pod whose turn has come: fits with its scores and what the pod would be given there, or not, and why.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::report::verdict::{ReasonRow, SimulatedVerdict};
use crate::{
    cluster::write::bind,
    device::Quota,
    dialect::{Dialects, Record},
    scheduling::{
        Ask, Claim, Demand, NodeReasons, Reason,
        decide::{
            Decision, Filters,
            evaluation::{Evaluated, Evaluation},
            remedy::remedy,
            verdicts::Verdicts,
        },
        plugin::{allocate::explain, pod_counts::PodCounts, score::weights::ScoreWeights},
        world::{World, node_state::NodeState},
    },
};

/// What judges a pod on every node of a world.
pub(super) struct Explanation<'a> {
    /// The cluster.
    pub(super) world: &'a World,
    /// What writes what a pod is given.
    pub(super) dialects: &'a Dialects,
    /// How nodes are compared.
    pub(super) weights: &'a ScoreWeights,
    /// The present.
    pub(super) now: Timestamp,
}

impl Explanation<'_> {
    /// What each node, by name, makes of the pod.
    pub(super) fn verdicts(&self, demand: &Demand) -> Vec<SimulatedVerdict> {
        let mut counts = PodCounts::default();
        let filters = Filters::prepare(demand, self.world, &mut counts);
        let verdicts = Verdicts::new(&demand.ask, self.world, *self.weights);
        let evaluation = Evaluation::of(filters, &verdicts, &mut counts, *self.weights);
        let filters = evaluation.filters();
        let verdict = |(state, scores): Evaluated<'_, '_>| {
            let name = &state.info.name;
            let verdict = match scores {
                Ok(scores) => {
                    let record = self.record(demand, state, &filters.decision(state));
                    SimulatedVerdict::fits(name, scores, self.weights, record)
                }
                Err(reasons) => self.failed(reasons, &demand.ask, state, filters.quotas()),
            };
            (name.clone(), verdict)
        };
        let by_name: BTreeMap<_, _> =
            evaluation.nodes(&mut evaluation.judge_all()).into_iter().map(verdict).collect();
        by_name.into_values().collect()
    }

    /// What a Binding to the node would carry.
    fn record(&self, demand: &Demand, state: &NodeState, decision: &Decision) -> Record {
        let devices = state.info.devices.place(&Claim::Place(demand.ask.clone()));
        let zone = state.zone.as_ref().map(|zone| &*zone.zone);
        let given = (&*decision.allocations, devices.as_ref());
        let record = bind::record(self.dialects, given, &state.info.name, zone, self.now);
        record.expect("a pod that the node's device plugin can't serve does not fit there")
    }

    fn failed(
        &self,
        reasons: &NodeReasons,
        ask: &Ask,
        state: &NodeState,
        quotas: &[Quota],
    ) -> SimulatedVerdict {
        let verdict = SimulatedVerdict::fails(&state.info.name, reasons.iter().map(ReasonRow::of).collect());
        if reasons.iter().any(Reason::is_of_cards) {
            return self.explained(verdict, ask, state, quotas);
        }
        verdict
    }

    /// With each card's failure and what would help.
    fn explained(
        &self,
        verdict: SimulatedVerdict,
        ask: &Ask,
        state: &NodeState,
        quotas: &[Quota],
    ) -> SimulatedVerdict {
        let short = explain::short_on(ask, state, quotas);
        let (at, failures) = short.map(|(at, short)| (at, short.failures)).unwrap_or_default();
        let remedy = remedy(ask, at, state, self.world.device_resources(), quotas);
        verdict.explained(failures, remedy)
    }
}
