//! What the allocator gives and refuses, on cards of one node.

use super::*;
use crate::{
    device::{
        CardChoice, CardPolicy, ContainerRequest, Cores, Geometry, InitPhase, Instances, MiB, NodePolicy,
        NumaBinding, Role, Share, SlicePlacement, SliceProfile, SlicesOfCard, Tie,
    },
    scheduling::{
        fixtures::{self, PROFILE},
        plugin::{devices::reason::CardReason, score},
    },
};

fn hami() -> Profile {
    fixtures::profile(PROFILE)
}

fn card(index: u32) -> Card {
    Card { slots: 4, ..fixtures::card(&format!("GPU-{index}"), index, 10_000) }
}

fn ask(containers: &[(Role, u32, u64, u32)]) -> PodRequest {
    let container = |&(role, cards, memory, cores): &(Role, u32, u64, u32)| ContainerRequest {
        role,
        share: (cards > 0).then(|| fixtures::share_request(cards, memory, cores)),
    };
    fixtures::request(containers.iter().map(container).collect())
}

fn used(shares: &[(u32, u64, u32)]) -> Usage {
    let pods: Vec<_> = shares.iter().map(|&(index, memory, cores)| held(index, memory, cores)).collect();
    Usage::of(pods.iter().map(|pod| (pod, InitPhase::Done)))
}

fn held(index: u32, memory: u64, cores: u32) -> Assignment {
    fixtures::assignment(fixtures::share(&format!("GPU-{index}"), memory, cores))
}

fn cards_of(request: &PodRequest, usage: &Usage) -> Result<Vec<String>, Vec<DeviceReason>> {
    let inventory = Inventory::new(vec![card(0), card(1), card(2)]);
    let assignment = allocate(request, &inventory, usage, &hami(), Quota::default())?;
    Ok(assignment.shares().map(|share| share.card.to_string()).collect())
}

fn reasons(request: &PodRequest, usage: &Usage) -> Vec<(CardReason, usize)> {
    let card = |reason: &DeviceReason| match reason {
        DeviceReason::Card { reason, count, .. } => Some((*reason, *count)),
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
    let lowest = Profile { tie: Tie::Lowest, ..hami() };
    let inventory = Inventory::new(vec![card(1), card(0)]);
    let assignment = allocate(&request, &inventory, &Usage::default(), &lowest, Quota::default()).unwrap();
    assert_eq!(assignment.shares().next().unwrap().card, "GPU-0".into());
}

#[test]
fn one_containers_shares_are_on_different_cards() {
    assert_eq!(cards_of(&ask(&[(Role::App, 3, 1, 0)]), &Usage::default()).unwrap().len(), 3);
    let four = cards_of(&ask(&[(Role::App, 4, 1, 0)]), &Usage::default());
    assert_eq!(four, Err(vec![DeviceReason::TooFewCards]));
}

#[test]
fn each_shortage_has_its_own_reason() {
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

fn numa_card(index: u32, numa: u32) -> Card {
    Card { numa, ..card(index) }
}

fn given(request: &PodRequest, cards: Vec<Card>, usage: &Usage) -> Result<Assignment, Vec<DeviceReason>> {
    allocate(request, &Inventory::new(cards), usage, &hami(), Quota::default())
}

fn names(assignment: &Assignment) -> Vec<String> {
    assignment.shares().map(|share| share.card.to_string()).collect()
}

#[test]
fn numa_binding_takes_one_node_or_names_what_is_missing() {
    let mut request = ask(&[(Role::App, 2, 1000, 10)]);
    request.choice = CardChoice::lone(CardPolicy::Mutex, NumaBinding::OneNode);
    let cards = vec![numa_card(0, 0), numa_card(1, 1), numa_card(2, 0), numa_card(3, 1)];
    let busy = used(&[(3, 1, 0)]);
    // The higher NUMA node goes first, but one of its cards is in use.
    assert_eq!(names(&given(&request, cards.clone(), &busy).unwrap()), ["GPU-2", "GPU-0"]);
    let three = ask(&[(Role::App, 3, 1000, 10)]);
    let bound = PodRequest { choice: request.choice.clone(), ..three };
    let reasons = given(&bound, cards, &Usage::default()).unwrap_err();
    assert!(
        reasons.contains(&DeviceReason::Card { reason: CardReason::NumaNotFit, count: 2, of: 4 }),
        "{reasons:?}"
    );
    assert!(reasons.contains(&DeviceReason::TooFewCardsFit { count: 2, of: 4 }));
}

fn sliced(slicing: Slicing) -> Card {
    Card { mode: Mode::Mig, slicing, slots: 8, memory: MiB::new(40_960), ..card(0) }
}

fn slices(assignment: &Assignment) -> Vec<(String, u64)> {
    let slice = |share: &Share| (share.slice.as_ref().unwrap().to_string(), share.memory.get());
    assignment.shares().map(slice).collect()
}

#[test]
fn geometries_offer_every_free_size_and_open_again_after_the_last_user() {
    let kind = |memory, count| Instances { name: "i".into(), memory: MiB::new(memory), count };
    let card = || {
        sliced(Slicing::Geometries(vec![
            Geometry { group: "small".into(), instances: vec![kind(5120, 7)] },
            Geometry { group: "mixed".into(), instances: vec![kind(10_240, 3), kind(5120, 1)] },
        ]))
    };
    let large = ask(&[(Role::App, 1, 8000, 0)]);
    let small = ask(&[(Role::App, 1, 4000, 0), (Role::App, 1, 4000, 0)]);
    let first = given(&large, vec![card()], &Usage::default()).unwrap();
    assert_eq!(slices(&first), [("mixed-0".to_owned(), 10_240)]);
    // The geometry in use offers its small slice too, and a large one to a pod that finds no small one.
    let beside = Usage::of([(&first, InitPhase::Done)]);
    let second = given(&small, vec![card()], &beside).unwrap();
    assert_eq!(slices(&second), [("mixed-3".to_owned(), 5120), ("mixed-1".to_owned(), 10_240)]);
    let alone = given(&small, vec![card()], &Usage::default()).unwrap();
    assert_eq!(slices(&alone), [("small-0".to_owned(), 5120), ("small-1".to_owned(), 5120)]);
}

#[test]
fn a_card_whose_users_slices_are_unknown_is_not_cut() {
    let profile = SliceProfile {
        name: "1g.5gb".into(),
        memory: MiB::new(5120),
        cores: Cores::new(14),
        slices: 1,
        placements: (0..7).map(|start| SlicePlacement { start, size: 1 }).collect(),
    };
    let request = ask(&[(Role::App, 1, 4000, 0)]);
    let card = || sliced(Slicing::Placements(vec![profile.clone()]));
    let first = given(&request, vec![card()], &Usage::default()).unwrap();
    assert_eq!(slices(&first), [("1g.5gb@6:1".to_owned(), 5120)]);
    let unknown = given(&request, vec![card()], &used(&[(0, 4000, 0)])).unwrap_err();
    let infeasible = DeviceReason::Card { reason: CardReason::CardMigTopologyInfeasible, count: 1, of: 1 };
    assert_eq!(unknown, std::slice::from_ref(&infeasible));
    assert_eq!(given(&request, vec![sliced(Slicing::Unknown)], &Usage::default()).unwrap_err(), [infeasible]);
}

#[test]
fn a_pod_keeps_off_cards_whose_users_it_shuns() {
    let mut request = ask(&[(Role::App, 1, 1000, 0)]);
    request.marks = ["group ns/a".into()].into();
    let first = given(&request, vec![card(0)], &Usage::default()).unwrap();
    let beside = Usage::of([(&first, InitPhase::Done)]);
    assert!(
        given(&request, vec![card(0)], &beside).is_ok(),
        "of one group, but it is kept apart from no pod"
    );
    request.shuns = request.marks.clone();
    let conflict = DeviceReason::Card { reason: CardReason::CardMarkConflict, count: 1, of: 1 };
    assert_eq!(given(&request, vec![card(0)], &beside).unwrap_err(), [conflict]);
}

#[test]
fn quota_counts_the_pod_as_it_runs() {
    let inventory = Inventory::new(vec![card(0), card(1)]);
    let quota = Quota { memory: Some(MiB::new(5000)), ..Quota::default() };
    let fits = |containers: &[(Role, u32, u64, u32)]| {
        allocate(&ask(containers), &inventory, &Usage::default(), &hami(), quota)
    };
    assert!(fits(&[(Role::App, 1, 3000, 0), (Role::App, 1, 2000, 0)]).is_ok());
    let over = fits(&[(Role::App, 1, 3000, 0), (Role::App, 1, 2001, 0)]).unwrap_err();
    assert_eq!(over, [DeviceReason::Card { reason: CardReason::ResourceQuotaNotFit, count: 2, of: 2 }]);
}

/// An A100 of 40 GB as HAMi's plugin registers it: compute is rounded up to whole percents.
fn a100() -> Card {
    let profile = |name: &str, memory, cores, slices, size, starts: &[u32]| SliceProfile {
        name: name.into(),
        memory: MiB::new(memory),
        cores: Cores::new(cores),
        slices,
        placements: starts.iter().map(|&start| SlicePlacement { start, size }).collect(),
    };
    let profiles = vec![
        profile("1g.5gb", 4864, 15, 1, 1, &[0, 1, 2, 3, 4, 5, 6]),
        profile("2g.10gb", 9856, 29, 2, 2, &[0, 2, 4]),
        profile("3g.20gb", 19_968, 43, 3, 4, &[0, 4]),
        profile("7g.40gb", 40_192, 100, 7, 8, &[0]),
    ];
    Card { slots: 7, ..sliced(Slicing::Placements(profiles)) }
}

/// Pods that ask so much memory, one after the other on one card: what the last of them is given or refused with.
fn one_after_another(memories: &[u64]) -> Result<Assignment, Vec<DeviceReason>> {
    let mut pods: Vec<Assignment> = Vec::new();
    for &memory in memories {
        let usage = Usage::of(pods.iter().map(|pod| (pod, InitPhase::Done)));
        pods.push(given(&ask(&[(Role::App, 1, memory, 0)]), vec![a100()], &usage)?);
    }
    Ok(pods.pop().expect("some pod asks"))
}

#[test]
fn a_card_is_filled_with_slices_whose_compute_is_rounded_up() {
    for memories in [&[4000; 7][..], &[8000, 8000, 8000, 4000], &[16_000, 8000, 8000]] {
        assert!(one_after_another(memories).is_ok(), "{memories:?}");
    }
    // 87 % and 15 % make 102 %; what lacks is a place.
    let full = one_after_another(&[8000, 8000, 8000, 4000, 4000]).unwrap_err();
    assert_eq!(full, [DeviceReason::Card { reason: CardReason::CardMigTopologyInfeasible, count: 1, of: 1 }]);
}

/// Whatever fits without the quota and holds no more than it allows fits with it: the decision for a node relies on that.
#[test]
fn a_quota_counts_what_a_slice_holds_and_not_what_was_asked() {
    let inventory = Inventory::new(vec![a100()]);
    let fits = |cores: u32| {
        let quota = Quota { cores: Some(Cores::new(cores)), ..Quota::default() };
        allocate(&ask(&[(Role::App, 1, 4000, 36)]), &inventory, &Usage::default(), &hami(), quota)
    };
    assert!(fits(15).is_ok(), "a slice of 15 %");
    let over = [DeviceReason::Card { reason: CardReason::ResourceQuotaNotFit, count: 1, of: 1 }];
    assert_eq!(fits(14).unwrap_err(), over);
}

#[test]
fn a_card_full_of_slices_is_full_and_no_fuller() {
    let six = ask(&[(Role::App, 6, 4000, 0)]);
    let six = given(&six, vec![a100()], &Usage::default()).unwrap();
    let usage = Usage::of([(&six, InitPhase::Done)]);
    let last = one_after_another(&[4000; 7]).unwrap();
    let score = score::of_request(&hami(), NodePolicy::Binpack, &Inventory::new(vec![a100()]), &usage, &last);
    // All slots, all compute, and 7 of 4864 MiB of 40960 MiB.
    assert!((score - 100.0 * (1.0 + 1.0 + 34_048.0 / 40_960.0) / 3.0).abs() < 1e-9, "{score}");
}

#[test]
fn a_containers_slices_are_tested_against_the_compute_in_use_before_it() {
    let both = given(&ask(&[(Role::App, 2, 8000, 80)]), vec![a100()], &Usage::default()).unwrap();
    assert_eq!(slices(&both), [("2g.10gb@0:2".to_owned(), 9856), ("2g.10gb@2:2".to_owned(), 9856)]);
    let exclusive = given(&ask(&[(Role::App, 2, 8000, 100)]), vec![a100()], &Usage::default()).unwrap();
    assert_eq!(slices(&exclusive).len(), 2);
    let beside = Usage::of([(&both, InitPhase::Done)]);
    let short = given(&ask(&[(Role::App, 1, 8000, 80)]), vec![a100()], &beside).unwrap_err();
    assert_eq!(short, [DeviceReason::Card { reason: CardReason::CardInsufficientCore, count: 1, of: 1 }]);
    let two = ask(&[(Role::App, 1, 8000, 80), (Role::App, 1, 8000, 80)]);
    assert!(
        given(&two, vec![a100()], &Usage::default()).is_err(),
        "another container's slice is in use before"
    );
}

#[test]
fn where_a_pod_may_have_one_slice_of_a_card_each_is_of_another() {
    let one = Profile { slices: SlicesOfCard::One, ..hami() };
    let cut = |index| Card { id: format!("GPU-{index}").into(), index, ..a100() };
    let cards_of = |containers: &[(Role, u32, u64, u32)], count| {
        let inventory = Inventory::new((0..count).map(cut).collect());
        let given = allocate(&ask(containers), &inventory, &Usage::default(), &one, Quota::default());
        given.map(|given| names(&given))
    };
    assert_eq!(cards_of(&[(Role::App, 2, 4000, 0)], 2).unwrap(), ["GPU-1", "GPU-0"]);
    let two = [(Role::App, 1, 4000, 0), (Role::App, 1, 4000, 0)];
    let mut of_two = cards_of(&two, 2).unwrap();
    of_two.sort();
    assert_eq!(of_two, ["GPU-0", "GPU-1"], "another container's slice counts too");
    assert_eq!(cards_of(&[(Role::App, 2, 4000, 0)], 1), Err(vec![DeviceReason::TooFewCards]));
    let infeasible = DeviceReason::Card { reason: CardReason::CardMigTopologyInfeasible, count: 1, of: 1 };
    assert_eq!(cards_of(&two, 1), Err(vec![infeasible]));
}
