//! What rooms are worth, found once for each and kept: most of it stays known when the mix changes.

use std::{
    borrow::Borrow,
    collections::HashSet,
    hash::{Hash, Hasher},
    sync::{Arc, Mutex, PoisonError},
};

use foldhash::fast::FixedState;

use super::{
    alone,
    fill::{FillableRoom, Filled},
    mix::{Mix, REMEMBERED, SEQUENCES},
    room::Room,
};
use crate::scheduling::model::card_kind::CardKinds;

/// So many rooms are kept.
const KEPT: usize = 1 << 15;

/// What is known of a room.
#[derive(Clone, Copy, Debug, Default)]
struct Valuation {
    /// The version of the mix for which it is known; 0: not at all.
    version: u64,
    /// What pods of each sequence take of it, where that is known.
    filled: [Filled; SEQUENCES],
    /// A bit for each sequence: whether that is known.
    known: Sequences,
    /// What each shape could take alone, as [`alone::all`] has it.
    alone: i64,
}

/// A bit for each sequence.
type Sequences = u16;

/// Every sequence.
const ALL: Sequences = Sequences::MAX >> (Sequences::BITS as usize - SEQUENCES);

/// With so many sequences more a room is filled to learn more of what it is worth.
const STEP: usize = 2;

/// What a room is worth, as far as that is known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Worth {
    /// No more than this, in millionths of a card.
    pub most: i64,
    /// Whether it is exactly that.
    pub is_exact: bool,
}

/// What is known of a room by the mix that counts and, while that is renewed, by the next one.
#[derive(Debug, Default)]
struct Valuations {
    both: [Valuation; 2],
    /// The latest version of the mix for which somebody asked.
    asked: u64,
}

/// A room, with what it is worth as far as that is known.
#[derive(Debug)]
pub struct ValuedRoom {
    /// The room.
    pub room: Room,
    known: Mutex<Valuations>,
}

/// The rooms that were valued.
#[derive(Debug, Default)]
pub(super) struct Rooms(Mutex<HashSet<ByRoom, FixedState>>);

/// A valued room, found by what it has.
#[derive(Debug)]
struct ByRoom(Arc<ValuedRoom>);

impl Rooms {
    /// The room, with what it is worth as far as that is known.
    pub(super) fn valued(&self, room: Room) -> Arc<ValuedRoom> {
        let mut rooms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = rooms.get(&room) {
            return known.0.clone();
        }
        if rooms.len() >= KEPT {
            // Those that nothing refers to are gone; what classes refer to is kept.
            rooms.retain(|room| Arc::strong_count(&room.0) > 1);
            if rooms.len() >= KEPT {
                rooms.clear();
            }
        }
        let valued = Arc::new(ValuedRoom { room, known: Mutex::default() });
        rooms.insert(ByRoom(valued.clone()));
        valued
    }

    /// The rooms that something refers to.
    pub(super) fn in_use(&self) -> Vec<Arc<ValuedRoom>> {
        let rooms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.iter().filter(|room| Arc::strong_count(&room.0) > 1).map(|room| room.0.clone()).collect()
    }
}

impl Borrow<Room> for ByRoom {
    fn borrow(&self) -> &Room {
        &self.0.room
    }
}

impl Hash for ByRoom {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.room.hash(state);
    }
}

impl PartialEq for ByRoom {
    fn eq(&self, other: &Self) -> bool {
        self.0.room == other.0.room
    }
}

impl Eq for ByRoom {}

impl ValuedRoom {
    /// What the room is worth, in millionths of a card.
    pub(super) fn worth(&self, mix: &Mix, kinds: &CardKinds) -> i64 {
        self.look(mix, kinds, |valuation| valuation.fill(ALL, &self.room, mix, kinds)).most
    }

    /// What the room is worth, as far as that is known.
    pub(super) fn known_worth(&self, mix: &Mix, kinds: &CardKinds) -> Worth {
        self.look(mix, kinds, |_| ())
    }

    /// What the room is worth, of which more is found out than is known.
    pub(super) fn narrowed_worth(&self, mix: &Mix, kinds: &CardKinds) -> Worth {
        self.look(mix, kinds, |valuation| {
            let next = valuation.unknown();
            valuation.fill(next, &self.room, mix, kinds);
        })
    }

    fn look(&self, mix: &Mix, kinds: &CardKinds, find_out: impl FnOnce(&mut Valuation)) -> Worth {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.asked = known.asked.max(mix.version);
        let carried = |known: &Valuations| known.before(mix.version).carried(&self.room, mix);
        let mut valuation = known.of(mix.version).copied().unwrap_or_else(|| carried(&known));
        let before = valuation.known;
        find_out(&mut valuation);
        if valuation.known != before || known.of(mix.version).is_none() {
            known.keep(valuation);
        }
        valuation.worth(&self.room, mix, kinds)
    }

    /// Whether it is known what the room is worth by this mix.
    #[cfg(test)]
    pub(super) fn is_valued_by(&self, mix: &Mix) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.of(mix.version).is_some_and(|valuation| valuation.known == ALL)
    }

    /// Finds out for the next mix what is known for the last one, if a decision has asked for the room lately.
    pub(super) fn prepare(&self, mix: &Mix, kinds: &CardKinds) {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let before = {
            let known = known();
            let is_asked = known.asked + REMEMBERED as u64 > mix.version;
            if !is_asked || known.of(mix.version).is_some() {
                return;
            }
            known.before(mix.version)
        };
        // Meanwhile a decision may ask what the room is worth by the mix that counts.
        let mut found = before.carried(&self.room, mix);
        found.fill(before.known, &self.room, mix, kinds);
        known().keep(found);
    }
}

impl Valuations {
    fn of(&self, version: u64) -> Option<&Valuation> {
        self.both.iter().find(|known| known.version == version)
    }

    /// The latest of those that are older than this version.
    fn before(&self, version: u64) -> Valuation {
        let older = self.both.iter().filter(|known| known.version < version);
        older.max_by_key(|known| known.version).copied().unwrap_or_default()
    }

    /// Keeps it in place of the one of the same version, else of the oldest, unless it is older: somebody looks at the cluster as it was.
    fn keep(&mut self, found: Valuation) {
        let age = |known: &&mut Valuation| (known.version != found.version, known.version);
        let place = self.both.iter_mut().min_by_key(age);
        if let Some(place) = place.filter(|place| place.version <= found.version) {
            *place = found;
        }
    }
}

impl Valuation {
    /// What stays known of it by another mix.
    fn carried(mut self, room: &Room, mix: &Mix) -> Self {
        if let Some(changes) = mix.since(self.version).filter(|_| self.version > 0) {
            for change in changes {
                for (sequence, (filled, first)) in self.filled.iter().zip(change.first).enumerate() {
                    self.known &= !(Sequences::from(first < filled.drawn) << sequence);
                }
                self.alone += change.by * alone::one(room, change.shape, mix);
            }
        } else {
            (self.known, self.alone) = (0, alone::all(room, mix));
        }
        self.version = mix.version;
        self
    }

    /// The first few of those sequences of which it is not known what they take.
    fn unknown(&self) -> Sequences {
        let mut rest = ALL & !self.known;
        let mut first = 0;
        for _ in 0..STEP {
            // The lowest bit that is set.
            let lowest = rest & rest.wrapping_neg();
            first |= lowest;
            rest &= !lowest;
        }
        first
    }

    /// Finds out what these sequences take, where that is not known.
    fn fill(&mut self, sequences: Sequences, room: &Room, mix: &Mix, kinds: &CardKinds) {
        let new = sequences & !self.known;
        if new == 0 {
            return;
        }
        let fillable = FillableRoom::new(room, mix, kinds);
        for (sequence, filled) in self.filled.iter_mut().enumerate() {
            if new & (1 << sequence) > 0 {
                *filled = fillable.fill(sequence);
            }
        }
        self.known |= new;
    }

    /// The mean of what sequences take, and half of what shapes could take alone. A sequence of which it is not known takes all that is free.
    fn worth(&self, room: &Room, mix: &Mix, kinds: &CardKinds) -> Worth {
        let is_exact = self.known == ALL;
        let free = if is_exact { 0 } else { room.free(kinds) };
        let taken = self.filled.iter().enumerate().map(|(sequence, filled)| {
            if self.known & (1 << sequence) > 0 { i64::from(filled.taken) } else { i64::from(free) }
        });
        let filled = taken.sum::<i64>() * 1000 / i64::try_from(SEQUENCES).unwrap_or(i64::MAX);
        #[expect(clippy::cast_possible_truncation, reason = "thousandths of a card and parts of 1,024")]
        let parts = i128::from(alone::FRACTION as i64);
        let alone = i128::from(self.alone) * 1000 / (2 * parts * i128::from(mix.total.max(1)));
        Worth { most: filled + i64::try_from(alone).unwrap_or(i64::MAX), is_exact }
    }
}
