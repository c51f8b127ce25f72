//! What is free on a node, in numbers that are found out once for all pods: from them follows the least that a pod can cost there, so that only
//! nodes that may win are judged.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{
    Packing,
    fleet::NodeSize,
    room::{Room, RoomCard},
    rooms::ValuedRoom,
    vacancy::{RoughCost, draw, drawn},
};
use crate::scheduling::model::{card_kind::KindId, pod_shape::Portion};

/// What is free on a node.
#[derive(Clone, Debug)]
pub struct FreeRoom {
    /// cpu in thousandths and memory in MiB that pods may be given, as rooms have it.
    pub allocatable: [u32; 2],
    /// What of that no pod has requested; below 0 where more is requested than there is. Memory is rounded up.
    pub left: [i64; 2],
    /// Whether it has as many pods as it may have.
    pub is_full: bool,
    /// Whether a plugin may take its cards for other cards than rooms have them: under two names, or without compute.
    pub is_unsure: bool,
    /// How many cards it has.
    pub cards: usize,
    /// How much is free of them, in thousandths of one.
    pub free: u32,
    /// Those of which a pod may have something, in the order of rooms; of cards that are alike one.
    pub open: SmallVec<[OpenCard; 8]>,
    /// By what costs are guessed roughly.
    pub rough: RoughCost,
    room: Arc<ValuedRoom>,
    size: Option<NodeSize>,
}

/// A card of which a pod may have something.
#[derive(Clone, Copy, Debug)]
pub struct OpenCard {
    /// The card.
    pub card: RoomCard,
    /// How much of it is free, in thousandths.
    pub free: u16,
    /// How many cards are like it.
    pub alike: u16,
}

/// What a pod asks of a node's room.
#[derive(Clone, Debug)]
pub struct AskedRoom {
    /// cpu in thousandths and memory in bytes.
    pub requested: [i64; 2],
    /// Of how many cards it asks a share.
    pub cards: u32,
    /// Whether it takes whichever card is best, as [`TakenCards::Any`](super::vacancy::TakenCards::Any) has it.
    pub any: bool,
    /// Whether nodes without such cards may serve it by a claim of devices.
    pub by_claim: bool,
    /// What a share takes of a card, by the place of the card's kind; `None`: such a card does not serve it.
    pub shares: Vec<Option<AskedShare>>,
}

/// What a share takes of a card of one kind.
#[derive(Clone, Copy, Debug)]
pub struct AskedShare {
    /// Memory, in MiB: a card that has less does not serve it, whatever else is asked.
    pub memory: u32,
    /// All that it takes, as rooms have it; `None`: that is not known.
    pub portion: Option<Portion>,
    /// Whether a card that has less compute than that does not serve it either.
    pub by_compute: bool,
}

/// What is known of the cost of a pod on a node before the node is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CostEstimate {
    /// The node does not fit.
    NoRoom,
    /// If it fits, it costs so many millionths of a card at least, as long as rooms are guessed roughly.
    AtLeast(f64),
    /// If it fits, it costs exactly that, and the pod leaves as much of it as of every node with an equal room that fits.
    Exactly(f64),
    /// Nothing.
    Unknown,
}

/// What tells a room that is free from others.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RoomKey {
    allocatable: [u32; 2],
    left: [i64; 2],
    flags: [bool; 2],
    /// The address of the room, which no other has as long as this one is there.
    room: usize,
    size: Option<NodeSize>,
}

/// Memory is rounded up to whole multiples of this, in bytes, so that nodes of one type have as much free.
const STEP: i64 = 256 << 20;

impl FreeRoom {
    /// What is free on a node with this room. Pods may be given so much of its cpu and memory, as rooms have it; so much is left, in thousandths and bytes.
    pub fn new(
        room: Room,
        size: Option<NodeSize>,
        (allocatable, [cpu, memory]): ([u32; 2], [i64; 2]),
        packing: &Packing,
    ) -> Self {
        let (kinds, cards) = (packing.kinds(), room.cards.len());
        let narrow = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
        let alike = room.cards.chunk_by(|one, other| one == other);
        let open = alike.filter_map(|alike| {
            let card = alike.first().filter(|card| card.slots > 0)?;
            let free = u16::try_from(card.free(kinds)).unwrap_or(u16::MAX);
            Some(OpenCard { card: *card, free, alike: narrow(alike.len()) })
        });
        let (open, free) = (open.collect(), room.free(kinds));
        let room = packing.valued(room);
        let rough = RoughCost::new(&room, free, size, packing);
        let left = [cpu, memory.div_euclid(STEP).saturating_add(1).saturating_mul(STEP)];
        Self { allocatable, left, is_full: false, is_unsure: false, cards, free, open, rough, room, size }
    }

    /// What tells it from others.
    pub fn key(&self) -> RoomKey {
        let Self { allocatable, left, is_full, is_unsure, room, size, .. } = self;
        RoomKey {
            allocatable: *allocatable,
            left: *left,
            flags: [*is_full, *is_unsure],
            room: Arc::as_ptr(room).addr(),
            size: *size,
        }
    }

    /// cpu in thousandths and memory in MiB that are left, as rooms have it.
    pub fn room_left(&self) -> [u32; 2] {
        [self.room.room.cpu, self.room.room.memory]
    }

    /// This cost of a pod that leaves so much cpu and memory, whichever one card it takes, with what is drawn, as
    /// [`Vacancy::rough_cost`](super::vacancy::Vacancy::rough_cost) has it.
    pub fn drawn(&self, cost: i64, left: [u32; 2]) -> f64 {
        drawn(cost, self.room.draw, draw(left, &[]))
    }

    /// As [`Self::drawn`], where it is not known which cards the pod takes: no more than that.
    pub fn least_drawn(&self, cost: i64) -> f64 {
        drawn(cost, self.room.draw, 0)
    }

    /// The kinds of its cards, those included of which a pod can have nothing.
    pub fn kinds(&self) -> impl Iterator<Item = KindId> + '_ {
        self.room.room.cards.iter().map(|card| card.kind)
    }

    /// Takes in that rooms are worth something else.
    pub fn value(&mut self, packing: &Packing) {
        self.rough = RoughCost::new(&self.room, self.free, self.size, packing);
    }
}

impl AskedRoom {
    /// What a share takes of a card of this kind.
    pub fn share(&self, kind: KindId) -> Option<&AskedShare> {
        self.shares.get(kind.place())?.as_ref()
    }
}
