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

    /// Those that cover the pod.
    ///
    /// As kube-scheduler has it (v1.36 `filterPodsWithPDBViolation`): a budget with an empty selector covers no pod, no budget covers a
    /// pod without labels, and a disruption that the API server has granted is not counted again.
    pub(super) fn covering(&self, charge: &Charge) -> Vec<usize> {
        let pod = &charge.footprint;
        let covers = |budget: &PodDisruptionBudget| {
            let selects = budget.spec.selector.as_ref().is_some_and(|selector| !selector.is_empty());
            selects
                && !pod.labels.is_empty()
                && budget.covers(&pod.namespace, &pod.labels)
                && !budget.has_disrupted(&charge.pod.name)
        };
        let budgets = self.0.iter().enumerate();
        budgets.filter(|(_, (budget, _))| covers(budget)).map(|(at, _)| at).collect()
    }

    /// Counts the disruption of a pod that these cover, and answers whether one does not allow it.
    pub(super) fn violate(&mut self, covering: &[usize]) -> bool {
        let mut violated = false;
        for at in covering {
            if let Some((_, allowed)) = self.0.get_mut(*at) {
                *allowed -= 1;
                violated |= *allowed < 0;
            }
        }
        violated
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
