//! Which pods PodDisruptionBudgets cover, and how many more of them may be disrupted.

use std::sync::Arc;

use crate::{
    object::pod_disruption_budget::PodDisruptionBudget,
    scheduling::world::{ledger::Charge, object::Objects},
};

/// Every budget with what is left of it.
#[derive(Clone, Debug)]
pub(super) struct Budgets(Vec<(Arc<PodDisruptionBudget>, i32)>);

impl Budgets {
    pub(super) fn of(objects: &Objects) -> Self {
        let allowed = |budget: &Arc<PodDisruptionBudget>| (budget.clone(), budget.status.disruptions_allowed);
        Self(objects.disruption_budgets().map(allowed).collect())
    }

    /// Counts the disruption of a pod of this name, and answers whether a budget does not allow it.
    ///
    /// As kube-scheduler counts (v1.36 `filterPodsWithPDBViolation`): a budget with an empty selector covers no pod, no budget covers a
    /// pod without labels, and a disruption that the API server has granted is not counted again.
    pub(super) fn violate(&mut self, charge: &Charge, name: Option<&str>) -> bool {
        let pod = &charge.footprint;
        let covers = |budget: &PodDisruptionBudget| {
            let selects = budget.spec.selector.as_ref().is_some_and(|selector| !selector.is_empty());
            selects
                && !pod.labels.is_empty()
                && budget.covers(&pod.namespace, &pod.labels)
                && !name.is_some_and(|name| budget.has_disrupted(name))
        };
        let mut violated = false;
        for (budget, allowed) in &mut self.0 {
            if covers(budget) {
                *allowed -= 1;
                violated |= *allowed < 0;
            }
        }
        violated
    }
}
