//! How much of a room is allocated when random pods of the mix fill it.

use smallvec::SmallVec;

use super::{
    mix::{DRAWS, Mix, MixedShape, SEQUENCES},
    room::{Room, RoomCard},
};
use crate::scheduling::model::{
    card_kind::{CardKind, CardKinds, KindId},
    pod_shape::Portion,
};

/// Of so many pods drawn at each step that one is taken which leaves least on its card.
const CHOICE: usize = 2;

/// After so many steps in which no pod fits the room counts as full.
const MOST_MISSES: usize = 20;

/// So many cards are compared at once.
const LANES: usize = 8;

/// Of a rank, the bits that say which of these cards it is.
const LANE_BITS: u32 = LANES.ilog2();

/// The rank of no card.
const NONE: u32 = u32::MAX;

/// How a pod fits what is left of a room.
#[derive(Clone, Copy)]
enum Spot {
    /// On this card, of which so much stays free, in thousandths.
    Card { card: CardPlace, left: u32 },
    /// On as many cards as it asks for.
    Cards,
}

/// In which columns a card stands, and in which lane.
type CardPlace = (usize, usize);

/// Up to eight cards of one kind, in columns, in the order of the room. Lanes without a card take nothing.
#[derive(Clone)]
struct CardColumns<'a> {
    kind: KindId,
    of_kind: &'a CardKind,
    /// What each share of the mix comes to on these cards.
    portions: &'a [Option<Portion>],
    memory: [u32; LANES],
    /// Compute; 0 where no more pods may share the card.
    cores: [u32; LANES],
    /// The same of cards on which no pod is; 0 of others.
    unused_cores: [u32; LANES],
    /// What is free, in thousandths, and below that the lane: the lower, the fuller the card.
    ranks: [u32; LANES],
    slots: [u16; LANES],
}

/// A room that is to be filled.
#[derive(Clone)]
pub(super) struct FillableRoom<'a> {
    cpu: u32,
    memory: u32,
    cards: SmallVec<[CardColumns<'a>; 1]>,
    /// What is free of its cards, in thousandths of one.
    free: u32,
    mix: &'a Mix,
}

/// What pods of a sequence take of a room.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Filled {
    /// Of the room's cards, in thousandths of one.
    pub(super) taken: u32,
    /// How many pods of the sequence decided that, from its first on: those after them make no difference.
    pub(super) drawn: u8,
}

impl<'a> FillableRoom<'a> {
    /// The room, to be filled with pods of this mix.
    pub(super) fn new(room: &Room, mix: &'a Mix, kinds: &'a CardKinds) -> Self {
        let mut cards: SmallVec<[CardColumns<'a>; 1]> = SmallVec::new();
        for card in &room.cards {
            let started = cards.last().map_or(0, |last| if last.kind == card.kind { last.len() } else { 0 });
            if started.is_multiple_of(LANES) {
                cards.push(CardColumns::new(card.kind, mix, kinds));
            }
            if let Some(last) = cards.last_mut() {
                last.set(started % LANES, card);
            }
        }
        Self { cpu: room.cpu, memory: room.memory, cards, free: room.free(kinds), mix }
    }

    /// What pods of this sequence take.
    pub(super) fn fill(&self, sequence: usize) -> Filled {
        const { assert!(SEQUENCES.is_power_of_two() && DRAWS < u8::MAX as usize && DRAWS.is_multiple_of(CHOICE)) };
        if self.free == 0 {
            return Filled::default();
        }
        let filled =
            |taken, steps: usize| Filled { taken, drawn: u8::try_from(steps * CHOICE).unwrap_or(u8::MAX) };
        let mut filling = self.clone();
        let (mut taken, mut misses) = (0, 0);
        for (step, drawn) in self.mix.sequence(sequence).chunks_exact(CHOICE).enumerate() {
            let mut best: Option<(u32, &MixedShape, Spot)> = None;
            for shape in drawn.iter().filter_map(|place| self.mix.shape(*place)) {
                let Some(found) = filling.find(shape) else { continue };
                let left = if let Spot::Card { left, .. } = found { left } else { 0 };
                if best.is_none_or(|(least, ..)| left < least) {
                    best = Some((left, shape, found));
                    if left == 0 {
                        break;
                    }
                }
            }
            let Some((_, shape, found)) = best else {
                misses += 1;
                if misses > MOST_MISSES {
                    return filled(taken, step + 1);
                }
                continue;
            };
            taken += filling.take(shape, found);
            if taken >= self.free {
                return filled(self.free, step + 1);
            }
        }
        filled(taken, DRAWS / CHOICE)
    }

    fn find(&self, shape: &MixedShape) -> Option<Spot> {
        if shape.cpu > self.cpu || shape.memory > self.memory {
            return None;
        }
        if shape.count > 1 {
            let taking: usize = self.cards.iter().map(|cards| cards.taking(shape)).sum();
            return (taking >= shape.count as usize).then_some(Spot::Cards);
        }
        let mut fullest: Option<(u32, CardPlace, u32)> = None;
        for (at, cards) in self.cards.iter().enumerate() {
            let Some(portion) = cards.portion(shape) else {
                continue;
            };
            let rank = cards.fullest(portion);
            if rank == NONE {
                continue;
            }
            let free = rank >> LANE_BITS;
            if fullest.is_none_or(|(least, ..)| free < least) {
                fullest = Some((free, (at, rank as usize % LANES), portion.worth));
            }
        }
        let (free, card, worth) = fullest?;
        Some(Spot::Card { card, left: free.saturating_sub(worth) })
    }

    /// What the pod takes, in thousandths of one card.
    fn take(&mut self, shape: &MixedShape, found: Spot) -> u32 {
        self.cpu -= shape.cpu;
        self.memory -= shape.memory;
        match found {
            Spot::Card { card: (at, lane), .. } => self.cards[at].put(lane, shape),
            Spot::Cards => {
                let mut taking: SmallVec<[(u32, usize, usize); LANES]> = SmallVec::new();
                for (at, cards) in self.cards.iter().enumerate() {
                    let Some(portion) = cards.portion(shape) else { continue };
                    let ranks = cards.ranks_taking(portion).into_iter().filter(|rank| *rank != NONE);
                    taking.extend(ranks.map(|rank| (rank >> LANE_BITS, at, rank as usize % LANES)));
                }
                taking.sort_unstable();
                taking.truncate(shape.count as usize);
                taking.into_iter().map(|(_, at, lane)| self.cards[at].put(lane, shape)).sum()
            }
        }
    }
}

impl<'a> CardColumns<'a> {
    fn new(kind: KindId, mix: &'a Mix, kinds: &'a CardKinds) -> Self {
        Self {
            kind,
            of_kind: kinds.get(kind),
            portions: mix.portions(kind.place()),
            memory: [0; LANES],
            cores: [0; LANES],
            unused_cores: [0; LANES],
            ranks: [NONE; LANES],
            slots: [0; LANES],
        }
    }

    /// How many lanes have a card.
    fn len(&self) -> usize {
        self.ranks.iter().filter(|rank| **rank != NONE).count()
    }

    fn portion(&self, shape: &MixedShape) -> Option<&'a Portion> {
        self.portions.get(shape.share)?.as_ref()
    }

    fn set(&mut self, lane: usize, card: &RoomCard) {
        let cores = if card.slots > 0 { card.cores } else { 0 };
        self.memory[lane] = card.memory;
        self.cores[lane] = cores;
        self.unused_cores[lane] = if card.used { 0 } else { cores };
        self.slots[lane] = card.slots;
        self.ranks[lane] = (card.free_of(self.of_kind) << LANE_BITS) | u32::try_from(lane).unwrap_or(0);
    }

    /// The rank of each card that takes one more share like this, as [`RoomCard::takes`] says; [`NONE`] of others.
    #[expect(clippy::needless_bitwise_bool, reason = "without a branch all cards are compared at once")]
    fn ranks_taking(&self, portion: &Portion) -> [u32; LANES] {
        let cores = if portion.alone { &self.unused_cores } else { &self.cores };
        let least = portion.cores.max(1);
        let mut ranks = [NONE; LANES];
        for lane in 0..LANES {
            let takes = (self.memory[lane] >= portion.memory) & (cores[lane] >= least);
            ranks[lane] = if takes { self.ranks[lane] } else { NONE };
        }
        ranks
    }

    /// The least rank of those that take one more share like this; [`NONE`]: none does.
    fn fullest(&self, portion: &Portion) -> u32 {
        self.ranks_taking(portion).into_iter().fold(NONE, u32::min)
    }

    /// How many of the cards take one more share of this shape.
    fn taking(&self, shape: &MixedShape) -> usize {
        let Some(portion) = self.portion(shape) else {
            return 0;
        };
        self.ranks_taking(portion).into_iter().filter(|rank| *rank != NONE).count()
    }

    /// Puts one more share of this shape on a card, and says what it takes, in thousandths of it.
    fn put(&mut self, lane: usize, shape: &MixedShape) -> u32 {
        let Some(portion) = self.portion(shape) else { return 0 };
        let card = RoomCard {
            kind: self.kind,
            used: true,
            slots: self.slots[lane],
            cores: self.cores[lane],
            memory: self.memory[lane],
        };
        self.set(lane, &card.with(portion));
        portion.worth
    }
}
