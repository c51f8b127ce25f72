//! Which pods of the whole cluster may be preempted for a gang: all of them are off at first, and those that can stay are put back.
//!
//! Source: v1.37 `pkg/scheduler/framework/preemption/podgrouppreemption.go` (`selectVictimsOnDomain`), which bounds neither their number nor the time
//! that this takes.

use std::{cmp::Reverse, collections::BTreeSet, sync::Arc};

use super::{
    Rules, Victim,
    budgets::Budgets,
    unit::{PreemptionUnit, WholeGroup, whole_group},
};
use crate::scheduling::{
    model::{
        gang::GangName,
        name::{NodeName, Uid},
        pod::Demand,
        steps::{FOLD, LIST_VICTIM, Steps, TRY_POD},
    },
    plan::Plan,
    world::ledger::Charge,
};

/// At most so many pods are off, which takes about 20 ms: a turn takes them off and puts them back.
const MOST_OFF: usize = 1_000;

/// Pods that go together or not at all, which are off.
#[derive(Debug)]
pub(in crate::scheduling::plan) struct OffUnit {
    unit: PreemptionUnit,
    /// The most important first.
    victims: Vec<Victim>,
    /// What they hold where they stay.
    charges: Vec<(Uid, Arc<Charge>)>,
    /// How many of them a PodDisruptionBudget covers that allows no further disruption.
    violations: usize,
}

impl OffUnit {
    /// The pods, the most important first.
    pub(in crate::scheduling::plan) fn victims(&self) -> &[Victim] {
        &self.victims
    }

    /// What they hold where they stay.
    pub(in crate::scheduling::plan) fn charges(&self) -> impl Iterator<Item = &Charge> {
        self.charges.iter().map(|(_, charge)| &**charge)
    }

    /// How many of them a PodDisruptionBudget covers that allows no further disruption.
    pub(in crate::scheduling::plan) fn violations(&self) -> usize {
        self.violations
    }

    /// Puts the most important first.
    pub(in crate::scheduling::plan) fn sort(units: &mut [Self]) {
        units.sort_by_key(|off| off.unit.place());
    }

    /// Puts them back.
    pub(in crate::scheduling::plan) fn put_back(&self, plan: &mut Plan<'_>) {
        for (pod, charge) in &self.charges {
            plan.place(pod, charge.clone());
        }
    }
}

/// Takes all pods off their nodes that may be preempted for the pod of this demand, in the order in which they are put back: those first whose
/// budget would be violated, of these the most important first. Claims of devices that only they use are free then, but for those that are `kept`.
/// Where there are more than may be off, those of the nodes are whose most important one matters least.
pub(in crate::scheduling::plan) fn take_off_all(
    demand: &Demand,
    kept: &BTreeSet<Arc<str>>,
    plan: &mut Plan<'_>,
    rules: Rules,
    steps: &mut Steps,
) -> Vec<OffUnit> {
    let budgets = Budgets::of(plan.objects());
    let mut units = least_important(units_of_nodes(demand, plan, rules, &budgets, steps));
    units.sort_by_key(PreemptionUnit::place);
    let mut left = budgets;
    let mut off: Vec<OffUnit> = Vec::new();
    for mut unit in units {
        steps.add(TRY_POD, unit.tried().len());
        unit.take_off(|pod| plan.end_beside(pod, kept));
        let violations = unit.violate(&mut left);
        let mut charges = Vec::new();
        unit.put_back(|pod, charge| charges.push((pod.clone(), charge)));
        off.push(OffUnit { victims: unit.victims().collect(), unit, charges, violations });
    }
    // The sort is stable.
    off.sort_by_key(|unit| unit.violations == 0);
    off
}

/// The pods that may go, by the nodes where they are; those that go together once.
fn units_of_nodes(
    demand: &Demand,
    plan: &Plan<'_>,
    rules: Rules,
    budgets: &Budgets,
    steps: &mut Steps,
) -> Vec<Vec<PreemptionUnit>> {
    let mut met: BTreeSet<GangName> = BTreeSet::new();
    let mut nodes = Vec::new();
    let names: Vec<NodeName> = plan.nodes().map(|state| state.info.name.clone()).collect();
    for node in names {
        let mut units = Vec::new();
        let mut looked_at = 0;
        for (pod, charge) in plan.ledger().shared_on_node(&node) {
            looked_at += 1;
            match whole_group(&charge.importance, plan.objects()) {
                None => units.extend(PreemptionUnit::one(pod, charge, demand, plan.objects(), rules)),
                Some(group) if met.insert(group.clone()) => {
                    let whole = WholeGroup::of(&group, demand, plan, rules, budgets).map(Arc::new);
                    steps.add(FOLD, whole.as_ref().map_or(0, |whole| whole.size()));
                    units.extend(whole.as_ref().map(PreemptionUnit::everywhere));
                }
                Some(_) => {}
            }
        }
        steps.add(LIST_VICTIM, looked_at);
        if !units.is_empty() {
            nodes.push(units);
        }
    }
    nodes
}

/// As many as may be off, node by node.
fn least_important(mut nodes: Vec<Vec<PreemptionUnit>>) -> Vec<PreemptionUnit> {
    nodes.sort_by_cached_key(|units| Reverse(units.iter().map(PreemptionUnit::place).min()));
    let (mut chosen, mut pods) = (Vec::new(), 0);
    for units in nodes {
        let more: usize = units.iter().map(|unit| unit.tried().len()).sum();
        if pods + more <= MOST_OFF {
            pods += more;
            chosen.extend(units);
        }
    }
    chosen
}
