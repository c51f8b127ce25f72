//! What the allocator gives and refuses, on cards of one node.

use std::num::NonZeroU32;

use std::collections::BTreeSet;

use super::*;
use crate::{
    device::{
        Blend, CardPolicy, ContainerRequest, Health, InitPhase, MemoryRequest, MiB, NodePolicy, ProfileName,
        Role, Selection, Share, ShareRequest, Tie,
    },
    scheduling::reason::CardReason,
};

const HAMI: Profile = Profile {
    name: ProfileName("test"),
    blend: Blend::Even,
    tie: Tie::Highest,
    core_budget: CoreBudget::Registered,
};

fn card(index: u32) -> Card {
    Card {
        id: format!("GPU-{index}").into(),
        index,
        slots: 4,
        memory: MiB::new(10_000),
        cores: Percent::WHOLE,
        model: "NVIDIA A100".into(),
        numa: 0,
        mode: Mode::Soft,
        slicing: Slicing::Unknown,
        health: Health::Healthy,
    }
}

fn ask(containers: &[(Role, u32, u64, u32)]) -> PodRequest {
    let container = |&(role, cards, memory, cores): &(Role, u32, u64, u32)| ContainerRequest {
        role,
        share: NonZeroU32::new(cards).map(|cards| ShareRequest {
            cards,
            memory: MemoryRequest::Exact(MiB::new(memory)),
            cores: Percent::new(cores),
        }),
    };
    PodRequest {
        containers: containers.iter().map(container).collect(),
        selection: Selection::default(),
        choice: CardPolicy::Spread.into(),
        node_policy: NodePolicy::Binpack,
        marks: BTreeSet::new(),
        shuns: BTreeSet::new(),
    }
}

fn used(shares: &[(u32, u64, u32)]) -> Usage {
    let pods: Vec<_> = shares.iter().map(|&(index, memory, cores)| held(index, memory, cores)).collect();
    Usage::of(pods.iter().map(|pod| (pod, InitPhase::Done)))
}

fn held(index: u32, memory: u64, cores: u32) -> Assignment {
    let share = Share {
        card: format!("GPU-{index}").into(),
        memory: MiB::new(memory),
        cores: Percent::new(cores),
        slice: None,
    };
    Assignment {
        containers: vec![ContainerShares { role: Role::App, shares: vec![share] }],
        ..Assignment::default()
    }
}

fn cards_of(request: &PodRequest, usage: &Usage) -> Result<Vec<String>, NodeReasons> {
    let inventory = Inventory::new(vec![card(0), card(1), card(2)]);
    let assignment = allocate(request, &inventory, usage, &HAMI, Quota::default())?;
    Ok(assignment.shares().map(|share| share.card.to_string()).collect())
}

fn reasons(request: &PodRequest, usage: &Usage) -> Vec<(CardReason, usize)> {
    let card = |reason: &Reason| match reason {
        Reason::Card { reason, count, .. } => Some((*reason, *count)),
        _ => None,
    };
    cards_of(request, usage).expect_err("it must not fit").iter().filter_map(card).collect()
}

#[test]
fn spread_takes_the_emptiest_and_binpack_the_fullest() {
    let usage = used(&[(2, 4000, 10), (1, 1000, 10)]);
    let mut request = ask(&[(Role::App, 1, 1000, 10)]);
    assert_eq!(cards_of(&request, &usage).unwrap(), ["GPU-0"]);
    request.choice = CardPolicy::Binpack.into();
    assert_eq!(cards_of(&request, &usage).unwrap(), ["GPU-2"]);
    request.choice = CardPolicy::Mutex.into();
    assert_eq!(cards_of(&request, &usage).unwrap(), ["GPU-0"]);
}

#[test]
fn equals_go_by_the_profiles_tie() {
    let request = ask(&[(Role::App, 1, 1000, 10)]);
    assert_eq!(cards_of(&request, &Usage::default()).unwrap(), ["GPU-2"]);
    let lowest = Profile { tie: Tie::Lowest, ..HAMI };
    let inventory = Inventory::new(vec![card(1), card(0)]);
    let assignment = allocate(&request, &inventory, &Usage::default(), &lowest, Quota::default()).unwrap();
    assert_eq!(assignment.shares().next().unwrap().card, "GPU-0".into());
}

#[test]
fn one_containers_shares_are_on_different_cards() {
    assert_eq!(cards_of(&ask(&[(Role::App, 3, 1, 0)]), &Usage::default()).unwrap().len(), 3);
    let four = cards_of(&ask(&[(Role::App, 4, 1, 0)]), &Usage::default());
    assert_eq!(four, Err(vec![Reason::NodeInsufficientDevice]));
}

#[test]
fn each_shortage_is_told_by_its_name() {
    let full = used(&[(0, 9500, 0), (1, 9500, 0), (2, 100, 80)]);
    let request = ask(&[(Role::App, 1, 1000, 30)]);
    assert_eq!(
        reasons(&request, &full),
        [(CardReason::CardInsufficientMemory, 2), (CardReason::CardInsufficientCore, 1)]
    );
    let slots: Vec<_> = (0..3).flat_map(|index| vec![(index, 1, 0); 4]).collect();
    assert_eq!(reasons(&request, &used(&slots)), [(CardReason::CardTimeSlicingExhausted, 3)]);
}

#[test]
fn exclusive_use_holds_both_ways() {
    let shared = used(&[(0, 1, 0), (1, 1, 0), (2, 1, 0)]);
    let exclusive = ask(&[(Role::App, 1, 1000, 100)]);
    assert_eq!(reasons(&exclusive, &shared), [(CardReason::ExclusiveDeviceAllocateConflict, 3)]);
    let taken = used(&[(0, 1, 100), (1, 1, 100), (2, 1, 100)]);
    let modest = ask(&[(Role::App, 1, 1, 0)]);
    assert_eq!(reasons(&modest, &taken), [(CardReason::CardComputeUnitsExhausted, 3)]);
}

#[test]
fn a_pods_own_containers_count_by_kubernetes_rule() {
    let mut request = ask(&[(Role::Init, 1, 9000, 0), (Role::App, 1, 9000, 0)]);
    request.selection.ids.one_of = vec!["GPU-1".to_owned()];
    assert_eq!(cards_of(&request, &Usage::default()).unwrap(), ["GPU-1", "GPU-1"]);
    request.containers[0].role = Role::Sidecar;
    assert!(cards_of(&request, &Usage::default()).is_err(), "a sidecar runs beside the app");
}
