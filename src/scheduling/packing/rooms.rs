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
    mix::{Mix, SEQUENCES},
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
    /// What pods of each sequence take of it.
    filled: [Filled; SEQUENCES],
    /// What each shape could take alone, as [`alone::all`] has it.
    alone: i64,
    /// What the room is worth, in millionths of a card.
    worth: i64,
}

/// A room, with what it is worth as far as that is known.
#[derive(Debug)]
pub struct ValuedRoom {
    /// The room.
    pub room: Room,
    known: Mutex<Valuation>,
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
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.version == mix.version {
            return known.worth;
        }
        if known.version > mix.version {
            // Somebody looks at the cluster as it was.
            return Valuation::default().renewed(&self.room, mix, kinds).worth;
        }
        *known = known.renewed(&self.room, mix, kinds);
        known.worth
    }
}

impl Valuation {
    fn renewed(mut self, room: &Room, mix: &Mix, kinds: &CardKinds) -> Self {
        let mut outdated = [true; SEQUENCES];
        if let Some(changes) = mix.since(self.version).filter(|_| self.version > 0) {
            outdated = [false; SEQUENCES];
            for change in changes {
                let firsts = self.filled.iter().zip(change.first);
                for (outdated, (filled, first)) in outdated.iter_mut().zip(firsts) {
                    *outdated |= first < filled.drawn;
                }
                self.alone += change.by * alone::one(room, change.shape, mix);
            }
        } else {
            self.alone = alone::all(room, mix);
        }
        if outdated != [false; SEQUENCES] {
            let fillable = FillableRoom::new(room, mix, kinds);
            let filled = self.filled.iter_mut().enumerate().zip(outdated);
            for ((sequence, filled), _) in filled.filter(|(_, outdated)| *outdated) {
                *filled = fillable.fill(sequence);
            }
        }
        self.version = mix.version;
        self.worth = worth(&self.filled, self.alone, mix.total);
        self
    }
}

/// The mean of what sequences take, and half of what shapes could take alone.
fn worth(filled: &[Filled; SEQUENCES], alone: i64, total: u64) -> i64 {
    let sum: i64 = filled.iter().map(|filled| i64::from(filled.taken)).sum();
    let filled = sum * 1000 / i64::try_from(SEQUENCES).unwrap_or(i64::MAX);
    #[expect(clippy::cast_possible_truncation, reason = "thousandths of a card and parts of 1,024")]
    let parts = i128::from(alone::FRACTION as i64);
    let alone = i128::from(alone) * 1000 / (2 * parts * i128::from(total.max(1)));
    filled + i64::try_from(alone).unwrap_or(i64::MAX)
}
