//! What a pod would leave of a node, whichever of the node's cards it gets. It is the same for all nodes with equal rooms.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use smallvec::SmallVec;

use super::{
    Packing,
    fleet::NodeSize,
    room::{Room, RoomCard},
    rooms::ValuedRoom,
};
use crate::scheduling::model::card_kind::{CardKinds, KindId};

/// A node's room before the pod, and after.
#[derive(Debug)]
pub struct Vacancy {
    /// Before.
    pub before: Arc<ValuedRoom>,
    /// How much is free of the cards before the pod, in thousandths of one.
    pub free: u32,
    /// After, for each of the cards between which there is a choice.
    pub after: SmallVec<[Remainder; 1]>,
    /// How large the node is when it is empty; `None`: it has no cards.
    pub size: Option<NodeSize>,
    /// What the pod costs, in millionths of a card, with the version of what rooms are worth by which that was found.
    cost: Mutex<Option<(u64, i64)>>,
}

/// What is left of a node once the pod is there.
#[derive(Debug)]
pub struct Remainder {
    /// The part of the room that is left.
    pub part: RoomPart,
    /// How much stays free of the cards, in thousandths of one.
    pub free: u32,
    /// Of which kind cards are taken, and how much, in thousandths of one; `None`: none are.
    pub taken: Option<(KindId, u32)>,
    /// How much of the node others can't have, in thousandths of one of its cards: the largest part of cards, cpu and memory.
    pub denied: u32,
    /// What it costs whatever pods may come, in millionths of a card.
    pub fixed: i64,
    /// The room that is left, once it is asked what that is worth.
    room: OnceLock<Arc<ValuedRoom>>,
}

/// What a pod leaves of a room.
#[derive(Clone, Debug, PartialEq)]
pub struct RoomPart {
    /// cpu, in thousandths, and memory, in MiB.
    pub left: [u32; 2],
    /// The cards of which the pod takes something: before and after.
    pub cards: SmallVec<[[RoomCard; 2]; 1]>,
}

impl RoomPart {
    fn of(&self, whole: &Room, kinds: &CardKinds) -> Room {
        let mut cards = whole.cards.clone();
        for [before, after] in &self.cards {
            if let Some(card) = cards.iter_mut().find(|card| *card == before) {
                *card = *after;
            }
        }
        Room::of(self.left, cards, kinds)
    }
}

impl Remainder {
    /// This part of the room, with so much free, taken and denied, and these fixed costs.
    pub fn new(part: RoomPart, free: u32, taken: Option<(KindId, u32)>, denied: u32, fixed: i64) -> Self {
        Self { part, free, taken, denied, fixed, room: OnceLock::new() }
    }

    fn is_alike(&self, other: &Self) -> bool {
        let values = |one: &Self| (one.taken, one.denied, one.fixed);
        values(self) == values(other) && self.part == other.part
    }
}

impl Vacancy {
    /// A node's room before the pod, with so much free of its cards, and after.
    pub fn new(
        before: Arc<ValuedRoom>,
        free: u32,
        after: SmallVec<[Remainder; 1]>,
        size: Option<NodeSize>,
    ) -> Self {
        Self { before, free, after, size, cost: Mutex::default() }
    }

    /// Whether both find as much room and leave as much.
    pub fn is_alike(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.before, &other.before)
            && self.size == other.size
            && self.after.len() == other.after.len()
            && self.after.iter().zip(&other.after).all(|(one, other)| one.is_alike(other))
    }

    /// What each choice costs, in millionths of a card.
    pub fn costs<'a>(&'a self, packing: &'a Packing) -> impl Iterator<Item = i64> + 'a {
        self.costs_with(packing, move |left, _| {
            let described = || packing.valued(left.part.of(&self.before.room, packing.kinds()));
            packing.worth(left.room.get_or_init(described))
        })
    }

    /// What the best choice costs, in millionths of a card.
    pub fn cost(&self, packing: &Packing) -> i64 {
        let mut known = self.cost.lock().unwrap_or_else(PoisonError::into_inner);
        match *known {
            Some((version, cost)) if version == packing.version() => cost,
            _ => {
                let cost = self.costs(packing).min().unwrap_or(0);
                *known = Some((packing.version(), cost));
                cost
            }
        }
    }

    /// What the best choice would cost if a room were worth as much less as less is free of its cards, in millionths of a card.
    pub fn rough_cost(&self, packing: &Packing) -> i64 {
        let part = |left: &Remainder, worth: i64| worth * i64::from(left.free) / i64::from(self.free.max(1));
        self.costs_with(packing, part).min().unwrap_or(0)
    }

    /// What each choice costs where what it leaves is worth what `worth` says, which is given what the room is worth before.
    fn costs_with<'a>(
        &'a self,
        packing: &'a Packing,
        worth: impl Fn(&Remainder, i64) -> i64 + 'a,
    ) -> impl Iterator<Item = i64> + 'a {
        let before = packing.worth(&self.before);
        let of_size = self.size.map_or(0, |size| packing.pressure().of_size(size));
        // Thousandths of a card, and millionths of what there is.
        let sought = |thousandths: u32, pressure: u64| {
            i64::try_from(u64::from(thousandths).saturating_mul(pressure) / 1000).unwrap_or(i64::MAX / 8)
        };
        self.after.iter().map(move |left| {
            let of_kind = left
                .taken
                .map_or(0, |(kind, thousandths)| sought(thousandths, packing.pressure().of_kind(kind)));
            before - worth(left, before) + left.fixed + of_kind + sought(left.denied, of_size)
        })
    }
}
