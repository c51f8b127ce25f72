//! What is kept of each node's terms is what its pods have, whatever has happened before.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    object::pod::Pod,
    scheduling::{Footprint, Snapshot, fixtures, model::resources::ResourceAmounts, world::ledger::Charge},
};

const NODES: usize = 3;
const KINDS: usize = 4;

#[derive(Clone, Debug)]
enum Step {
    /// A pod of this kind comes to this node, with terms of its own or those of the others of its kind.
    Come(usize, usize, bool),
    /// A pod goes: the one of this number, modulo their count.
    Go(usize),
    /// A node is there, or is not.
    Node(usize, bool),
    /// Nothing is asked until the next step.
    Unasked,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..NODES, 0..KINDS, any::<bool>()).prop_map(|(node, kind, own)| Step::Come(node, kind, own)),
        4 => any::<usize>().prop_map(Step::Go),
        1 => (0..NODES, any::<bool>()).prop_map(|(node, is_there)| Step::Node(node, is_there)),
        2 => Just(Step::Unasked),
    ]
}

/// Of the kinds 0 to 3, one has no terms and one has required ones.
fn footprint(kind: usize) -> Footprint {
    let term = json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": kind.to_string()}}});
    let affinity = match kind {
        0 => json!({}),
        1 => json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}),
        _ => json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution":
            [{"weight": kind, "podAffinityTerm": term}]}}),
    };
    let pod: Pod = serde_json::from_value(json!({"spec": {"affinity": affinity}})).unwrap();
    Footprint::of_pod(&pod, ResourceAmounts::default())
}

/// By slot and terms, how many pods have them.
type Counted = BTreeMap<(usize, String), i64>;

fn counted(all: impl Iterator<Item = (usize, Arc<NeighbourTerms>, i64)>) -> Counted {
    let mut counted = Counted::new();
    for (slot, terms, pods) in all {
        *counted.entry((slot, format!("{terms:?}"))).or_default() += pods;
    }
    counted
}

proptest! {
    #[test]
    fn the_terms_of_each_node_are_those_of_its_pods(steps in prop::collection::vec(step(), 1..60)) {
        let mut snapshot = Snapshot::default();
        for at in 0..NODES {
            snapshot.set_node(fixtures::node(&at.to_string(), 1, 8_000));
        }
        let kinds: Vec<Arc<Footprint>> = (0..KINDS).map(|kind| Arc::new(footprint(kind))).collect();
        let (mut pods, mut made, mut known) = (Vec::new(), 0, Arc::<WeighingTerms>::default());
        for step in steps {
            match step {
                Step::Come(node, kind, own) => {
                    let footprint = if own { Arc::new(footprint(kind)) } else { kinds[kind].clone() };
                    let uid: Arc<str> = made.to_string().into();
                    made += 1;
                    snapshot.charge(uid.clone(), Charge { footprint, ..fixtures::charge(&node.to_string(), Vec::new()) });
                    pods.push(uid);
                }
                Step::Go(at) if !pods.is_empty() => {
                    let _ = snapshot.release(&pods.swap_remove(at % pods.len()));
                }
                Step::Node(at, true) => snapshot.set_node(fixtures::node(&at.to_string(), 1, 8_000)),
                Step::Node(at, false) => snapshot.remove_node(&at.to_string()),
                Step::Go(_) => {}
                Step::Unasked => continue,
            }
            let nodes = &snapshot.world().nodes;
            known = known.refreshed(nodes.slots(), nodes.generations());
            let slots = 0..nodes.slots().len();
            let of_list = |(slot, number, pods): (usize, usize, i64)| (slot, known.lists()[number].clone(), pods);
            let found = counted(known.in_slots(slots).map(of_list));
            prop_assert_eq!(&counted(known.in_slots(nodes.weighing()).map(of_list)), &found, "no other node has terms");
            let expected = nodes.by_slot().flat_map(|state| {
                let weighing = state.pods.iter().filter(|pod| pod.weighs());
                weighing.map(|pod| (state.slot, pod.neighbours.clone(), 1))
            });
            prop_assert_eq!(found, counted(expected));
            prop_assert!(known.lists().len() <= 2 * pods.len().max(NODES), "terms of pods that have gone are dropped");
        }
    }
}
