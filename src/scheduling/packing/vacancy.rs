//! What a pod would leave of a node, whichever of the node's cards it gets. It is the same for all nodes with equal rooms.
//!
//! A class keeps it for each node, so it has numbers alone; the rooms that would be left are made of them for the nodes that can win.

use std::{
    hash::{BuildHasher, Hash, Hasher},
    sync::{Arc, Mutex, PoisonError},
};

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use super::{
    Packing, alone,
    fleet::NodeSize,
    room::{DRAWN_FROM_ROOM, Room, RoomCard},
    rooms::ValuedRoom,
};
use crate::scheduling::model::{
    card_kind::{CardKinds, KindId, narrow},
    pod_shape::Portion,
};

/// A node's room before the pod, and after.
#[derive(Debug)]
pub struct Vacancy {
    /// Before.
    pub before: Arc<ValuedRoom>,
    /// How much is free of the cards before the pod, in thousandths of one.
    pub free: u32,
    /// cpu, in thousandths, and memory, in MiB, after the pod.
    pub left: [u32; 2],
    /// The cards that the pod takes.
    pub cards: TakenCards,
    /// What is left, for each of the choices that these are.
    pub after: SmallVec<[Remainder; 1]>,
    /// How large the node is when it is empty; `None`: it has no cards.
    pub size: Option<NodeSize>,
    /// What [`draw`] says of what is left.
    draw: u32,
    /// What the pod costs exactly, once that is asked.
    exact: ExactCost,
}

/// Of which cards a pod takes something.
#[derive(Clone, Debug, PartialEq)]
pub enum TakenCards {
    /// Of any one card that has so much left of it, by its kind.
    Any(SmallVec<[(KindId, Portion); 1]>),
    /// Of all of these: before and after.
    These(Box<[[RoomCard; 2]]>),
}

/// What is left of a node once the pod is there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Remainder {
    /// How much stays free of the cards, in thousandths of one.
    pub free: u32,
    /// Of which kind cards are taken, and how much, in thousandths of one; `None`: none are.
    pub taken: Option<(KindId, u32)>,
    /// How much of the node others can't have, in thousandths of one of its cards: the largest part of cards, cpu and memory.
    pub denied: u32,
    /// What it costs whatever pods may come, in millionths of a card.
    pub fixed: i64,
}

/// What a pod costs exactly, as far as it was asked.
#[derive(Debug, Default)]
struct ExactCost(Mutex<Option<Box<KnownCost>>>);

#[derive(Debug)]
struct KnownCost {
    /// The version of what rooms are worth by which it was found.
    version: u64,
    /// Millionths of a card.
    cost: i64,
    /// The rooms that would be left: they stay known as long as this is.
    rooms: Rooms,
}

type Rooms = SmallVec<[Arc<ValuedRoom>; 1]>;

/// Of the choices between cards so many are valued by all sequences.
const LAST: usize = 2;

/// Of the number drawn from a vacancy, so many bits are drawn from what is left; those above, from the room before the pod.
const DRAWN_FROM_LEFT: u32 = 4;

/// A number drawn from a vacancy has so many bits: in sums of scores more would be lost.
const DRAWN: u32 = DRAWN_FROM_ROOM + DRAWN_FROM_LEFT;

/// A number drawn from what a pod leaves of a room: cpu and memory, and these cards that it takes, before and after. It tells vacancies of one room apart that
/// seem to cost the same.
pub(super) fn draw(left: [u32; 2], taken: &[[RoomCard; 2]]) -> u32 {
    let mut hasher = FixedState::default().build_hasher();
    taken.as_flattened().iter().for_each(|card| card.hash_amounts(&mut hasher));
    left.hash(&mut hasher);
    narrow(hasher.finish() >> (u64::BITS - DRAWN_FROM_LEFT))
}

/// A cost in millionths of a card with both numbers, which are a part of one: that of the room has the higher digits.
#[expect(clippy::cast_precision_loss, reason = "costs are far below 2^52")]
pub(super) fn drawn(cost: i64, from_room: u32, from_left: u32) -> f64 {
    cost as f64 + f64::from((from_room << DRAWN_FROM_LEFT) | from_left) / f64::from(1 << DRAWN)
}

impl TakenCards {
    /// Each choice between the cards of a room, where there is one: the card before and after the pod, and how much of it others can't have then, in
    /// thousandths. Cards that are alike are one choice.
    pub fn choices<'a>(&'a self, room: &'a Room) -> impl Iterator<Item = ([RoomCard; 2], u32)> + 'a {
        let portions = match self {
            Self::Any(portions) => portions.as_slice(),
            Self::These(_) => &[],
        };
        // The cards of a room are in order, so equal ones stand together.
        let alike = room.cards.chunk_by(|one, other| one == other);
        alike.filter_map(|alike| {
            let card = alike.first()?;
            let (_, portion) = portions.iter().find(|(kind, _)| *kind == card.kind)?;
            card.takes(portion).then(|| ([*card, card.with(portion)], portion.worth))
        })
    }
}

impl Vacancy {
    /// The vacancy on a node of this size with this room, of whose cards so much is free, in thousandths of one. `left` are cpu, in thousandths, and memory,
    /// in MiB, after the pod; `cards` has the choices between cards, and `after` what each of them leaves.
    pub fn new(
        (before, free, size): (Arc<ValuedRoom>, u32, Option<NodeSize>),
        left: [u32; 2],
        cards: TakenCards,
        after: SmallVec<[Remainder; 1]>,
    ) -> Self {
        let taken = if let TakenCards::These(taken) = &cards { &**taken } else { &[] };
        let draw = draw(left, taken);
        Self { before, free, left, cards, after, size, draw, exact: ExactCost::default() }
    }

    /// Whether both find as much room and leave as much.
    pub fn is_alike(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.before, &other.before)
            && (self.size, self.left, &self.cards, &self.after)
                == (other.size, other.left, &other.cards, &other.after)
    }

    /// What each of the choices costs that may be the best, by its place, in millionths of a card.
    pub fn costs(&self, packing: &Packing) -> SmallVec<[(usize, i64); LAST]> {
        self.costs_of(&self.rooms(packing), packing)
    }

    /// What the best choice costs, in millionths of a card.
    pub fn cost(&self, packing: &Packing) -> i64 {
        let ExactCost(known) = &self.exact;
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.as_ref().filter(|known| known.version == packing.version()) {
            return known.cost;
        }
        let rooms = known.take().map_or_else(|| self.rooms(packing), |known| known.rooms);
        let costs = self.costs_of(&rooms, packing);
        let cost = costs.into_iter().map(|(_, cost)| cost).min().unwrap_or(0);
        *known = Some(Box::new(KnownCost { version: packing.version(), cost, rooms }));
        cost
    }

    /// What the best choice would cost if a room were worth as much less as less is free of its cards, in millionths of a card. To that is added a part of
    /// one millionth that is drawn from the vacancy. Any number of vacancies may come to the same cost; with the part, they are compared one by one, and only
    /// the first few have to be valued exactly, which takes long.
    pub fn rough_cost(&self, packing: &Packing) -> f64 {
        let rough = RoughCost::new(&self.before, self.free, self.size, packing);
        let cost = self.after.iter().map(|left| rough.of(left, packing)).min().unwrap_or(0);
        drawn(cost, self.before.draw, self.draw)
    }

    /// The room that each choice leaves.
    fn rooms(&self, packing: &Packing) -> Rooms {
        let (room, kinds) = (&self.before.room, packing.kinds());
        let left = |taken: &[[RoomCard; 2]]| packing.valued(self.room_after(taken, kinds));
        match &self.cards {
            TakenCards::These(taken) => Rooms::from_iter([left(taken)]),
            any @ TakenCards::Any(_) => any.choices(room).map(|(taken, _)| left(&[taken])).collect(),
        }
    }

    /// What shapes could take alone of each of these rooms, which are those that choices leave.
    fn alone(&self, rooms: &[Arc<ValuedRoom>], packing: &Packing) -> SmallVec<[i64; 8]> {
        let room = &self.before.room;
        let choices: SmallVec<[_; 8]> = self.cards.choices(room).map(|(taken, _)| taken).collect();
        let of_choices = alone::of_choices(room, self.left, &choices, &packing.mix);
        of_choices.unwrap_or_else(|| rooms.iter().map(|room| alone::all(&room.room, &packing.mix)).collect())
    }

    fn room_after(&self, taken: &[[RoomCard; 2]], kinds: &CardKinds) -> Room {
        let mut cards = self.before.room.cards.clone();
        for [before, after] in taken {
            if let Some(card) = cards.iter_mut().find(|card| *card == before) {
                *card = *after;
            }
        }
        Room::of(self.left, cards, kinds)
    }

    /// Where there are more choices than [`LAST`], they are compared by a part of the sequences, and those alone that come first are valued by all.
    fn costs_of(&self, rooms: &[Arc<ValuedRoom>], packing: &Packing) -> SmallVec<[(usize, i64); LAST]> {
        let before = packing.worth(&self.before);
        let of_size = self.size.map_or(0, |size| packing.pressure().of_size(size));
        let cost = |at: usize, worth: i64| self.after[at].cost([before, worth], of_size, packing);
        let mut choices: SmallVec<[usize; 8]> = (0..rooms.len().min(self.after.len())).collect();
        if choices.len() > LAST {
            let mut known: Option<SmallVec<[i64; 8]>> = None;
            let mut alone = |at: usize| {
                let known = known.get_or_insert_with(|| self.alone(rooms, packing));
                known[at]
            };
            choices.sort_by_cached_key(|at| cost(*at, packing.worth_by_few(&rooms[*at], || alone(*at))));
            choices.truncate(LAST);
        }
        choices.into_iter().map(|at| (at, cost(at, packing.worth(&rooms[at])))).collect()
    }
}

impl Remainder {
    /// What it costs where the room is worth so much before the pod and after, in millionths of a card; `of_size` is how much is asked of nodes of
    /// this size, as [`Pressure::of_size`](super::pressure::Pressure::of_size) has it.
    fn cost(&self, [before, after]: [i64; 2], of_size: u64, packing: &Packing) -> i64 {
        // Thousandths of a card, and millionths of what there is.
        let sought = |thousandths: u32, pressure: u64| {
            i64::try_from(u64::from(thousandths).saturating_mul(pressure) / 1000).unwrap_or(i64::MAX / 8)
        };
        let of_kind = |(kind, thousandths)| sought(thousandths, packing.pressure().of_kind(kind));
        before - after + self.fixed + self.taken.map_or(0, of_kind) + sought(self.denied, of_size)
    }
}

/// What pods would cost on a node if its room were worth as much less as less is free of its cards.
#[derive(Clone, Copy, Debug)]
pub struct RoughCost {
    /// What the room is worth before the pod, in millionths of a card.
    before: i64,
    /// How much is free of its cards then, in thousandths of one.
    free: u32,
    /// How much is asked of nodes of its size.
    of_size: u64,
}

impl RoughCost {
    /// By this room, of whose cards so much is free, of a node of this size.
    pub fn new(before: &ValuedRoom, free: u32, size: Option<NodeSize>, packing: &Packing) -> Self {
        let of_size = size.map_or(0, |size| packing.pressure().of_size(size));
        Self { before: packing.worth(before), free, of_size }
    }

    /// The cost where this is left, in millionths of a card.
    pub fn of(&self, left: &Remainder, packing: &Packing) -> i64 {
        let after = self.before * i64::from(left.free) / i64::from(self.free.max(1));
        left.cost([self.before, after], self.of_size, packing)
    }
}
