//! How much of a room is allocated when random pods of the mix fill it.

use super::{
    mix::{DRAWS, Mix, MixedShape},
    room::{Room, RoomCard},
};
use crate::scheduling::model::{card_kind::CardKinds, pod_shape::Portion};

/// Of so many pods drawn at each step that one is taken which leaves least on its card.
const CHOICE: usize = 2;

/// After so many steps in which no pod fits the room counts as full.
const MOST_MISSES: usize = 20;

/// How a pod fits what is left of a room.
enum Spot {
    /// On this card, of which so much stays free, in thousandths.
    Card(usize, u32),
    /// On as many cards as it asks for.
    Cards,
}

/// The room while it is filled.
struct Filling<'a> {
    room: Room,
    /// What is free of each card, in thousandths.
    free: Vec<u32>,
    mix: &'a Mix,
    kinds: &'a CardKinds,
}

/// What pods of a sequence take of a room.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Filled {
    /// Of the room's cards, in thousandths of one.
    pub(super) taken: u32,
    /// How many pods of the sequence decided that, from its first on: those after them make no difference.
    pub(super) drawn: u8,
}

/// What pods of this sequence take.
pub(super) fn fill(room: &Room, sequence: usize, mix: &Mix, kinds: &CardKinds) -> Filled {
    let free: Vec<_> = room.cards.iter().map(|card| card.free(kinds)).collect();
    let all: u32 = free.iter().sum();
    if all == 0 {
        return Filled::default();
    }
    let filled = |taken, steps: usize| Filled {
        taken,
        drawn: u8::try_from(steps * CHOICE).expect("a sequence has at most 255 pods"),
    };
    let mut filling = Filling { room: room.clone(), free, mix, kinds };
    let (mut taken, mut misses) = (0, 0);
    for step in 0..DRAWS / CHOICE {
        let drawn = (0..CHOICE).filter_map(|one| mix.drawn(sequence, step * CHOICE + one));
        let mut best: Option<(u32, &MixedShape, Spot)> = None;
        for shape in drawn {
            let Some(found) = filling.find(shape) else { continue };
            let left = if let Spot::Card(_, left) = found { left } else { 0 };
            if best.as_ref().is_none_or(|(least, ..)| left < *least) {
                best = Some((left, shape, found));
            }
        }
        let Some((_, shape, found)) = best else {
            misses += 1;
            if misses > MOST_MISSES {
                return filled(taken, step + 1);
            }
            continue;
        };
        taken += filling.take(shape, &found);
        if taken >= all {
            return filled(all, step + 1);
        }
    }
    filled(taken, DRAWS / CHOICE)
}

impl Filling<'_> {
    fn portion(&self, shape: &MixedShape, card: &RoomCard) -> Option<&Portion> {
        self.mix.share(shape.share).on(card.kind.place())
    }

    fn find(&self, shape: &MixedShape) -> Option<Spot> {
        if shape.cpu > self.room.cpu || shape.memory > self.room.memory {
            return None;
        }
        let cards = self.room.cards.iter().enumerate();
        let mut taking = cards.filter_map(|(at, card)| {
            let portion = self.portion(shape, card)?;
            card.takes(portion).then_some((at, portion))
        });
        if shape.count > 1 {
            return (taking.count() >= shape.count as usize).then_some(Spot::Cards);
        }
        let first = taking.next()?;
        let fullest = taking.fold(
            first,
            |fullest, one| {
                if self.free[one.0] < self.free[fullest.0] { one } else { fullest }
            },
        );
        Some(Spot::Card(fullest.0, self.free[fullest.0].saturating_sub(fullest.1.worth)))
    }

    /// What the pod takes, in thousandths of one card.
    fn take(&mut self, shape: &MixedShape, found: &Spot) -> u32 {
        self.room.cpu -= shape.cpu;
        self.room.memory -= shape.memory;
        match found {
            Spot::Card(at, _) => self.put(*at, shape),
            Spot::Cards => {
                let takes =
                    |card: &RoomCard| self.portion(shape, card).is_some_and(|portion| card.takes(portion));
                let cards = self.room.cards.iter().enumerate().filter(|(_, card)| takes(card));
                let mut cards: Vec<_> = cards.map(|(at, _)| (self.free[at], at)).collect();
                cards.sort_unstable();
                cards.truncate(shape.count as usize);
                cards.into_iter().map(|(_, at)| self.put(at, shape)).sum()
            }
        }
    }

    fn put(&mut self, at: usize, shape: &MixedShape) -> u32 {
        let card = self.room.cards[at];
        let Some(portion) = self.portion(shape, &card).copied() else { return 0 };
        let card = card.with(&portion);
        self.room.cards[at] = card;
        self.free[at] = card.free(self.kinds);
        portion.worth
    }
}
