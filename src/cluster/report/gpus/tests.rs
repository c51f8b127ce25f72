//! What is of use on small nodes, by hand.

use std::{collections::BTreeMap, sync::Arc};

use super::*;
use crate::{
    device::{Card, CoreRequest, Health, InitPhase, MemoryRequest, ModelFilter, Slicing, Usage},
    dialect::{
        Dialects,
        hami::{Hami, HamiSettings},
    },
    object::Quantity,
    scheduling::{NodeInfo, ResourceAmounts, Snapshot, fixtures},
};

/// Whole cpus and GiB that a node has.
const NODE: [u32; 2] = [8, 64];

fn dialects() -> Dialects {
    Dialects::new(vec![Arc::new(Hami::new(HamiSettings::upstream()))])
}

/// An A100 of 16,000 MiB that four pods can share.
fn card(index: u32) -> Card {
    Card {
        id: (&*format!("GPU-{index}")).into(),
        index,
        slots: 4,
        memory: MiB::new(16_000),
        cores: Cores::WHOLE,
        model: "A100".into(),
        numa: 0,
        mode: Mode::Soft,
        slicing: Slicing::Unknown,
        health: Health::Healthy,
    }
}

fn t4(index: u32) -> Card {
    Card { model: "T4".into(), ..card(index) }
}

fn broken(index: u32) -> Card {
    Card { health: Health::Unhealthy, ..card(index) }
}

/// So many cpus and GiB.
fn amounts(cpu: u32, gib: u32) -> ResourceAmounts {
    let amounts = [("cpu", cpu.to_string()), ("memory", format!("{gib}Gi"))];
    let amounts = amounts.map(|(name, text)| (name.to_owned(), Quantity::from(text.as_str())));
    ResourceAmounts::read(amounts.iter().map(|(name, one)| (name, one))).expect("amounts")
}

/// A node of `NODE` with these cards. Of each use: the number of a card, MiB and percent.
fn node(cards: Vec<Card>, uses: &[(u32, u64, u32)]) -> NodeState {
    let offered = fixtures::node_offering("n1", vec![fixtures::offer(Hami::NAME, cards)]);
    let mut snapshot = Snapshot::default();
    snapshot.set_node(NodeInfo { allocatable: amounts(NODE[0], NODE[1]), ..offered });
    let mut state = NodeState::clone(snapshot.node("n1").expect("it was just set"));
    let assignments = uses.iter().map(|(card, memory, cores)| {
        fixtures::assignment(fixtures::share(&format!("GPU-{card}"), *memory, *cores))
    });
    let assignments: Vec<_> = assignments.collect();
    state.usage = Usage::of(assignments.iter().map(|one| (one, InitPhase::Done)));
    state
}

/// The same node with so many cpus and GiB requested.
fn requesting(node: NodeState, cpu: u32, gib: u32) -> NodeState {
    NodeState { requested: amounts(cpu, gib), ..node }
}

/// A pod of one cpu and one GiB that asks for so many MiB and percent of each of so many cards.
fn pod(cards: u32, memory: u64, cores: u32) -> AskedPod {
    let shape = ShareShape {
        profile: Hami::NAME.into(),
        memory: MemoryRequest::Exact(MiB::new(memory)),
        cores: CoreRequest::Exact(Cores::new(cores)),
        alone: false,
        models: ModelFilter::default(),
        modes: None,
        typed: false,
        devices: BTreeMap::new(),
    };
    AskedPod {
        cpu: 1000,
        memory: 1 << 30,
        shares: Some((cards, AskedShare { shape, ids: IdFilter::default() })),
    }
}

/// The same pod with another share.
fn reshaped(mut pod: AskedPod, change: impl FnOnce(&mut ShareShape)) -> AskedPod {
    change(&mut pod.shares.as_mut().expect("it asks for a share").1.shape);
    pod
}

/// What is stranded on a node for these pods, which come alike often, by reason.
fn stranded(node: &NodeState, pods: &[AskedPod]) -> BTreeMap<&'static str, f64> {
    let mut typical = TypicalPods::of(pods.iter().map(|pod| (pod.clone(), 1)).collect());
    let (dialects, mut stranded) = (dialects(), BTreeMap::new());
    let cards = NodeCards::of(node, &dialects);
    for (card, lack, gpus) in typical.on(node, &cards).stranded() {
        assert_eq!(&*card.card.model, "A100");
        *stranded.entry(lack.as_str()).or_insert(0.0) += gpus;
    }
    stranded
}

#[test]
fn what_is_free_and_of_no_use_is_stranded_by_what_is_lacking_first() {
    let (whole, half) = (pod(1, 16_000, 100), pod(1, 8000, 50));
    let one = || vec![card(0)];
    let empty = node(one(), &[]);
    assert_eq!(stranded(&empty, std::slice::from_ref(&whole)), BTreeMap::new());
    let cases = [
        ("cpu", requesting(empty.clone(), NODE[0], 0), whole.clone(), 1.0),
        ("memory", requesting(empty.clone(), 0, NODE[1]), whole.clone(), 1.0),
        ("cpu", requesting(empty.clone(), NODE[0], NODE[1]), whole.clone(), 1.0),
        ("partlyUsed", node(one(), &[(0, 4000, 0)]), whole.clone(), 0.75),
        ("partlyUsed", node(one(), &[(0, 0, 50)]), pod(1, 8000, 75), 0.5),
        ("partlyUsed", empty.clone(), pod(2, 16_000, 100), 1.0),
        (
            "partlyUsed",
            node(one(), &[(0, 4000, 0)]),
            reshaped(half.clone(), |share| share.alone = true),
            0.75,
        ),
        ("slots", node(vec![Card { slots: 1, ..card(0) }], &[(0, 4000, 0)]), half.clone(), 0.75),
        (
            "model",
            empty.clone(),
            reshaped(whole, |share| share.models.any_of = vec![vec!["H100".to_owned()]]),
            1.0,
        ),
        ("model", empty, reshaped(half.clone(), |share| share.profile = "other".into()), 1.0),
    ];
    for (reason, node, pod, gpus) in cases {
        assert_eq!(stranded(&node, std::slice::from_ref(&pod)), BTreeMap::from([(reason, gpus)]), "{pod:?}");
    }
    // One pod that could be given the card is enough; of pods that could not, the one that gets furthest says what is lacking.
    let starved = requesting(node(one(), &[(0, 4000, 0)]), NODE[0], 0);
    assert_eq!(stranded(&starved, &[pod(1, 16_000, 100), half.clone()]), BTreeMap::from([("cpu", 0.75)]));
    let frugal = AskedPod { cpu: 0, ..half };
    assert_eq!(stranded(&starved, &[pod(1, 16_000, 100), frugal]), BTreeMap::new());
    // A card that is full or does not work is not stranded.
    assert_eq!(stranded(&node(one(), &[(0, 16_000, 0)]), &[pod(1, 8000, 0)]), BTreeMap::new());
    assert_eq!(stranded(&node(vec![broken(0)], &[]), &[pod(2, 8000, 0)]), BTreeMap::new());
}

#[test]
fn gpus_are_counted_in_parts_and_fragments_are_the_mean_over_typical_pods() {
    let cards = vec![card(0), card(1), t4(2), broken(3)];
    let node = node(cards, &[(0, 8000, 25)]);
    let dialects = dialects();
    let of = |node: &NodeState, pods: Vec<(AskedPod, u64)>| {
        let cards = NodeCards::of(node, &dialects);
        let mut typical = TypicalPods::of(pods);
        let found: BTreeMap<String, ModelGpus> =
            typical.on(node, &cards).by_model().map(|(model, gpus)| (model.to_string(), gpus)).collect();
        found
    };
    let expected = |a100, t4| {
        let gpus = |capacity, allocated, fragmented| ModelGpus { capacity, allocated, fragmented };
        BTreeMap::from([("A100".to_owned(), gpus(2.0, 0.5, a100)), ("T4".to_owned(), gpus(1.0, 0.0, t4))])
    };
    // Three in four ask for half a card, which both A100 have room for; the others for two whole ones, which there are with the T4.
    assert_eq!(of(&node, vec![(pod(1, 8000, 50), 3), (pod(2, 16_000, 100), 1)]), expected(0.125, 0.0));
    // Three whole ones there are not, and a pod without a GPU can use no card.
    assert_eq!(of(&node, vec![(pod(1, 8000, 50), 3), (pod(3, 16_000, 100), 1)]), expected(0.375, 0.25));
    let plain = AskedPod { shares: None, ..pod(1, 1, 1) };
    assert_eq!(of(&node, vec![(pod(1, 8000, 50), 1), (plain, 1)]), expected(0.75, 0.5));
    let starved = requesting(node, NODE[0], 0);
    assert_eq!(of(&starved, vec![(pod(1, 8000, 50), 1)]), expected(1.5, 1.0));
}

#[test]
fn pods_are_typical_until_they_make_up_nearly_all() {
    let pods = vec![(pod(1, 1, 0), 4), (pod(1, 2, 0), 72), (pod(1, 3, 0), 24)];
    let typical = TypicalPods::of(pods);
    let weights: Vec<f64> = typical.pods.iter().map(|pod| pod.weight).collect();
    assert_eq!(weights, [0.75, 0.25]);
    assert!(TypicalPods::of(Vec::new()).pods.is_empty());
}

#[test]
fn pods_of_each_size_are_counted_by_what_is_free_of_cards() {
    let ten = |index| Card { slots: 10, ..card(index) };
    let cards = vec![card(0), ten(1), ten(2), t4(3), broken(4)];
    let node = self::node(cards, &[(1, 4000, 30), (2, 15_000, 0)]);
    let dialects = dialects();
    let cards = NodeCards::of(&node, &dialects);
    let found: BTreeMap<String, FittedPods> =
        fitting(&cards).into_iter().map(|(model, pods)| (model.to_string(), pods)).collect();
    // Of an eighth the first takes four for its slots, the second five for its compute, the third none; the T4 is like the first.
    let expected = [("A100", [4 + 5, 4 + 2, 2 + 1, 1, 0, 0, 0]), ("T4", [4, 4, 2, 1, 0, 0, 0])];
    assert_eq!(found, expected.map(|(model, pods)| (model.to_owned(), pods)).into());
    let large = self::node((0..17).map(card).collect(), &[]);
    let found = fitting(&NodeCards::of(&large, &dialects)).into_values().collect::<Vec<_>>();
    assert_eq!(found, [[17 * 4, 17 * 4, 17 * 2, 17, 8, 4, 2]]);
}
