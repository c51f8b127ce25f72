//! Nodes of many sizes, and a mix of pods of many shapes, for pods that go where they leave least of no use.

use std::{collections::BTreeMap, sync::Arc};

use berth::{
    device::{
        Allocation, Answer, CardPolicy, CoreRequest, Cores, MemoryRequest, MiB, ModelFilter, NodePolicy,
    },
    object::Quantity,
    scheduling::{
        Ask, ResourceAmounts,
        model::pod_shape::{CardShape, PodShape, ShareShape},
        packing::census::Weighed,
    },
};

use super::world::PROFILE;
use crate::fixtures;

/// So many shapes of pods come.
const SHAPES: u32 = 256;

fn amounts(cpu: usize, memory: usize) -> ResourceAmounts {
    in_kib(cpu, memory << 20)
}

fn in_kib(cpu: usize, memory: usize) -> ResourceAmounts {
    let quantities = [("cpu", format!("{cpu}")), ("memory", format!("{memory}Ki"))];
    let quantities = quantities.map(|(name, text)| (name.to_owned(), Quantity::from(text.as_str())));
    ResourceAmounts::read(quantities.iter().map(|(name, one)| (name, one))).unwrap()
}

/// What is there of cpu and memory: 20 sizes.
pub(super) fn size(node: usize) -> ResourceAmounts {
    amounts(64 + node % 5 * 8, 256 + node % 4 * 64)
}

/// The same, but that each node has a few KiB of memory more than another.
pub(super) fn unequal_size(node: usize) -> ResourceAmounts {
    in_kib(64 + node % 5 * 8, ((256 + node % 4 * 64) << 20) + node)
}

/// A part of a card of this node: 20 sizes.
pub(super) fn share(node: usize, index: usize) -> Vec<Allocation> {
    let memory = 4_096 * (1 + node / 20 % 20) as u64;
    let share = fixtures::share(&format!("GPU-{node}-{index}"), memory.min(81_920), 10);
    vec![fixtures::allocation(PROFILE, share, Answer::Awaited)]
}

/// A part of a card of this node: any number of whole GiB.
pub(super) fn part(node: usize, index: usize) -> Vec<Allocation> {
    // Odd factors and high bits: no pattern is left.
    let mixed = ((node * 8 + index + 1) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let share = fixtures::share(&format!("GPU-{node}-{index}"), 1_024 * (1 + mixed % 79), 10);
    vec![fixtures::allocation(PROFILE, share, Answer::Awaited)]
}

fn shape(number: u32) -> Arc<PodShape> {
    let whole = number.is_multiple_of(4);
    let memory = if whole { 81_920 } else { 1_024 * u64::from(1 + number % 70) };
    let share = ShareShape {
        profile: PROFILE.into(),
        memory: MemoryRequest::Exact(MiB::new(memory)),
        cores: CoreRequest::Exact(Cores::new(if whole { 100 } else { 0 })),
        alone: false,
        models: ModelFilter::default(),
        modes: None,
        typed: false,
        devices: BTreeMap::new(),
    };
    let count = if whole { 1 << (number % 16 / 4) } else { 1 };
    let (cpu, memory) = (1_000 * (1 + number % 16), 1_024 * (1 + number % 64));
    Arc::new(PodShape { cpu, memory, cards: CardShape { count, share } })
}

/// The shapes that come, some of them often.
pub(super) fn shapes() -> Vec<Weighed> {
    (0..SHAPES).map(|number| (shape(number), 1 << (2 * (number % 5)))).collect()
}

/// One of the shapes, with another weight each time.
pub(super) fn another(round: usize) -> Weighed {
    let round = u32::try_from(round).unwrap_or(u32::MAX);
    (shape(round * 31 % SHAPES), if (round / SHAPES).is_multiple_of(2) { 2 } else { 8 })
}

/// What a pod asks for that wants so much memory of a card, in MiB.
pub(super) fn ask(memory: u64) -> Ask {
    let mut request = fixtures::request_of_one(fixtures::share_request(1, memory, 1));
    request.node_policy = NodePolicy::LeastWaste;
    request.choice = CardPolicy::LeastWaste.into();
    let ask = fixtures::ask_for(fixtures::profile(PROFILE), request);
    Ask { resources: Arc::new(amounts(2, 4)), policy: NodePolicy::LeastWaste, ..ask }
}
