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

/// By so many sequences rooms are compared before it is found out what they are worth by all.
const FEW_SEQUENCES: usize = SEQUENCES / 8;

/// What is known of a room.
#[derive(Clone, Copy, Debug, Default)]
struct Valuation {
    /// The version of the mix for which it is known; 0: not at all.
    version: u64,
    /// What pods of each sequence take of it: of all sequences, or of the first [`FEW_SEQUENCES`].
    filled: [Filled; SEQUENCES],
    /// Of how many sequences that is known.
    sequences: usize,
    /// What each shape could take alone, as [`alone::all`] has it.
    alone: i64,
    /// What the room is worth by all of these, in millionths of a card.
    worth: i64,
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
    /// What [`Room::draw`] says of it.
    pub(super) draw: u32,
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
        let valued = Arc::new(ValuedRoom { draw: room.draw(), room, known: Mutex::default() });
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
        self.worth_by(SEQUENCES, mix, kinds, || alone::all(&self.room, mix))
    }

    /// What the room is worth by [`FEW_SEQUENCES`] sequences, in millionths of a card. `alone` says what shapes could take alone, as [`alone::all`] has it.
    pub(super) fn worth_by_few(&self, mix: &Mix, kinds: &CardKinds, alone: impl FnOnce() -> i64) -> i64 {
        self.worth_by(FEW_SEQUENCES, mix, kinds, alone)
    }

    fn worth_by(&self, sequences: usize, mix: &Mix, kinds: &CardKinds, alone: impl FnOnce() -> i64) -> i64 {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.asked = known.asked.max(mix.version);
        if let Some(found) = known.of(mix.version).filter(|found| found.sequences >= sequences) {
            return found.worth_by(sequences, mix);
        }
        let found = known.upto(mix.version).renewed(sequences, &self.room, (mix, kinds), alone);
        known.keep(found);
        found.worth_by(sequences, mix)
    }

    /// Whether it is known what the room is worth by this mix.
    #[cfg(test)]
    pub(super) fn is_valued_by(&self, mix: &Mix) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).of(mix.version).is_some()
    }

    /// Values the room by a mix that is to count, if a decision has asked for the room lately.
    pub(super) fn prepare(&self, mix: &Mix, kinds: &CardKinds) {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let before = {
            let known = known();
            let is_asked = known.asked + REMEMBERED as u64 > mix.version;
            if !is_asked || known.of(mix.version).is_some() {
                return;
            }
            known.upto(mix.version)
        };
        // Meanwhile a decision may ask what the room is worth by the mix that counts.
        let alone = || alone::all(&self.room, mix);
        let found = before.renewed(before.sequences.max(FEW_SEQUENCES), &self.room, (mix, kinds), alone);
        known().keep(found);
    }
}

impl Valuations {
    fn of(&self, version: u64) -> Option<&Valuation> {
        self.both.iter().find(|known| known.version == version)
    }

    /// The latest of those that are not newer than this version.
    fn upto(&self, version: u64) -> Valuation {
        let older = self.both.iter().filter(|known| known.version <= version);
        older.max_by_key(|known| known.version).copied().unwrap_or_default()
    }

    /// Keeps it in place of the oldest, or of the same with fewer sequences, unless it is older: a dry run may still read the cluster as it was.
    fn keep(&mut self, found: Valuation) {
        let [one, other] = &mut self.both;
        let replaced = match () {
            () if one.version == found.version => one,
            () if other.version == found.version => other,
            () if one.version <= other.version => one,
            () => other,
        };
        if (replaced.version, replaced.sequences) < (found.version, found.sequences) {
            *replaced = found;
        }
    }
}

impl Valuation {
    /// What this comes to by the mix, for so many sequences at least.
    fn renewed(
        mut self,
        sequences: usize,
        room: &Room,
        (mix, kinds): (&Mix, &CardKinds),
        alone: impl FnOnce() -> i64,
    ) -> Self {
        let mut outdated = [true; SEQUENCES];
        if let Some(changes) = mix.since(self.version).filter(|_| self.version > 0) {
            outdated[..self.sequences].fill(false);
            for change in changes {
                let firsts = self.filled.iter().zip(change.first);
                for (outdated, (filled, first)) in outdated.iter_mut().zip(firsts) {
                    *outdated |= first < filled.drawn;
                }
                self.alone += change.by * alone::one(room, change.shape, mix);
            }
        } else {
            (self.alone, self.sequences) = (alone(), 0);
        }
        self.sequences = self.sequences.max(sequences);
        let outdated = &outdated[..self.sequences];
        if outdated.contains(&true) {
            let fillable = FillableRoom::new(room, mix, kinds);
            let filled = self.filled.iter_mut().enumerate().zip(outdated);
            for ((sequence, filled), _) in filled.filter(|(_, outdated)| **outdated) {
                *filled = fillable.fill(sequence);
            }
        }
        self.version = mix.version;
        self.worth = self.mean(self.sequences, mix);
        self
    }

    /// What the room is worth by so many sequences, of those that are known.
    fn worth_by(&self, sequences: usize, mix: &Mix) -> i64 {
        if sequences == self.sequences { self.worth } else { self.mean(sequences, mix) }
    }

    /// The mean of what so many sequences take, and half of what shapes could take alone.
    fn mean(&self, sequences: usize, mix: &Mix) -> i64 {
        let sum: i64 = self.filled[..sequences].iter().map(|filled| i64::from(filled.taken)).sum();
        let filled = sum * 1000 / i64::try_from(sequences).unwrap_or(i64::MAX);
        #[expect(clippy::cast_possible_truncation, reason = "thousandths of a card and parts of 1,024")]
        let parts = i128::from(alone::FRACTION as i64);
        let alone = i128::from(self.alone) * 1000 / (2 * parts * i128::from(mix.total.max(1)));
        filled + i64::try_from(alone).unwrap_or(i64::MAX)
    }
}
