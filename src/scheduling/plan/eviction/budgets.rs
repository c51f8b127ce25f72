//! Which evictions the API server would grant: the PodDisruptionBudgets, as the Eviction API reads them.

use std::collections::BTreeMap;

use super::Postponement;
use crate::{
    object::{PodDisruptionBudget, pod_disruption_budget::UnhealthyPods},
    scheduling::{
        model::{
            pod::{PodInfo, Stage},
            tdm::job::Readiness,
        },
        world::object::Objects,
    },
};

/// The PodDisruptionBudgets by namespace, and how many pods each still lets go.
pub(in crate::scheduling::plan) struct EvictionBudgets<'a>(
    BTreeMap<&'a str, Vec<(&'a PodDisruptionBudget, i32)>>,
);

impl<'a> EvictionBudgets<'a> {
    /// As they stand now.
    pub(in crate::scheduling::plan) fn new(objects: &'a Objects) -> Self {
        let mut budgets: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for budget in objects.disruption_budgets() {
            let of_namespace = budgets.entry(&*budget.metadata.namespace).or_default();
            of_namespace.push((&**budget, budget.status.disruptions_allowed));
        }
        Self(budgets)
    }

    /// Counts the eviction of a pod, if the budget that covers it allows it.
    pub(in crate::scheduling::plan) fn take(
        &mut self,
        pod: &PodInfo,
        readiness: Readiness,
    ) -> Result<(), Postponement> {
        if let Some(at) = self.find(pod, readiness)?
            && let Some((_, left)) = self.0.get_mut(&*pod.footprint.namespace).and_then(|all| all.get_mut(at))
        {
            *left -= 1;
        }
        Ok(())
    }

    /// Whether the budget that covers a pod allows its eviction, if no other pod goes before.
    pub(in crate::scheduling::plan) fn allow(
        &self,
        pod: &PodInfo,
        readiness: Readiness,
    ) -> Result<(), Postponement> {
        self.find(pod, readiness).map(drop)
    }

    /// The place of the budget that must count the eviction, among those of the namespace, as the Eviction API decides it (kubernetes v1.36
    /// `pkg/registry/core/pod/storage/eviction.go`); `None`: none must.
    fn find(&self, pod: &PodInfo, readiness: Readiness) -> Result<Option<usize>, Postponement> {
        let (namespace, labels) = (&pod.footprint.namespace, &pod.footprint.labels);
        let of_namespace = self.0.get(&**namespace).into_iter().flatten().enumerate();
        let mut covering = of_namespace.filter(|(_, (budget, _))| budget.covers(namespace, labels));
        let Some((at, (budget, left))) = covering.next() else { return Ok(None) };
        if covering.next().is_some() {
            return Err(Postponement::SeveralPodDisruptionBudgets);
        }
        if budget.has_disrupted(&pod.key.name) || pod.stage != Stage::Running {
            return Ok(None);
        }
        let status = &budget.status;
        let healthy = status.current_healthy >= status.desired_healthy && status.desired_healthy > 0;
        if readiness == Readiness::Unready
            && (budget.spec.unhealthy_pod_eviction_policy == UnhealthyPods::AlwaysAllow || healthy)
        {
            return Ok(None);
        }
        if *left <= 0 {
            return Err(Postponement::PodDisruptionBudget(budget.metadata.name.as_str().into()));
        }
        Ok(Some(at))
    }
}
