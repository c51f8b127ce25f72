//! Whatever stands on the nodes: pods go only where that gives the pod its place, no more of them than that takes, and never in vain.

use std::{cmp::Reverse, sync::Arc};

use berth::{
    device::{Answer, Card, Dimension},
    scheduling::{
        Demand, Importance, NodeName, QuotaInfo, QuotaKey, Snapshot, Uid,
        decide::class::Classes,
        plan::{
            Plan,
            preemption::{Candidate, Rules, choose, choose_among},
        },
        plugin::{pod_counts::PodCounts, score::weights::ScoreWeights},
        world::{ledger::Charge, quota::Bound},
    },
};
use jiff::Timestamp;
use proptest::prelude::*;

use super::fixtures::{self, PROFILE, allocation, ask, share};

const NODES: u8 = 3;
const CARDS: u8 = 2;
const MEMORY: u64 = 10;

/// A pod on a card of a node: its memory, its priority, and whether it is marked as preemptable.
type Held = (u8, u8, u64, i32, bool);

fn held() -> impl Strategy<Value = Vec<Held>> {
    let one = (0..NODES, 0..CARDS, 2..9_u64, 0..4_i32, any::<bool>());
    prop::collection::vec(one, 10..30)
}

fn card(node: u8, card: u8) -> String {
    format!("GPU-{node}-{card}")
}

/// Three nodes of two cards, with as many of these pods as they have room for.
fn cluster(pods: &[Held]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for node in 0..NODES {
        let of = |index: u8| Card { slots: 4, ..fixtures::card(&card(node, index), index.into(), MEMORY) };
        let offer = fixtures::offer(PROFILE, (0..CARDS).map(of).collect());
        snapshot.set_node(fixtures::node_offering(&format!("node-{node}"), vec![offer]));
    }
    for (at, pod) in pods.iter().enumerate() {
        let (node, index, memory, ..) = *pod;
        let state = snapshot.node(&format!("node-{node}")).unwrap();
        let used = state.usage.card(&card(node, index).as_str().into());
        if used.memory.get() + memory <= MEMORY && used.slots < 4 {
            snapshot.charge(uid(at), charge(at, pod));
        }
    }
    snapshot
}

fn uid(at: usize) -> Uid {
    format!("pod-{at}").into()
}

fn charge(at: usize, &(node, index, memory, priority, preemptable): &Held) -> Charge {
    let held = allocation(PROFILE, share(&card(node, index), memory, 0), Answer::Succeeded);
    let started = Timestamp::from_second(i64::try_from(at).unwrap()).ok();
    Charge {
        importance: Importance { priority, started, preemptable, ..Importance::default() },
        ..fixtures::charge(&format!("node-{node}"), vec![held])
    }
}

/// A pod that asks for this of each of so many cards.
fn demand(cards: u32, memory: u64, priority: i32) -> Demand {
    Demand { priority, ..fixtures::demand("preemptor", ask(cards, memory, 0)) }
}

/// Where the pod goes as things stand.
fn place(demand: &Demand, snapshot: &Snapshot) -> Option<String> {
    let decided = Classes::new(ScoreWeights::default()).decide(demand, snapshot, |_| 0);
    decided.ok().map(|decision| decision.node.to_string())
}

fn preempt(demand: &Demand, snapshot: &mut Snapshot) -> Option<Candidate> {
    choose(demand, snapshot, &mut PodCounts::default(), Rules::default()).ok()
}

/// Whether some node would have the pod if every pod of lower priority were gone.
fn could_preempt(demand: &Demand, pods: &[Held]) -> bool {
    let snapshot = cluster(pods);
    let mut without = cluster(&[]);
    for (pod, charge) in
        snapshot.ledger().all().filter(|(_, charge)| charge.importance.priority >= demand.priority)
    {
        without.charge(pod.clone(), charge.clone());
    }
    place(demand, &without).is_some()
}

/// A quota that bounds nothing: what a node makes of a pod depends on more than that node then, and is found out in a plan of the whole cluster.
fn with_quota(mut snapshot: Snapshot) -> Snapshot {
    let key = QuotaKey { namespace: "default".into(), name: "wide".into() };
    let bound = Bound {
        profile: PROFILE.into(),
        dimension: Dimension::Memory,
        key: "memory".into(),
        hard: 1_000_000,
        unit: 1,
    };
    snapshot.set_quota(QuotaInfo { key, bounds: vec![bound] });
    snapshot
}

/// How much harm it does if these pods go, by kube-scheduler's rules: no budget covers them.
fn harm(
    Candidate { node, victims, .. }: &Candidate,
) -> (i32, i64, usize, usize, Reverse<Option<Timestamp>>, String) {
    let highest = victims.iter().map(|victim| victim.importance.priority).max().unwrap();
    let sum = victims.iter().map(|victim| i64::from(victim.importance.priority) - i64::from(i32::MIN)).sum();
    let unmarked = victims.iter().filter(|victim| !victim.importance.preemptable).count();
    let most_important = victims.iter().filter(|victim| victim.importance.priority == highest);
    let earliest = most_important.map(|victim| victim.importance.started).min().unwrap();
    (highest, sum, unmarked, victims.len(), Reverse(earliest), node.to_string())
}

proptest! {
    #[test]
    fn the_least_harm_of_all_nodes_is_done_however_it_is_found(
        pods in held(), cards in 1..=2_u32, memory in 5..=MEMORY, priority in 1..5_i32,
    ) {
        let demand = demand(cards, memory, priority);
        let mut snapshot = cluster(&pods);
        let mut wide = with_quota(cluster(&pods));
        let on = |node: u8, snapshot: &mut Snapshot| {
            let (mut plan, mut counts) = (Plan::new(snapshot), PodCounts::default());
            let only = |name: &NodeName| **name == *format!("node-{node}");
            choose_among(&demand, &mut plan, &mut counts, Rules::default(), &only).ok()
        };
        let by_node: Vec<_> = (0..NODES).map(|node| on(node, &mut snapshot)).collect();
        let in_plan: Vec<_> = (0..NODES).map(|node| on(node, &mut wide)).collect();
        prop_assert_eq!(&by_node, &in_plan);
        let least = by_node.into_iter().flatten().min_by_key(harm);
        prop_assert_eq!(&preempt(&demand, &mut snapshot), &least);
        prop_assert_eq!(&preempt(&demand, &mut wide), &least);
    }

    #[test]
    fn pods_go_where_it_helps_and_no_more_than_it_takes(
        pods in held(), cards in 1..=2_u32, memory in 5..=MEMORY, priority in 0..5_i32,
    ) {
        let mut snapshot = cluster(&pods);
        let demand = demand(cards, memory, priority);
        prop_assume!(place(&demand, &snapshot).is_none());
        let before: Vec<_> = snapshot.nodes().cloned().collect();
        let chosen = preempt(&demand, &mut snapshot);
        let same = snapshot.nodes().zip(&before).all(|(now, before)| Arc::ptr_eq(now, before));
        prop_assert!(same, "what was tried has left a trace");
        let Some(Candidate { node, victims, .. }) = chosen else {
            prop_assert!(!could_preempt(&demand, &pods), "it could have had a place");
            return Ok(());
        };
        prop_assert!(!victims.is_empty());
        let mut taken = Vec::new();
        for victim in &victims {
            let charge = snapshot.release(&victim.pod).unwrap();
            prop_assert!(charge.node == node && charge.importance.priority < priority);
            taken.push((victim.pod.clone(), charge));
        }
        prop_assert_eq!(place(&demand, &snapshot), Some(node.to_string()));
        for (pod, charge) in taken {
            snapshot.charge(pod.clone(), charge);
            prop_assert_eq!(place(&demand, &snapshot), None, "{} went in vain", pod);
            snapshot.release(&pod);
        }
    }
}
