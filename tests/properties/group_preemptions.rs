//! Whatever groups of pods hold: the pods of a group that is disrupted only as a whole go together or not at all, on all nodes, with its priority
//! and its budgets, in kube-scheduler's order; and pods go wherever that helps.
//!
//! What kube-scheduler 1.37 does is written down here once more, in sums of memory alone (`defaultpreemption/default_preemption.go`,
//! `SelectVictimsOnNode`; `framework/preemption/types.go`, `getCrossNodesVictims`). Whether anything helps at all is found out by trying every
//! set of victims.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use berth::{
    device::{Answer, Card},
    object::{LabelSelector, Labels, PodDisruptionBudget},
    scheduling::{
        Demand, Footprint, Importance, PodKey, Snapshot, Uid,
        model::{
            gang::{DisruptionMode, Group, GroupPreemption, Policy},
            kind::PodGroupKind,
            label_set::LabelSet,
        },
        plan::preemption::{Rules, choose},
        plugin::pod_counts::PodCounts,
        world::{ledger::Charge, object::Object},
    },
};
use jiff::Timestamp;
use proptest::prelude::*;

use super::fixtures::{self, PROFILE, allocation, ask, share};

const MEMORY: u64 = 10;
const GROUPS: usize = 3;

#[derive(Clone, Copy, Debug)]
struct Tenant {
    node: usize,
    memory: u64,
    priority: i32,
    group: Option<usize>,
    is_protected: bool,
}

/// What a PodGroup says; `None`: there is no such PodGroup.
type Stated = Option<GroupPreemption>;

#[derive(Clone, Debug)]
struct Cluster {
    nodes: usize,
    pods: Vec<Tenant>,
    groups: Vec<Stated>,
    /// How many pods a budget allows to disrupt of those that it covers.
    allowed: i32,
}

/// Pods that go together.
#[derive(Clone, Debug)]
struct Unit {
    pods: Vec<usize>,
    priority: i32,
    is_of_group: bool,
}

/// A node, how many disruptions a budget does not allow, and who goes.
type Found = (String, usize, BTreeSet<String>);

fn clusters() -> impl Strategy<Value = Cluster> {
    let tenant = (0..4_usize, 1..=6_u64, 0..4_i32, prop::option::of(0..GROUPS), prop::bool::weighted(0.3));
    let tenant = tenant.prop_map(|(node, memory, priority, group, is_protected)| Tenant {
        node,
        memory,
        priority,
        group,
        is_protected,
    });
    let disruption = prop_oneof![3 => Just(DisruptionMode::All), 1 => Just(DisruptionMode::Single)];
    let stated = (disruption, prop::option::of(0..5_i32))
        .prop_map(|(disruption, priority)| GroupPreemption { disruption, priority, policy: None });
    let stated = prop::option::weighted(0.8, stated);
    (1..=4_usize, prop::collection::vec(tenant, 2..12), prop::collection::vec(stated, GROUPS), 0..3_i32)
        .prop_map(|(nodes, pods, groups, allowed)| {
            let mut used = vec![0; nodes];
            // Those that their node has no room for are left out.
            let fits = |tenant: &Tenant| {
                let Some(used) = used.get_mut(tenant.node) else { return false };
                *used += if *used + tenant.memory <= MEMORY { tenant.memory } else { MEMORY + 1 };
                *used <= MEMORY
            };
            let mut fits = fits;
            let pods = pods.into_iter().filter(|tenant| fits(tenant)).collect();
            Cluster { nodes, pods, groups, allowed }
        })
}

fn name(pod: usize) -> String {
    format!("pod-{pod}")
}

fn node(at: usize) -> String {
    format!("node-{at}")
}

impl Cluster {
    fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for at in 0..self.nodes {
            let card = Card { slots: 10, ..fixtures::card(&format!("GPU-{at}"), 0, MEMORY) };
            snapshot.set_node(fixtures::node_offering(&node(at), vec![fixtures::offer(PROFILE, vec![card])]));
        }
        for (at, stated) in self.groups.iter().enumerate() {
            let Some(preemption) = *stated else { continue };
            let group = Arc::new(Group { preemption, ..Group::of(Policy::Alone) });
            snapshot.set_object(Object::PodGroup(PodGroupKind::Kubernetes, group_name(at), group));
        }
        let mut budget = PodDisruptionBudget::default();
        "budget".clone_into(&mut budget.metadata.name);
        "default".clone_into(&mut budget.metadata.namespace);
        budget.spec.selector = Some(LabelSelector { match_labels: labels(true), ..LabelSelector::default() });
        budget.status.disruptions_allowed = self.allowed;
        snapshot.set_object(Object::PodDisruptionBudget(Arc::new(budget)));
        for (at, tenant) in self.pods.iter().enumerate() {
            snapshot.charge(name(at).as_str().into(), charge(at, tenant));
        }
        snapshot
    }

    fn stated(&self, pod: usize) -> Stated {
        self.groups[self.pods[pod].group?]
    }

    /// The pods that go together, each unit once.
    fn units(&self) -> Vec<Unit> {
        let mut by_group: BTreeMap<usize, Unit> = BTreeMap::new();
        let mut units = Vec::new();
        for (at, tenant) in self.pods.iter().enumerate() {
            match self.stated(at) {
                Some(GroupPreemption { disruption: DisruptionMode::All, priority, .. }) => {
                    let unit = by_group.entry(tenant.group.unwrap()).or_insert(Unit {
                        pods: Vec::new(),
                        priority: priority.unwrap_or(i32::MIN),
                        is_of_group: true,
                    });
                    unit.pods.push(at);
                    unit.priority = unit.priority.max(priority.unwrap_or(tenant.priority));
                }
                stated => units.push(Unit {
                    pods: vec![at],
                    priority: stated.and_then(|group| group.priority).unwrap_or(tenant.priority),
                    is_of_group: stated.is_some(),
                }),
            }
        }
        units.extend(by_group.into_values());
        // Pods were started one after the other.
        units.sort_by_key(|unit| {
            (Reverse(unit.priority), Reverse(unit.is_of_group), Reverse(unit.pods.len()), unit.pods[0])
        });
        units
    }

    /// The units with a pod on the node that are below this priority.
    fn potential(&self, at: usize, priority: i32) -> Vec<Unit> {
        let is_there = |unit: &Unit| unit.pods.iter().any(|pod| self.pods[*pod].node == at);
        self.units().into_iter().filter(|unit| unit.priority < priority && is_there(unit)).collect()
    }

    /// Whether the node has so much memory once these are gone.
    fn fits(&self, at: usize, memory: u64, gone: &[Unit]) -> bool {
        let is_gone = |pod: &usize| gone.iter().any(|unit| unit.pods.contains(pod));
        let stay = (0..self.pods.len()).filter(|pod| self.pods[*pod].node == at && !is_gone(pod));
        stay.map(|pod| self.pods[pod].memory).sum::<u64>() + memory <= MEMORY
    }

    fn on_node(&self, at: usize, memory: u64, priority: i32) -> Option<(usize, Vec<Unit>)> {
        let potential = self.potential(at, priority);
        if !self.fits(at, memory, &potential) {
            return None;
        }
        let mut allowed = self.allowed;
        let mut violations = |unit: &Unit| {
            let covered = unit.pods.iter().filter(|pod| self.pods[**pod].is_protected);
            let violating = covered.filter(|_| {
                allowed -= 1;
                allowed < 0
            });
            violating.count()
        };
        let judged: Vec<_> = potential.into_iter().map(|unit| (violations(&unit), unit)).collect();
        let (violating, others): (Vec<_>, Vec<_>) = judged.into_iter().partition(|(count, _)| *count > 0);
        let mut gone: Vec<_> = violating.into_iter().chain(others).collect();
        let mut at_unit = 0;
        while at_unit < gone.len() {
            let tried = gone.remove(at_unit);
            let without: Vec<_> = gone.iter().map(|(_, unit)| unit.clone()).collect();
            if !self.fits(at, memory, &without) {
                gone.insert(at_unit, tried);
                at_unit += 1;
            }
        }
        (!gone.is_empty()).then(|| {
            let violations = gone.iter().map(|(violations, _)| violations).sum();
            (violations, gone.into_iter().map(|(_, unit)| unit).collect())
        })
    }

    /// Who goes, and where.
    fn expected(&self, memory: u64, priority: i32) -> Option<Found> {
        let found = (0..self.nodes).filter_map(|at| Some((at, self.on_node(at, memory, priority)?)));
        let harm = |(at, (violations, gone)): &(usize, (usize, Vec<Unit>))| {
            let pods: Vec<usize> = gone.iter().flat_map(|unit| unit.pods.clone()).collect();
            let highest = pods.iter().map(|pod| self.pods[*pod].priority).max();
            let sum: i64 = pods.iter().map(|pod| i64::from(self.pods[*pod].priority) + (1_i64 << 31)).sum();
            let first = pods.iter().filter(|pod| Some(self.pods[**pod].priority) == highest).min().copied();
            (*violations, highest, sum, pods.len(), Reverse(first), *at)
        };
        let (at, (violations, gone)) = found.min_by_key(harm)?;
        Some((
            node(at),
            violations,
            gone.iter().flat_map(|unit| unit.pods.iter().map(|pod| name(*pod))).collect(),
        ))
    }

    /// Whether some set of the pods that may go would help, tried one by one.
    fn can_help(&self, memory: u64, priority: i32) -> bool {
        (0..self.nodes).any(|at| {
            let potential = self.potential(at, priority);
            (0..1_u32 << potential.len()).any(|set| {
                let chosen = potential.iter().enumerate().filter(|(bit, _)| set & (1 << bit) != 0);
                let chosen: Vec<Unit> = chosen.map(|(_, unit)| unit.clone()).collect();
                !chosen.is_empty() && self.fits(at, memory, &chosen)
            })
        })
    }
}

fn group_name(at: usize) -> Arc<str> {
    format!("default/group-{at}").into()
}

fn labels(is_protected: bool) -> Labels {
    Labels::from([("app".to_owned(), if is_protected { "protected" } else { "other" }.to_owned())])
}

fn charge(at: usize, tenant: &Tenant) -> Charge {
    let held =
        allocation(PROFILE, share(&format!("GPU-{}", tenant.node), tenant.memory, 0), Answer::Succeeded);
    let footprint = Footprint {
        namespace: "default".into(),
        labels: LabelSet::from(&labels(tenant.is_protected)),
        ..Footprint::default()
    };
    let name: Uid = name(at).as_str().into();
    Charge {
        pod: PodKey { uid: name.clone(), namespace: "default".into(), name },
        footprint: Arc::new(footprint),
        importance: Importance {
            priority: tenant.priority,
            started: Timestamp::from_second(i64::try_from(at).unwrap()).ok(),
            group: tenant.group.map(group_name),
            ..Importance::default()
        },
        ..fixtures::charge(&node(tenant.node), vec![held])
    }
}

proptest! {
    #[test]
    fn groups_that_are_disrupted_as_a_whole_go_together_or_not_at_all(
        cluster in clusters(), memory in 1..=MEMORY, priority in 0..6_i32,
    ) {
        let mut snapshot = cluster.snapshot();
        prop_assume!(!(0..cluster.nodes).any(|at| cluster.fits(at, memory, &[])));
        let before: Vec<_> = snapshot.nodes().cloned().collect();
        let demand = Demand { priority, ..fixtures::demand("preemptor", ask(1, memory, 0)) };
        let chosen = choose(&demand, &mut snapshot, &mut PodCounts::default(), Rules::default()).ok();
        let same = snapshot.nodes().zip(&before).all(|(now, before)| Arc::ptr_eq(now, before));
        prop_assert!(same, "what was tried has left a trace");
        let found: Option<Found> = chosen.map(|candidate| {
            let victims = candidate.victims.iter().map(|victim| victim.pod.to_string()).collect();
            (candidate.node.to_string(), candidate.violations, victims)
        });
        prop_assert_eq!(&found, &cluster.expected(memory, priority));
        prop_assert_eq!(found.is_some(), cluster.can_help(memory, priority));
        let Some((_, _, victims)) = found else { return Ok(()) };
        for unit in cluster.units() {
            let gone = unit.pods.iter().filter(|pod| victims.contains(&name(**pod))).count();
            prop_assert!(gone == 0 || gone == unit.pods.len(), "{unit:?} goes in part");
            prop_assert!(gone == 0 || unit.priority < priority, "{unit:?} is as important");
        }
    }

    #[test]
    fn a_pod_does_not_preempt_its_own_group(mut cluster in clusters(), memory in 1..=MEMORY) {
        cluster.groups[0] = Some(GroupPreemption { disruption: DisruptionMode::All, ..GroupPreemption::default() });
        let mut snapshot = cluster.snapshot();
        prop_assume!(!(0..cluster.nodes).any(|at| cluster.fits(at, memory, &[])));
        let demand = Demand {
            priority: 10,
            group: Some(group_name(0)),
            ..fixtures::demand("preemptor", ask(1, memory, 0))
        };
        let chosen = choose(&demand, &mut snapshot, &mut PodCounts::default(), Rules::default()).ok();
        let own = |pod: &Uid| cluster.pods.iter().enumerate().any(|(at, tenant)| tenant.group == Some(0) && **pod == *name(at));
        let victims = chosen.iter().flat_map(|candidate| &candidate.victims);
        prop_assert!(!victims.into_iter().any(|victim| own(&victim.pod)));
    }
}
