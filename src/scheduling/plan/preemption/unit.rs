//! Which pods are preempted together: a pod by itself, or all pods of a group whose PodGroup says that they are disrupted only together. A
//! CompositePodGroup can say that of all pods below it.
//!
//! Source: v1.37 `pkg/scheduler/framework/preemption/types.go` (`getCrossNodesVictims`) and `util.go` (`MoreImportantVictim`,
//! `FilterVictimsWithPDBViolation`). 1.36 does so for groups of Pods alone; a single pod that preempts takes its victims one by one there.

use std::{cmp::Reverse, collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use smallvec::{SmallVec, smallvec};

use super::{Rules, Victim, budgets::Budgets, started};
use crate::scheduling::{
    model::{
        gang::{GangName, GroupApi, GroupPreemption},
        name::{NodeName, Uid},
        pod::{Demand, Importance, Placer},
    },
    plan::Plan,
    snapshot::Snapshot,
    world::{
        ledger::{Charge, Commitment},
        object::Objects,
    },
};

/// Where pods that go together stand among others, the most important first: by priority, by Volcano's mark, by what they are, the larger before the
/// smaller, and by the time at which the first was started.
pub(in crate::scheduling::plan) type Place =
    (Reverse<i32>, bool, Reverse<UnitRank>, Reverse<usize>, Timestamp);

/// What goes together, the least important first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum UnitRank {
    /// A pod that is in no group.
    Pod,
    /// A PodGroup, or a pod of one.
    PodGroup,
    /// All below a CompositePodGroup.
    Composite,
}

/// All pods of a group that is disrupted only as a whole, wherever they run.
#[derive(Debug)]
pub(super) struct WholeGroup {
    /// The pods, the most important first.
    victims: Vec<Victim>,
    place: Place,
    /// Of each pod, whether it is in the way of the preempting pod from another node, too: by what it holds of a quota, or by its terms or those of the
    /// preempting pod.
    is_far: Vec<bool>,
    /// How many are.
    far: usize,
    /// For each pod the budgets that cover it.
    covering: Vec<Vec<usize>>,
}

/// Which pods are in the way of preempting pods from other nodes, too: by what they hold of a quota, or by their terms or those of the preempting pods.
#[derive(Debug)]
pub(in crate::scheduling::plan) struct Reach {
    /// Whether the preempting pods look at more than their nodes.
    looks_far: bool,
    /// Their namespace, if it has a quota.
    quota: Option<Arc<str>>,
}

impl Reach {
    /// Of preempting pods of one namespace.
    pub(in crate::scheduling::plan) fn of<'d>(
        mut demands: impl Iterator<Item = &'d Demand> + Clone,
        snapshot: &Snapshot,
    ) -> Self {
        let namespace = demands.clone().next().map(|demand| demand.footprint.namespace.clone());
        let looks_far =
            |demand: &Demand| demand.footprint.is_cross_node() || demand.footprint.may_use_devices();
        Self {
            looks_far: demands.any(looks_far),
            quota: namespace.filter(|namespace| snapshot.quotas().used().contains_key(namespace)),
        }
    }

    /// Whether any pod may be in their way from another node.
    pub(in crate::scheduling::plan) fn is_wide(&self) -> bool {
        self.looks_far || self.quota.is_some()
    }

    /// Whether the pod is in their way from another node.
    pub(in crate::scheduling::plan) fn is_far(&self, charge: &Charge) -> bool {
        let terms = &charge.footprint.neighbours.anti_affinity;
        self.looks_far || !terms.is_empty() || self.quota.as_ref() == Some(&charge.pod.namespace)
    }
}

/// Pods that are preempted together or not at all.
#[derive(Debug)]
pub(super) struct PreemptionUnit {
    pods: UnitPods,
    /// Those that are taken off on trial.
    tried: SmallVec<[Uid; 1]>,
    /// What these hold, while they are taken off.
    off: SmallVec<[(Uid, Arc<Charge>); 1]>,
}

#[derive(Debug)]
enum UnitPods {
    One(Arc<Charge>, Place),
    Group(Arc<WholeGroup>),
}

/// What the PodGroup of a pod says of preemption, if it is one of Kubernetes' and known.
fn stated(importance: &Importance, objects: &Objects) -> Option<GroupPreemption> {
    objects.group_preemption(importance.group.as_ref()?)
}

/// The priority of a pod where others preempt: that of its PodGroup, or of the root of its tree, if one is stated (v1.37 `GetPodPriority`).
pub(super) fn priority(importance: &Importance, objects: &Objects) -> i32 {
    let stated = stated(importance, objects).and_then(|group| group.priority);
    stated.unwrap_or(importance.priority)
}

/// The group of the pod, if it is disrupted only as a whole: the largest that is.
pub fn whole_group(importance: &Importance, objects: &Objects) -> Option<GangName> {
    objects.groups().disrupted_whole(importance.group.as_ref()?)
}

/// The pods of a group that hold something, or of all groups below it, by uid for each group.
pub fn members_of<'a>(group: &GangName, snapshot: &'a Snapshot) -> Vec<(&'a Uid, &'a Charge)> {
    let leaves = snapshot.objects().groups().leaves(group).into_iter();
    leaves.flat_map(|leaf| snapshot.ledger().of_group(&leaf.group).collect::<Vec<_>>()).collect()
}

/// All pods of the groups of which these pods are and that are disrupted only as a whole.
pub fn mates<'a>(pods: impl Iterator<Item = &'a Uid>, snapshot: &Snapshot) -> BTreeSet<Uid> {
    let charges = pods.filter_map(|pod| snapshot.ledger().get(pod));
    let groups: BTreeSet<GangName> =
        charges.filter_map(|charge| whole_group(&charge.importance, snapshot.objects())).collect();
    let pods = groups.iter().flat_map(|group| members_of(group, snapshot));
    pods.map(|(pod, _)| pod.clone()).collect()
}

/// Whether the pod may be preempted at all for one of this priority.
fn may_go(charge: &Charge, priority: i32, demand: &Demand, rules: Rules) -> bool {
    priority < demand.priority
        && charge.commitment != Commitment::Intended
        && (rules.other_schedulers || charge.placer == Placer::Berth)
}

impl WholeGroup {
    /// The pods of a group that may go for the pod of this demand; `None`: not all of them may.
    pub(super) fn of(
        group: &GangName,
        demand: &Demand,
        plan: &Plan<'_>,
        rules: Rules,
        budgets: &Budgets,
    ) -> Option<Self> {
        let mut pods = members_of(group, plan);
        let charges = || pods.iter().map(|(_, charge)| *charge);
        // The priority of the root counts for each group of the tree.
        let stated = charges().next().and_then(|charge| stated(&charge.importance, plan.objects()));
        let highest = charges().map(|charge| charge.importance.priority).max();
        let priority = stated.and_then(|stated| stated.priority).or(highest)?;
        let is_own = demand.group.as_ref().is_some_and(|own| {
            let own = GangName { api: GroupApi::Kubernetes, group: own.clone() };
            plan.objects().groups().leaves(group).contains(&own)
        });
        if is_own || !charges().all(|charge| may_go(charge, priority, demand, rules)) {
            return None;
        }
        let reach = Reach::of(std::iter::once(demand), plan);
        let first = charges().map(|charge| started(&charge.importance)).min();
        pods.sort_by_key(|(_, charge)| rules.place(&charge.importance));
        let is_composite = group.api == GroupApi::Composite;
        let place = (
            Reverse(priority),
            rules.preemptable_first && pods.iter().all(|(_, charge)| charge.importance.preemptable),
            Reverse(if is_composite { UnitRank::Composite } else { UnitRank::PodGroup }),
            Reverse(pods.len()),
            first.unwrap_or(Timestamp::MAX),
        );
        Some(Self {
            place,
            far: pods.iter().filter(|(_, charge)| reach.is_far(charge)).count(),
            is_far: pods.iter().map(|(_, charge)| reach.is_far(charge)).collect(),
            covering: pods.iter().map(|(_, charge)| budgets.covering(charge)).collect(),
            victims: pods.into_iter().map(|(pod, charge)| Victim::of(pod, charge)).collect(),
        })
    }

    /// How many pods there are.
    pub(super) fn size(&self) -> usize {
        self.victims.len()
    }
}

impl PreemptionUnit {
    /// A pod that goes by itself; `None`: it may not go.
    pub(super) fn one(
        pod: &Uid,
        charge: &Arc<Charge>,
        demand: &Demand,
        objects: &Objects,
        rules: Rules,
    ) -> Option<Self> {
        let importance = &charge.importance;
        let group = stated(importance, objects);
        let priority = group.and_then(|group| group.priority).unwrap_or(importance.priority);
        if !may_go(charge, priority, demand, rules) {
            return None;
        }
        let (_, preemptable, started) = rules.place(importance);
        let rank = if group.is_some() { UnitRank::PodGroup } else { UnitRank::Pod };
        let place = (Reverse(priority), preemptable, Reverse(rank), Reverse(1), started);
        Some(Self {
            pods: UnitPods::One(charge.clone(), place),
            tried: smallvec![pod.clone()],
            off: SmallVec::new(),
        })
    }

    /// A group that goes as a whole. Of its pods on other nodes, those are taken off on trial that are in the way from there, if there are so few.
    pub(super) fn group(group: &Arc<WholeGroup>, node: &NodeName, most_far: usize) -> Self {
        let takes_far = group.far <= most_far;
        let pods = group.victims.iter().zip(&group.is_far);
        let tried = pods.filter(|(victim, is_far)| victim.node == *node || takes_far && **is_far);
        let tried = tried.map(|(victim, _)| victim.pod.clone()).collect();
        Self { pods: UnitPods::Group(group.clone()), tried, off: SmallVec::new() }
    }

    /// A group that goes as a whole, of which all pods are taken off on trial.
    pub(super) fn everywhere(group: &Arc<WholeGroup>) -> Self {
        let tried = group.victims.iter().map(|victim| victim.pod.clone()).collect();
        Self { pods: UnitPods::Group(group.clone()), tried, off: SmallVec::new() }
    }

    /// The pod that goes by itself, and those of the group.
    fn pods(&self) -> (Option<&Arc<Charge>>, &[Victim]) {
        match &self.pods {
            UnitPods::One(charge, _) => (Some(charge), &[]),
            UnitPods::Group(group) => (None, &group.victims),
        }
    }

    /// How much each of the pods matters, the most important first.
    pub(super) fn importances(&self) -> impl Iterator<Item = &Importance> {
        let (one, group) = self.pods();
        one.map(|charge| &charge.importance).into_iter().chain(group.iter().map(|victim| &victim.importance))
    }

    /// The pods, the most important first.
    pub(super) fn victims(&self) -> impl Iterator<Item = Victim> {
        let (one, group) = self.pods();
        let one = one.zip(self.tried.first()).map(|(charge, pod)| Victim::of(pod, charge));
        one.into_iter().chain(group.iter().cloned())
    }

    /// Its place among others, the most important first.
    pub(super) fn place(&self) -> Place {
        match &self.pods {
            UnitPods::One(_, place) => *place,
            UnitPods::Group(group) => group.place,
        }
    }

    /// The pods that are taken off on trial.
    pub(super) fn tried(&self) -> &[Uid] {
        &self.tried
    }

    /// Takes the pods off their nodes.
    pub(super) fn take_off(&mut self, mut end: impl FnMut(&Uid) -> Option<Arc<Charge>>) {
        self.off.extend(self.tried.iter().filter_map(|pod| Some((pod.clone(), end(pod)?))));
    }

    /// Puts the pods back.
    pub(super) fn put_back(&mut self, mut place: impl FnMut(&Uid, Arc<Charge>)) {
        for (pod, charge) in self.off.drain(..) {
            place(&pod, charge);
        }
    }

    /// Counts the disruption of the pods, which are off; of how many a budget does not allow it.
    pub(super) fn violate(&self, budgets: &mut Budgets) -> usize {
        match &self.pods {
            UnitPods::One(..) => {
                let violates = |(_, charge): &&(Uid, Arc<Charge>)| {
                    let covering = budgets.covering(charge);
                    budgets.violate(&covering)
                };
                self.off.iter().filter(violates).count()
            }
            UnitPods::Group(group) => {
                group.covering.iter().filter(|covering| budgets.violate(covering)).count()
            }
        }
    }
}
