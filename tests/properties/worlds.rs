//! Any cards, pods and orders of them.

use berth::device::{
    Blend, Card, CardChoice, CardPolicy, ContainerRequest, CoreBudget, Cores, Geometry, Health, Instances,
    Marks, MemoryRequest, MiB, Mode, NodePolicy, NumaBinding, Percent, PodRequest, Profile, Role,
    ShareRequest, SlicePlacement, SliceProfile, SlicesOfCard, Slicing, Tie, Weights,
};
use proptest::prelude::*;

use super::fixtures;

/// Either family's way of sharing.
pub(crate) fn profile() -> impl Strategy<Value = Profile> {
    let volcano = Profile {
        blend: Blend::MemoryThenSlots,
        tie: Tie::Lowest,
        core_budget: CoreBudget::Fixed(Cores::WHOLE),
        slices: SlicesOfCard::One,
        ..fixtures::profile("memory")
    };
    prop_oneof![Just(fixtures::profile("even")), Just(volcano)]
}

fn placements() -> Slicing {
    let profile = |name: &str, memory, slices: u32, size, starts: &[u32]| SliceProfile {
        name: name.into(),
        memory: MiB::new(memory),
        // As HAMi's plugin registers them: rounded up.
        cores: Cores::new((slices * 100).div_ceil(7)),
        slices,
        placements: starts.iter().map(|&start| SlicePlacement { start, size }).collect(),
    };
    Slicing::Placements(vec![
        profile("1g.5gb", 4864, 1, 1, &[0, 1, 2, 3, 4, 5, 6]),
        profile("2g.10gb", 9856, 2, 2, &[0, 2, 4]),
        profile("3g.20gb", 19_968, 3, 4, &[0, 4]),
        profile("7g.40gb", 40_192, 7, 8, &[0]),
    ])
}

fn geometries() -> Slicing {
    let kind = |name: &str, memory, count| Instances { name: name.into(), memory: MiB::new(memory), count };
    Slicing::Geometries(vec![
        Geometry { group: "group1".into(), instances: vec![kind("1g.5gb", 5120, 7)] },
        Geometry {
            group: "group2".into(),
            instances: vec![kind("2g.10gb", 10_240, 3), kind("1g.5gb", 5120, 1)],
        },
    ])
}

fn card() -> impl Strategy<Value = Card> {
    let cut = prop_oneof![
        4 => Just((Mode::Soft, Slicing::Unknown)),
        1 => Just((Mode::Mig, placements())),
        1 => Just((Mode::Mig, geometries())),
        1 => Just((Mode::Mig, Slicing::Unknown)),
    ];
    let health =
        prop_oneof![8 => Just(Health::Healthy), 1 => Just(Health::Cordoned), 1 => Just(Health::Unhealthy)];
    (1..8_u32, 1..41_u64, prop_oneof![Just(100_u32), Just(100), Just(150)], 0..2_u32, cut, health).prop_map(
        |(slots, memory, cores, numa, (mode, slicing), health)| Card {
            slots,
            cores: Cores::new(cores),
            numa,
            mode,
            slicing,
            health,
            ..fixtures::card("", 0, memory * 1024)
        },
    )
}

/// The cards of a node, numbered.
pub(crate) fn cards() -> impl Strategy<Value = Vec<Card>> {
    prop::collection::vec(card(), 1..6).prop_map(|mut cards| {
        for (at, card) in (0_u32..).zip(&mut cards) {
            card.index = at;
            card.id = format!("GPU-{at}").into();
        }
        cards
    })
}

fn share() -> impl Strategy<Value = ShareRequest> {
    let memory = prop_oneof![
        (0..20_000_u64).prop_map(|mib| MemoryRequest::Exact(MiB::new(mib))),
        (1..=100_u32).prop_map(|part| MemoryRequest::Part(Percent::new(part))),
    ];
    (1..4_u32, memory, prop_oneof![Just(0_u32), 0..=100_u32]).prop_map(|(cards, memory, cores)| {
        ShareRequest { memory, ..fixtures::share_request(cards, 0, cores) }
    })
}

/// Init containers and sidecars in any order, then at least one app container; each may ask nothing.
pub(crate) fn containers() -> impl Strategy<Value = Vec<ContainerRequest>> {
    let before = prop_oneof![Just(Role::Init), Just(Role::Sidecar)];
    let container = |role: BoxedStrategy<Role>| {
        (role, prop::option::weighted(0.7, share()))
            .prop_map(|(role, share)| ContainerRequest { role, share })
    };
    let init = prop::collection::vec(container(before.boxed()), 0..3);
    let apps = prop::collection::vec(container(Just(Role::App).boxed()), 1..3);
    (init, apps).prop_map(|(init, apps)| init.into_iter().chain(apps).collect())
}

fn choice() -> impl Strategy<Value = CardChoice> {
    let policy = prop_oneof![
        Just(CardPolicy::Binpack),
        Just(CardPolicy::Spread),
        Just(CardPolicy::Mutex),
        Just(CardPolicy::Numa),
        Just(CardPolicy::TopologyAware),
        Just(CardPolicy::LeastWaste),
    ];
    let numa = prop_oneof![3 => Just(NumaBinding::Free), 1 => Just(NumaBinding::OneNode)];
    (prop::collection::vec(policy, 1..3), numa, 0..3_u32).prop_map(|(policies, numa, slots)| {
        let choice = match policies[..] {
            [policy] => CardChoice::lone(policy, numa),
            _ => CardChoice::chain(&policies, numa),
        };
        CardChoice { weights: Weights { slots, cores: 1, memory: 2 }, ..choice }
    })
}

/// Any pod; some belong to one of two groups, and some of those shun their own.
pub(crate) fn pod() -> impl Strategy<Value = PodRequest> {
    let policy = prop_oneof![Just(NodePolicy::Binpack), Just(NodePolicy::LeastWaste)];
    (containers(), choice(), 0..4_u32, policy).prop_map(|(containers, choice, group, node_policy)| {
        let mark: Marks = [format!("group {}", group % 2).into()].into();
        PodRequest {
            choice,
            node_policy,
            shuns: if group > 1 { mark.clone() } else { Marks::default() },
            marks: mark,
            ..fixtures::request(containers)
        }
    })
}
