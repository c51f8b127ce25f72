//! What is free on one node: nodes with equal rooms are worth the same, whatever they are called.

use std::hash::{BuildHasher, Hash, Hasher};

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use crate::{
    device::CardUsage,
    scheduling::model::{
        card_kind::{CardKind, CardKinds, KindId, narrow},
        pod_shape::Portion,
    },
};

/// cpu is rounded down to whole multiples of this, in thousandths.
const CPU_STEP: i64 = 10;

/// Memory is rounded down to whole multiples of this, in MiB: nodes of one type differ by a few.
const MEMORY_STEP: i64 = 256;

/// A number drawn from a room has so many bits.
pub(super) const DRAWN_FROM_ROOM: u32 = 16;

/// What is free of one card.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RoomCard {
    /// What card it is.
    pub kind: KindId,
    /// Whether a pod is on it.
    pub used: bool,
    /// How many more pods may share it.
    pub slots: u16,
    /// Compute.
    pub cores: u32,
    /// Memory, in MiB.
    pub memory: u32,
}

/// What is free on one node.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Room {
    /// cpu, in thousandths.
    pub cpu: u32,
    /// Memory, in MiB.
    pub memory: u32,
    /// Cards, in their order.
    pub cards: SmallVec<[RoomCard; 8]>,
}

impl RoomCard {
    /// A card of which so much is in use.
    pub fn new(kind: KindId, kinds: &CardKinds, used: CardUsage) -> Self {
        let CardKind { memory, cores, slots, .. } = kinds.get(kind);
        Self {
            kind,
            used: used.slots > 0,
            slots: slots.saturating_sub(u16::try_from(used.slots).unwrap_or(u16::MAX)),
            cores: cores.saturating_sub(used.cores.get()),
            memory: memory.saturating_sub(narrow(used.memory.get())),
        }
    }

    /// Whether it takes one more share like this.
    #[inline]
    pub fn takes(&self, share: &Portion) -> bool {
        self.slots > 0
            && self.cores > 0
            && self.memory >= share.memory
            && self.cores >= share.cores
            && !(share.alone && self.used)
    }

    /// How many shares like this it takes.
    pub fn times(&self, share: &Portion) -> u32 {
        if !self.takes(share) {
            return 0;
        }
        if share.alone {
            return 1;
        }
        let times = |free: u32, each: u32| free.checked_div(each).unwrap_or(u32::MAX);
        times(self.memory, share.memory).min(times(self.cores, share.cores)).min(self.slots.into())
    }

    /// The card with one more share on it.
    #[must_use]
    #[inline]
    pub fn with(self, share: &Portion) -> Self {
        Self {
            used: true,
            slots: self.slots.saturating_sub(1),
            cores: if share.alone { 0 } else { self.cores.saturating_sub(share.cores) },
            memory: if share.alone { 0 } else { self.memory.saturating_sub(share.memory) },
            ..self
        }
    }

    /// Hashes what is free of it. Its kind does not count: which place that has depends on which node came first.
    pub(super) fn hash_amounts(&self, hasher: &mut impl Hasher) {
        let Self { kind: _, used, slots, cores, memory } = self;
        (used, slots, cores, memory).hash(hasher);
    }

    /// How much of it is free, in thousandths: the smaller part of memory and compute.
    #[inline]
    pub fn free(&self, kinds: &CardKinds) -> u32 {
        self.free_of(kinds.get(self.kind))
    }

    /// The same, of a card of this kind.
    #[inline]
    pub fn free_of(&self, kind: &CardKind) -> u32 {
        let CardKind { memory, cores, .. } = kind;
        // Numbers of 32 bits are divided faster, and are mostly large enough.
        let part = |free: u32, all: u32| {
            let all = all.max(1);
            let of_few_bits = free.checked_mul(1000).map(|thousandths| thousandths / all);
            of_few_bits.unwrap_or_else(|| narrow(u64::from(free) * 1000 / u64::from(all)))
        };
        if self.slots == 0 { 0 } else { part(self.memory, *memory).min(part(self.cores, *cores)) }
    }
}

/// As rooms have it: cpu in thousandths, and memory in MiB, of which there are so many bytes.
pub fn cpu_and_memory(cpu: i64, memory: i64) -> [u32; 2] {
    let whole = |free: i64, step: i64| narrow((free.max(0) / step * step).unsigned_abs());
    [whole(cpu, CPU_STEP), whole(memory >> 20, MEMORY_STEP)]
}

impl Room {
    /// The room of a node with so much cpu in thousandths, memory in bytes, and these cards.
    pub fn new(cpu: i64, memory: i64, cards: SmallVec<[RoomCard; 8]>, kinds: &CardKinds) -> Self {
        Self::of(cpu_and_memory(cpu, memory), cards, kinds)
    }

    /// The room with so much cpu and memory, as [`cpu_and_memory`] has it, and these cards.
    pub(super) fn of([cpu, memory]: [u32; 2], mut cards: SmallVec<[RoomCard; 8]>, kinds: &CardKinds) -> Self {
        cards.sort_unstable_by_key(|card| (kinds.rank(card.kind), *card));
        Self { cpu, memory, cards }
    }

    /// Whether all its cards are of these kinds.
    pub(super) fn is_of(&self, kinds: &CardKinds) -> bool {
        self.cards.iter().all(|card| kinds.knows(card.kind))
    }

    /// A number of [`DRAWN_FROM_ROOM`] bits drawn from what is free. It tells rooms apart in which a pod seems to cost the same.
    pub(super) fn draw(&self) -> u32 {
        let mut hasher = FixedState::default().build_hasher();
        self.cards.iter().for_each(|card| card.hash_amounts(&mut hasher));
        (self.cpu, self.memory).hash(&mut hasher);
        narrow(hasher.finish() >> (u64::BITS - DRAWN_FROM_ROOM))
    }

    /// How much of its cards is free, in thousandths of one.
    pub fn free(&self, kinds: &CardKinds) -> u32 {
        self.cards.iter().map(|card| card.free(kinds)).sum()
    }
}
