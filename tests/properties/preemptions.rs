//! Whatever stands on the nodes: pods go only where that gives the pod its place, no more of them than that takes, and never in vain.

use std::sync::Arc;

use berth::{
    device::{Answer, Card},
    scheduling::{
        Demand, Importance, Snapshot, Uid,
        decide::class::Classes,
        plan::preemption::{Candidate, Rules, choose},
        plugin::{pod_counts::PodCounts, score::weights::ScoreWeights},
        world::ledger::Charge,
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

proptest! {
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
