//! Valuing rooms for a mix of pods that has changed, beside the decisions: a decision finds them valued.
//!
//! What rooms are worth is a function of the rooms and of the mix alone, so nothing depends on how many were valued before the mix counts: a room
//! that was not is valued when it is asked for.

use std::{fmt, ops::ControlFlow, sync::Arc};

use super::{mix::Mix, rooms::Rooms};
use crate::scheduling::model::card_kind::CardKinds;

/// What has to be done before a mix counts.
#[derive(Clone)]
pub struct Renewal {
    mix: Mix,
    kinds: Arc<CardKinds>,
    rooms: Arc<Rooms>,
}

/// A mix that counts from now on.
#[derive(Clone)]
pub struct RenewedMix(pub(super) Mix);

impl Renewal {
    pub(super) fn new(mix: Mix, kinds: Arc<CardKinds>, rooms: Arc<Rooms>) -> Self {
        Self { mix, kinds, rooms }
    }

    /// Values the rooms that decisions have asked for lately. `go_on` is asked before each; when it says no, the others are left.
    pub fn run(self, mut go_on: impl FnMut() -> ControlFlow<()>) -> RenewedMix {
        let Self { mix, kinds, rooms } = self;
        // A node may have brought another kind of card since the renewal was begun: its rooms are valued when they are asked for.
        for room in rooms.in_use().into_iter().filter(|room| room.room.is_of(&kinds)) {
            if go_on().is_break() {
                break;
            }
            room.prepare(&mix, &kinds);
        }
        RenewedMix(mix)
    }

    /// Leaves all rooms to be valued when they are asked for.
    pub fn skip(self) -> RenewedMix {
        RenewedMix(self.mix)
    }
}

/// Two of one cluster are equal if they are for the same mix.
impl PartialEq for Renewal {
    fn eq(&self, other: &Self) -> bool {
        self.mix.version == other.mix.version
    }
}

impl Eq for Renewal {}

impl fmt::Debug for Renewal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Renewal").field("version", &self.mix.version).finish_non_exhaustive()
    }
}

impl fmt::Debug for RenewedMix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RenewedMix").field("version", &self.0.version).finish_non_exhaustive()
    }
}
