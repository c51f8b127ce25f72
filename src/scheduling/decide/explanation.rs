//! What all nodes make of a pod, for people who ask why it waits: how many would have it, and what the others lack.

use std::{collections::BTreeMap, ops::ControlFlow};

use super::{
    Filters,
    evaluation::Evaluation,
    fit_error::{Awaits, FitError},
    nearest::{Lack, lacks},
    outlook::Outlook,
    verdicts::Verdicts,
};
use crate::{
    device::Quota,
    scheduling::{
        model::{
            name::NodeName,
            pod::{Ask, Demand},
        },
        plugin::{NodeReasons, pod_counts::PodCounts},
        world::node_state::NodeState,
    },
};

/// What all nodes make of a pod.
#[derive(Clone, Debug)]
pub struct DemandExplanation {
    /// On how many nodes it would fit now.
    pub fitting: usize,
    /// The others, the largest group first; none where the pod is refused before any node is judged.
    pub groups: Vec<AlikeNodes>,
    /// Why it fits on no node; `None`: it fits on one.
    pub error: Option<FitError>,
}

/// Nodes that lack the same.
#[derive(Clone, Debug)]
pub struct AlikeNodes {
    /// What they lack, by name, and how much of it the node that lacks least.
    pub lacks: Vec<(String, Option<u64>)>,
    /// By name.
    pub names: Vec<NodeName>,
}

impl Outlook {
    /// What all nodes make of a pod. What is found out before about all nodes is bounded by `counts`, and `go_on` is asked before each node; if
    /// either says no, there is no answer.
    pub fn explain(
        &self,
        demand: &Demand,
        mut counts: PodCounts,
        mut go_on: impl FnMut() -> ControlFlow<()>,
    ) -> Option<DemandExplanation> {
        let (world, weights) = (self.world(), self.weights());
        let filters = Filters::prepare(demand, world, &mut counts);
        let rejected = filters.rejected();
        if counts.has_given_up()
            || rejected.as_ref().is_some_and(|error| error.awaits() == Awaits::Comparison)
        {
            return None;
        }
        if rejected.is_some() {
            return Some(DemandExplanation { fitting: 0, groups: Vec::new(), error: rejected });
        }
        let mut verdicts = Verdicts::default();
        verdicts.update(&demand.ask, world, weights, &mut go_on).continue_value()?;
        let evaluation = Evaluation::of(filters, &verdicts, &mut counts, weights);
        if counts.has_given_up() {
            return None;
        }
        let judged = evaluation.judge(go_on)?;
        let mut groups = Groups::default();
        for (state, reasons) in judged.refused_nodes() {
            groups.add(&demand.ask, state, reasons, evaluation.filters().quotas());
        }
        let fitting = judged.fitting();
        let error = (fitting == 0).then(|| evaluation.fit_error(&judged.refusals));
        Some(DemandExplanation { fitting, groups: groups.into_rows(), error })
    }

    /// Whether a node would have the pod now.
    pub fn fits(&self, demand: &Demand) -> bool {
        let (world, weights) = (self.world(), self.weights());
        let mut counts = PodCounts::default();
        let filters = Filters::prepare(demand, world, &mut counts);
        if filters.rejected().is_some() {
            return false;
        }
        let verdicts = Verdicts::new(&demand.ask, world, weights);
        Evaluation::of(filters, &verdicts, &mut counts, weights).choose(|_| 0).is_ok()
    }
}

/// The groups, by the names of what they lack.
#[derive(Default)]
struct Groups(BTreeMap<Vec<String>, AlikeNodes>);

impl Groups {
    fn add(&mut self, ask: &Ask, state: &NodeState, reasons: &NodeReasons, quotas: &[Quota]) {
        let mut least: BTreeMap<String, Option<u64>> = BTreeMap::new();
        for lack in &lacks(ask, state, reasons, quotas).1 {
            let by = least.entry(Lack::reason(lack)).or_insert_with(|| lack.by());
            *by = lesser(*by, lack.by());
        }
        let names = least.keys().cloned().collect();
        let alike = self
            .0
            .entry(names)
            .or_insert_with(|| AlikeNodes { lacks: least.clone().into_iter().collect(), names: Vec::new() });
        for ((_, least), by) in alike.lacks.iter_mut().zip(least.into_values()) {
            *least = lesser(*least, by);
        }
        alike.names.push(state.info.name.clone());
    }

    /// The largest first.
    fn into_rows(self) -> Vec<AlikeNodes> {
        let mut rows: Vec<_> = self.0.into_values().collect();
        for row in &mut rows {
            row.names.sort();
        }
        rows.sort_by(|one, other| {
            let larger = other.names.len().cmp(&one.names.len());
            larger.then_with(|| one.names.cmp(&other.names))
        });
        rows
    }
}

/// The lesser amount, where both are.
fn lesser(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.zip(other).map(|(one, other)| one.min(other))
}
