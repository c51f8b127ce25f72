//! How much of a room is allocated when random pods of the mix fill it.

use smallvec::SmallVec;

use super::{
    mix::{DRAWS, Mix, MixedShape, SEQUENCES},
    room::Room,
};
use crate::scheduling::model::{
    card_kind::{CardKind, CardKinds, KindId, narrow},
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
const NONE: i32 = i32::MAX;

/// By [`LANES`]; whole numbers with a sign, which every processor compares several at once.
type Lanes = [i32; LANES];

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
    /// What each share of the mix comes to on these cards.
    portions: &'a [Option<Portion>],
    memory: Lanes,
    /// Compute; 0 where no more pods may share the card.
    cores: Lanes,
    /// The same of cards on which no pod is; 0 of others.
    unused_cores: Lanes,
    /// What is free, in thousandths, and below that the lane: the lower, the fuller the card.
    ranks: Lanes,
    slots: [u16; LANES],
    /// The most memory and the most compute that a card has: most pods for which there is no card are known by these.
    most: [i32; 2],
    /// Which part of a card so much memory is, and so much compute.
    parts: [Thousandths; 2],
}

/// Parts of a whole, in thousandths.
#[derive(Clone, Copy)]
struct Thousandths {
    whole: u32,
    /// What one is of the whole, in thousandths and parts of 2^[`BITS`], rounded up; 0: the whole is too large for that to be exact enough.
    multiplier: u64,
}

/// A whole of fewer than half as many bits is not divided by: to multiply takes a tenth of the time.
const BITS: u32 = 40;

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
                let amounts = [signed(card.memory), signed(card.cores)];
                last.set(started % LANES, amounts, card.slots, card.used);
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
            // What is drawn twice is looked for once.
            let different = if drawn[0] == drawn[1] { &drawn[..1] } else { drawn };
            for shape in different.iter().filter_map(|place| self.mix.shape(*place)) {
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
            let Some((free, lane)) = cards.fullest(portion) else { continue };
            if fullest.is_none_or(|(least, ..)| free < least) {
                fullest = Some((free, (at, lane), portion.worth));
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
                    let ranks = cards.ranks_taking(portion).into_iter().filter_map(of_rank);
                    taking.extend(ranks.map(|(free, lane)| (free, at, lane)));
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
        let CardKind { memory, cores, .. } = kinds.get(kind);
        Self {
            kind,
            portions: mix.portions(kind.place()),
            memory: [0; LANES],
            cores: [0; LANES],
            unused_cores: [0; LANES],
            ranks: [NONE; LANES],
            slots: [0; LANES],
            most: [0; 2],
            parts: [memory, cores].map(|whole| Thousandths::of(*whole)),
        }
    }

    /// How many lanes have a card.
    fn len(&self) -> usize {
        self.ranks.iter().filter(|rank| **rank != NONE).count()
    }

    fn portion(&self, shape: &MixedShape) -> Option<&'a Portion> {
        self.portions.get(shape.share)?.as_ref()
    }

    /// So much is free of the card in this lane; `cores` where no more pods may share it is of no account.
    fn set(&mut self, lane: usize, [memory, cores]: [i32; 2], slots: u16, used: bool) {
        let cores = if slots > 0 { cores } else { 0 };
        let before = [self.memory[lane], self.cores[lane]];
        (self.memory[lane], self.cores[lane], self.slots[lane]) = (memory, cores, slots);
        self.unused_cores[lane] = if used { 0 } else { cores };
        let [of_memory, of_cores] = self.parts;
        let free = of_memory.part(memory).min(of_cores.part(cores));
        self.ranks[lane] = rank(free, lane);
        let most = |known: i32, before: i32, lanes: &Lanes| {
            // It is looked for where it may be less than it was.
            if before == known {
                lanes.iter().fold(0, |most, one| most.max(*one))
            } else {
                known.max(lanes[lane])
            }
        };
        let [of_memory, of_cores] = self.most;
        self.most = [most(of_memory, before[0], &self.memory), most(of_cores, before[1], &self.cores)];
    }

    /// The rank of each card that takes one more share like this, as [`RoomCard::takes`](super::room::RoomCard::takes) says; [`NONE`] of others.
    #[expect(clippy::needless_bitwise_bool, reason = "without a branch all cards are compared at once")]
    fn ranks_taking(&self, portion: &Portion) -> Lanes {
        let cores = if portion.alone { &self.unused_cores } else { &self.cores };
        let [memory, least] = least(portion);
        let mut ranks = [NONE; LANES];
        for lane in 0..LANES {
            let takes = (self.memory[lane] >= memory) & (cores[lane] >= least);
            ranks[lane] = if takes { self.ranks[lane] } else { NONE };
        }
        ranks
    }

    /// Of the cards that take one more share like this the fullest: what is free of it, in thousandths, and its lane; `None`: none does.
    fn fullest(&self, portion: &Portion) -> Option<(u32, usize)> {
        let [memory, cores] = least(portion);
        if self.most[0] < memory || self.most[1] < cores {
            return None;
        }
        of_rank(self.ranks_taking(portion).into_iter().fold(NONE, i32::min))
    }

    /// How many of the cards take one more share of this shape.
    fn taking(&self, shape: &MixedShape) -> usize {
        let Some(portion) = self.portion(shape) else {
            return 0;
        };
        self.ranks_taking(portion).into_iter().filter_map(of_rank).count()
    }

    /// Puts one more share of this shape on a card, and says what it takes, in thousandths of it.
    fn put(&mut self, lane: usize, shape: &MixedShape) -> u32 {
        let Some(portion) = self.portion(shape) else { return 0 };
        let [memory, cores] = if portion.alone {
            [0; 2]
        } else {
            [self.memory[lane] - signed(portion.memory), self.cores[lane] - signed(portion.cores)]
        };
        self.set(lane, [memory, cores], self.slots[lane].saturating_sub(1), true);
        portion.worth
    }
}

impl Thousandths {
    fn of(whole: u32) -> Self {
        let whole = whole.max(1);
        let is_small = u64::from(whole) < 1 << (BITS / 2);
        Self { whole, multiplier: if is_small { (1000 << BITS) / u64::from(whole) + 1 } else { 0 } }
    }

    /// How many thousandths so much is, rounded down. The product is too large by less than a whole-th of one, so it is rounded down to the same number.
    #[inline]
    fn part(self, free: i32) -> u32 {
        let free = u64::from(free.unsigned_abs());
        if self.multiplier > 0 && free <= u64::from(self.whole) {
            narrow((free * self.multiplier) >> BITS)
        } else {
            narrow(free * 1000 / u64::from(self.whole))
        }
    }
}

/// The number, or the largest that there is room for.
fn signed(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The memory, in MiB, and the compute that a card must have for a share; compute in any case.
fn least(portion: &Portion) -> [i32; 2] {
    [signed(portion.memory), signed(portion.cores.max(1))]
}

/// The rank of the card in this lane, of which so much is free, in thousandths.
fn rank(free: u32, lane: usize) -> i32 {
    signed(free << LANE_BITS) | i32::try_from(lane).unwrap_or(0)
}

/// What is free of the card with this rank, and its lane; `None`: it is that of no card.
fn of_rank(rank: i32) -> Option<(u32, usize)> {
    let rank = Some(rank).filter(|rank| *rank != NONE)?.unsigned_abs();
    Some((rank >> LANE_BITS, rank as usize % LANES))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_part_of_a_card_is_what_division_makes_of_it(
            whole in prop_oneof![0_u32..200, 0_u32..1 << 21, any::<u32>()],
            free in prop_oneof![0_i32..200, 0_i32..1 << 21, 0_i32..=i32::MAX],
            times in 0_u32..1002,
        ) {
            let parts = Thousandths::of(whole);
            let divided = |free: i32| narrow(u64::from(free.unsigned_abs()) * 1000 / u64::from(whole.max(1)));
            prop_assert_eq!(parts.part(free), divided(free));
            // Where the result is about to be the next whole number.
            let near = signed(narrow(u64::from(whole) * u64::from(times) / 1000));
            for free in [near.saturating_sub(1), near, near.saturating_add(1)] {
                prop_assert_eq!(parts.part(free), divided(free));
            }
        }
    }
}
