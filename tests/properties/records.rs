//! What Berth writes on a pod reads back as it was meant, in each dialect.

use std::{collections::BTreeSet, num::NonZeroU32};

use berth::{
    config::Config,
    device::{Assignment, ContainerRequest, ContainerShares, Cores, MiB, Role, Share, Slice, SlicePlacement},
    dialect::{
        Dialect,
        gpushare::{GpuShare, ShareUnit},
        hami::{self, Hami},
        volcano::{self, Volcano},
    },
    object::Pod,
};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::worlds::containers;

/// HAMi by default.
pub(crate) fn hami() -> Hami {
    Hami::new(Config::default().dialects.hami.settings())
}

/// Volcano by default.
pub(crate) fn volcano() -> Volcano {
    Volcano::new(Config::default().dialects.volcano.settings())
}

/// Every other vendor that can be served.
pub(crate) fn vendors() -> Vec<std::sync::Arc<dyn Dialect>> {
    const ALL: &str =
        "dialects: {hami: {enable-ascend: true, enable-iluvatar: true, cambricon: {}, amd: {}, biren: {}}}";
    let (config, _) = berth::config::Config::parse(ALL, "berth.yaml").unwrap();
    let dialects = config.dialects();
    let of_cards = |dialect: &&std::sync::Arc<dyn Dialect>| {
        let by_type = dialect.name().as_str() == berth::dialect::koordinator::NAME;
        matches!(dialect.mode(), berth::dialect::SharingMode::Vendor(_)) && !by_type
    };
    dialects.iter().filter(of_cards).cloned().collect()
}

fn numbered() -> impl Strategy<Value = Option<Slice>> {
    let slice = ("[a-z0-9]{1,8}", 0..20_u32);
    prop::option::of(slice.prop_map(|(group, position)| Slice::Numbered { group: group.into(), position }))
}

fn placed() -> impl Strategy<Value = Option<Slice>> {
    let slice = ("[1-7]g\\.[0-9]{1,2}gb", 0..8_u32, 1..8_u32);
    prop::option::of(slice.prop_map(|(profile, start, size)| Slice::Placed {
        profile: profile.into(),
        placement: SlicePlacement { start, size },
    }))
}

/// Shares of these slices for each container that asks.
fn given(
    asked: &[ContainerRequest],
    slices: BoxedStrategy<Option<Slice>>,
) -> impl Strategy<Value = Assignment> + use<> {
    let share = ("GPU-[0-9a-f]{4}", 0..u64::from(i32::MAX.unsigned_abs()), 0..1000_u32, slices)
        .prop_map(|(card, memory, cores, slice)| Share {
            card: card.into(),
            memory: MiB::new(memory),
            cores: Cores::new(cores),
            slice: slice.map(Box::new),
        })
        .boxed();
    let container = |asked: &ContainerRequest| {
        let role = asked.role;
        let count = asked.share.map_or(0, |share| share.cards.get() as usize);
        prop::collection::vec(share.clone(), count).prop_map(move |shares| ContainerShares { role, shares })
    };
    let containers: Vec<_> = asked.iter().map(container).collect();
    containers.prop_map(|containers| Assignment { containers, ..Assignment::default() })
}

/// A pod with these containers and annotations.
fn pod(asked: &[ContainerRequest], limit: &str, annotations: &Value) -> Pod {
    let of = |wanted: fn(Role) -> bool| -> Vec<Value> {
        let chosen = asked.iter().filter(|container| wanted(container.role));
        chosen.map(|container| one(container, limit)).collect()
    };
    let init = of(|role| role != Role::App);
    let apps = of(|role| role == Role::App);
    let spec = json!({"initContainers": init, "containers": apps});
    serde_json::from_value(json!({"metadata": {"name": "pod", "annotations": annotations}, "spec": spec}))
        .unwrap()
}

fn one(container: &ContainerRequest, limit: &str) -> Value {
    let limits = container.share.map_or_else(|| json!({}), |share| json!({limit: share.cards.to_string()}));
    let mut value = json!({"name": "c", "resources": {"limits": limits}});
    if container.role == Role::Sidecar {
        value["restartPolicy"] = json!("Always");
    }
    value
}

fn read_back(
    dialect: &dyn Dialect,
    asked: &[ContainerRequest],
    limit: &str,
    given: &Assignment,
) -> Assignment {
    let record = dialect.record(given, "node", Timestamp::UNIX_EPOCH);
    let pod = pod(asked, limit, &serde_json::to_value(&record.annotations).unwrap());
    let read = dialect.assignment(&pod).unwrap().map(|carried| carried.assignment).unwrap_or_default();
    // The time that agents serve pods by is read too, and compared elsewhere.
    Assignment { written: None, ..read }
}

/// Containers of which one app container asks: what Volcano's plugins serve.
fn one_asks() -> impl Strategy<Value = Vec<ContainerRequest>> {
    (containers(), any::<prop::sample::Index>()).prop_map(|(mut containers, index)| {
        let apps: Vec<usize> = (0..containers.len()).filter(|&at| containers[at].role == Role::App).collect();
        let chosen = *index.get(&apps);
        for (at, container) in containers.iter_mut().enumerate() {
            container.share = container.share.filter(|_| at == chosen);
        }
        let ask = berth::device::ShareRequest {
            cards: NonZeroU32::MIN,
            memory: berth::device::MemoryRequest::Exact(MiB::new(1)),
            cores: berth::device::CoreRequest::NONE,
        };
        containers[chosen].share.get_or_insert(ask);
        containers
    })
}

proptest! {
    #[test]
    fn hami_nvidia(
        (asked, given) in containers().prop_flat_map(|asked| {
            let slices = prop_oneof![Just(None), placed(), numbered()];
            (Just(asked.clone()), given(&asked, slices.boxed()))
        }),
    ) {
        prop_assert_eq!(read_back(&hami(), &asked, hami::names::COUNT, &hami_order(given.clone())), hami_order(given));
    }

    #[test]
    fn of_every_vendor(
        (asked, given) in containers().prop_flat_map(|asked| (Just(asked.clone()), given(&asked, Just(None).boxed()))),
        vendor in prop::sample::select(vendors()),
    ) {
        let count = vendor.resources()[0].to_owned();
        prop_assert_eq!(read_back(vendor.as_ref(), &asked, &count, &given), given);
    }

    #[test]
    fn volcano_vgpu(
        (asked, given) in one_asks().prop_flat_map(|asked| (Just(asked.clone()), given(&asked, numbered().boxed()))),
    ) {
        prop_assert_eq!(read_back(&volcano(), &asked, volcano::names::COUNT, &given), given);
    }

    #[test]
    fn cards_by_number(asked in one_asks(), cards in prop::collection::btree_set(0..16_u32, 1..4)) {
        let settings = berth::dialect::gpushare::GpuShareSettings { unit: ShareUnit::Cards, memory_factor: 1, lock: None };
        let share = |card: &u32| Share {
            card: card.to_string().into(),
            memory: MiB::default(),
            cores: Cores::WHOLE,
            slice: None,
        };
        let container = |asked: &ContainerRequest| ContainerShares {
            role: asked.role,
            shares: if asked.share.is_some() { cards.iter().map(share).collect() } else { vec![] },
        };
        let given = Assignment { containers: asked.iter().map(container).collect(), ..Assignment::default() };
        let back = read_back(&GpuShare::new(settings), &asked, volcano::names::GPU_NUMBER, &given);
        prop_assert_eq!(back, given);
    }
}

/// Slices are told card by card in order, so of one card's shares those with a placed slice come first.
fn hami_order(mut given: Assignment) -> Assignment {
    let mut plain = BTreeSet::new();
    for share in given.containers.iter_mut().flat_map(|container| &mut container.shares) {
        if plain.contains(&share.card) && matches!(share.slice.as_deref(), Some(Slice::Placed { .. })) {
            share.slice = None;
        }
        if share.slice.is_none() {
            plain.insert(share.card.clone());
        }
    }
    given
}
