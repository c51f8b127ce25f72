//! What is free on each node, in numbers, whatever pods ask for: by these a class that is new finds the nodes that may win.
//!
//! What is known of a node holds for one generation of it, so nothing has to be undone when a pod is placed on trial. Nodes with as much free have it in
//! common.

use std::collections::{HashMap, hash_map::Entry};

use foldhash::fast::FixedState;

use super::judging::GoOn;
use crate::scheduling::{
    packing::free_room::{FreeRoom, RoomKey},
    plugin::score::estimate::{ScoreEstimates, free_room},
    world::{World, by_slot::BySlot},
};

/// What is free on each node.
#[derive(Debug, Default)]
pub(super) struct FreeRooms {
    /// The place of what is free on each node; `None`: that is not known, or there is no node.
    by_slot: BySlot<Option<usize>>,
    /// By place.
    rooms: Vec<KnownRoom>,
    places: HashMap<RoomKey, usize, FixedState>,
    /// The places of rooms that no node has.
    unused: Vec<usize>,
    /// By which version of what a pod may cost they are valued.
    packing: u64,
}

/// What is free on some nodes.
#[derive(Debug)]
struct KnownRoom {
    room: FreeRoom,
    /// On how many.
    nodes: usize,
}

/// Nodes are few if there are so many times as many rooms.
const FEW: usize = 4;

impl FreeRooms {
    /// Finds out what is free on the nodes that have changed since the last time, and says how many these were. `go_on` is asked before each; `None`: it
    /// has said no, and the rest is found out the next time.
    pub(super) fn refresh(&mut self, world: &World, go_on: GoOn<'_>) -> Option<usize> {
        let version = world.packing().version();
        if std::mem::replace(&mut self.packing, version) != version {
            let used = self.rooms.iter_mut().filter(|known| known.nodes > 0);
            used.for_each(|known| known.room.value(world.packing()));
        }
        let mut by_slot = std::mem::take(&mut self.by_slot);
        let (mut found, mut is_stopped) = (0, false);
        by_slot.refresh(world.nodes.slots(), world.nodes.generations(), |node, before| {
            is_stopped = go_on().is_break();
            if is_stopped {
                return None;
            }
            let room = node.and_then(|node| free_room(node, world.packing()));
            let place = room.map(|room| self.place(room));
            if let Some(before) = *before {
                self.leave(before);
            }
            found += 1;
            Some(place)
        });
        self.by_slot = by_slot;
        (!is_stopped).then_some(found)
    }

    /// The highest score that the node in each of these slots may have; `None`: it does not fit. A slot without a node is left out.
    pub(super) fn most<'a>(
        &'a self,
        slots: Vec<usize>,
        estimates: &'a ScoreEstimates<'_>,
    ) -> impl Iterator<Item = (usize, Option<f64>)> + 'a {
        // Of few nodes, hardly any have a room in common.
        let remembered = if slots.len() < self.rooms.len() / FEW { 0 } else { self.rooms.len() };
        let mut known: Vec<Option<Option<f64>>> = vec![None; remembered];
        slots.into_iter().filter_map(move |slot| {
            let place = (*self.by_slot.get(slot)?)?;
            let most = || estimates.most(&self.rooms[place].room);
            let most = known.get_mut(place).map_or_else(most, |known| *known.get_or_insert_with(most));
            Some((slot, most))
        })
    }

    /// Which room the node in this slot has, of this generation; `None`: that is not known. Nodes with one room have as much free.
    pub(super) fn room_of(&self, slot: usize, generation: u64) -> Option<usize> {
        *self.by_slot.of_generation(slot, generation)?
    }

    /// The place of this room, which one more node has.
    fn place(&mut self, room: FreeRoom) -> usize {
        let place = match self.places.entry(room.key()) {
            Entry::Occupied(known) => {
                let place = *known.get();
                self.rooms[place].nodes += 1;
                return place;
            }
            Entry::Vacant(place) => place,
        };
        let known = KnownRoom { room, nodes: 1 };
        let unused = self.unused.pop();
        match unused {
            Some(unused) => self.rooms[unused] = known,
            None => self.rooms.push(known),
        }
        *place.insert(unused.unwrap_or(self.rooms.len() - 1))
    }

    /// One node less has the room at this place.
    fn leave(&mut self, place: usize) {
        let known = &mut self.rooms[place];
        known.nodes -= 1;
        if known.nodes == 0 {
            self.places.remove(&known.room.key());
            self.unused.push(place);
        }
    }
}
