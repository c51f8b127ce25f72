//! Which pods may come: the shapes of those that are there, each as often as it counts, and sequences of such pods drawn from them.
//!
//! A draw takes the shape with the least key, and the key of a shape in a draw depends on that shape, its weight and the number of the draw
//! alone. So the sequences are a function of the weights, and where one weight changes, few draws do: most of what rooms are worth stays known.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

use super::census::{MOST_SHAPES, seed};
use crate::scheduling::model::{
    card_kind::CardKinds,
    pod_shape::{PodShape, Portion, ShareShape},
};

/// So many sequences of pods are drawn: a power of 2.
pub(super) const SEQUENCES: usize = 16;

/// So many pods are drawn for each.
pub(super) const DRAWS: usize = 240;

/// With how much one pod counts: made-up pods count in parts of one.
pub(super) const POD: u32 = 1024;

/// So many changes of weights are remembered.
pub(super) const REMEMBERED: usize = 64;

/// So many shapes with the least keys are known of each draw.
const LEAST: usize = 3;

/// A shape in the mix.
#[derive(Clone, Debug)]
pub(super) struct MixedShape {
    shape: Arc<PodShape>,
    seed: u64,
    pub(super) weight: u32,
    pub(super) cpu: u32,
    pub(super) memory: u32,
    /// Of how many cards.
    pub(super) count: u32,
    /// The share that it asks of each, by place.
    pub(super) share: usize,
}

/// One pod drawn: the shapes with the least keys, least first. Every shape that counts and has a key below the bound is among them.
#[derive(Clone, Copy, Debug)]
struct Draw {
    keys: [f64; LEAST],
    shapes: [u32; LEAST],
    bound: f64,
}

/// In the place of a shape: there is none.
const NOTHING: u32 = u32::MAX;

/// A weight that has changed.
#[derive(Clone, Debug)]
pub(super) struct Reweighed {
    pub(super) shape: usize,
    pub(super) by: i64,
    /// By sequence, the place of the first pod that is another one since; 255: all are as before.
    pub(super) first: [u8; SEQUENCES],
}

/// The shapes that may come, with sequences of pods drawn from them.
#[derive(Clone, Debug)]
pub struct Mix {
    /// Greater by one after every change.
    pub(super) version: u64,
    shapes: Arc<Vec<MixedShape>>,
    places: Arc<HashMap<Arc<PodShape>, usize>>,
    /// Every share that shapes ask for.
    shares: Arc<Vec<ShareShape>>,
    /// What each share comes to, by kind of card.
    portions: Arc<Vec<Vec<Option<Portion>>>>,
    /// Empty until a shape counts.
    draws: Arc<Vec<Draw>>,
    /// The shape drawn, by draw: the first of each of the draws.
    drawn: Arc<Vec<u32>>,
    /// The last changes, oldest first.
    log: Arc<VecDeque<Reweighed>>,
    /// All weights together.
    pub(super) total: u64,
}

impl Default for Mix {
    fn default() -> Self {
        Self {
            version: 1,
            shapes: Arc::default(),
            places: Arc::default(),
            shares: Arc::default(),
            portions: Arc::default(),
            draws: Arc::default(),
            drawn: Arc::default(),
            log: Arc::default(),
            total: 0,
        }
    }
}

impl Mix {
    /// Every shape that counts or has counted.
    pub(super) fn shapes(&self) -> &[MixedShape] {
        &self.shapes
    }

    /// With how much a shape counts.
    pub(super) fn weight(&self, shape: &Arc<PodShape>) -> u32 {
        self.places.get(shape).map_or(0, |place| self.shapes[*place].weight)
    }

    /// Every shape that counts, with its weight.
    pub(super) fn weights(&self) -> impl Iterator<Item = (&Arc<PodShape>, u32)> {
        self.shapes.iter().filter(|shape| shape.weight > 0).map(|shape| (&shape.shape, shape.weight))
    }

    /// Every share that shapes ask for, by place.
    pub(super) fn shares(&self) -> &[ShareShape] {
        &self.shares
    }

    /// What each share comes to on a card of the kind at this place, by the share's place.
    pub(super) fn portions(&self, kind: usize) -> &[Option<Portion>] {
        self.portions.get(kind).map_or(&[], Vec::as_slice)
    }

    /// What a share comes to on a card of a kind, each by its place; `None`: such a card does not serve it.
    pub(super) fn portion(&self, share: usize, kind: usize) -> Option<&Portion> {
        self.portions(kind).get(share)?.as_ref()
    }

    /// The pods of a sequence, each by the place of its shape; none: no shape has counted yet.
    pub(super) fn sequence(&self, sequence: usize) -> &[u32] {
        self.drawn.get(sequence * DRAWS..(sequence + 1) * DRAWS).unwrap_or_default()
    }

    /// The shape at this place; `None`: there is none, as no shape counts.
    pub(super) fn shape(&self, place: u32) -> Option<&MixedShape> {
        self.shapes.get(place as usize)
    }

    /// By how much weights have changed since this version; `None`: that is not remembered any more.
    pub(super) fn since(&self, version: u64) -> Option<impl Iterator<Item = &Reweighed>> {
        let changes = usize::try_from(self.version.checked_sub(version)?).ok()?;
        let known = self.log.len().checked_sub(changes)?;
        Some(self.log.range(known..))
    }

    /// Takes in kinds of cards that are new.
    pub(super) fn know(&mut self, kinds: &CardKinds) {
        if self.portions.len() < kinds.all().len() {
            let new = kinds.all().iter().skip(self.portions.len());
            let new: Vec<Vec<_>> =
                new.map(|kind| self.shares.iter().map(|share| share.on(kind)).collect()).collect();
            Arc::make_mut(&mut self.portions).extend(new);
        }
    }

    /// A shape counts with this weight from now on.
    pub(super) fn weigh(&mut self, shape: &Arc<PodShape>, weight: u32, kinds: &CardKinds) {
        let before = self.weight(shape);
        if before == weight {
            return;
        }
        let known = self.places.get(shape).copied();
        let place = known.unwrap_or_else(|| self.add(shape, kinds));
        Arc::make_mut(&mut self.shapes)[place].weight = weight;
        self.total = self.total + u64::from(weight) - u64::from(before);
        self.version += 1;
        let first = self.draw(place);
        let log = Arc::make_mut(&mut self.log);
        if log.len() == REMEMBERED {
            log.pop_front();
        }
        log.push_back(Reweighed { shape: place, by: i64::from(weight) - i64::from(before), first });
    }

    /// Forgets the shapes that count no more, once they are many.
    fn compact(&mut self) {
        if self.shapes.len() <= 4 * MOST_SHAPES {
            return;
        }
        let in_log: HashSet<_> = self.log.iter().map(|change| change.shape).collect();
        let mut moved = vec![NOTHING; self.shapes.len()];
        let mut kept = Vec::new();
        for (place, shape) in self.shapes.iter().enumerate() {
            if shape.weight > 0 || in_log.contains(&place) {
                moved[place] = u32::try_from(kept.len()).unwrap_or(NOTHING);
                kept.push(shape.clone());
            }
        }
        let to = |place: u32| moved.get(place as usize).copied().unwrap_or(NOTHING);
        for draw in Arc::make_mut(&mut self.draws) {
            draw.shapes = draw.shapes.map(to);
        }
        for shape in Arc::make_mut(&mut self.drawn) {
            *shape = to(*shape);
        }
        for change in Arc::make_mut(&mut self.log) {
            change.shape = moved[change.shape] as usize;
        }
        // Of the shares, too, those stay that these shapes ask for.
        let mut asked: Vec<_> = kept.iter().map(|shape| shape.share).collect();
        asked.sort_unstable();
        asked.dedup();
        for shape in &mut kept {
            shape.share = asked.partition_point(|share| *share < shape.share);
        }
        self.shares = Arc::new(asked.iter().map(|share| self.shares[*share].clone()).collect());
        for portions in Arc::make_mut(&mut self.portions) {
            *portions = asked.iter().map(|share| portions[*share]).collect();
        }
        self.places =
            Arc::new(kept.iter().enumerate().map(|(place, kept)| (kept.shape.clone(), place)).collect());
        self.shapes = Arc::new(kept);
    }

    fn add(&mut self, shape: &Arc<PodShape>, kinds: &CardKinds) -> usize {
        self.compact();
        self.know(kinds);
        let asked = &shape.cards.share;
        let known = self.shares.iter().position(|one| one == asked);
        let asked_at = known.unwrap_or_else(|| {
            for (portions, kind) in Arc::make_mut(&mut self.portions).iter_mut().zip(kinds.all()) {
                portions.push(asked.on(kind));
            }
            Arc::make_mut(&mut self.shares).push(asked.clone());
            self.shares.len() - 1
        });
        let place = self.shapes.len();
        Arc::make_mut(&mut self.places).insert(shape.clone(), place);
        Arc::make_mut(&mut self.shapes).push(MixedShape {
            shape: shape.clone(),
            seed: seed(shape),
            weight: 0,
            cpu: shape.cpu,
            memory: shape.memory,
            count: shape.cards.count.max(1),
            share: asked_at,
        });
        place
    }

    /// Draws anew where the weight of this shape decides, and says where other pods come since, as [`Reweighed::first`] does.
    fn draw(&mut self, place: usize) -> [u8; SEQUENCES] {
        let shapes = &self.shapes;
        let own = &shapes[place];
        let at = u32::try_from(place).unwrap_or(NOTHING);
        let (draws, places) = (Arc::make_mut(&mut self.draws), Arc::make_mut(&mut self.drawn));
        draws.resize(SEQUENCES * DRAWS, Draw::default());
        places.resize(SEQUENCES * DRAWS, NOTHING);
        let mut first = [u8::MAX; SEQUENCES];
        for of_shape in 0..DRAWS {
            let numbers = Numbers::of(own.seed, of_shape);
            for (sequence, first) in first.iter_mut().enumerate() {
                let number = sequence * DRAWS + of_shape;
                let draw = &mut draws[number];
                let was_known = draw.remove(at);
                let is_known = own.weight > 0 && draw.insert(key(&numbers, sequence, own.weight), at);
                if !was_known && !is_known {
                    continue;
                }
                if draw.is_exhausted() {
                    *draw = Draw::among(shapes, sequence, of_shape);
                }
                if places[number] != draw.shapes[0] {
                    places[number] = draw.shapes[0];
                    *first = u8::try_from(of_shape).unwrap_or(u8::MAX).min(*first);
                }
            }
        }
        first
    }
}

impl Default for Draw {
    fn default() -> Self {
        Self { keys: [f64::INFINITY; LEAST], shapes: [NOTHING; LEAST], bound: f64::INFINITY }
    }
}

impl Draw {
    /// This pod of a sequence, drawn from all shapes that count.
    fn among(shapes: &[MixedShape], sequence: usize, at: usize) -> Self {
        let mut draw = Self::default();
        for (shape, place) in shapes.iter().zip(0_u32..).filter(|(shape, _)| shape.weight > 0) {
            draw.insert(key(&Numbers::of(shape.seed, at), sequence, shape.weight), place);
        }
        draw
    }

    /// Whether shapes count, but none of them is known.
    fn is_exhausted(&self) -> bool {
        self.shapes[0] == NOTHING && self.bound < f64::INFINITY
    }

    /// Takes a shape out; whether it was known.
    fn remove(&mut self, shape: u32) -> bool {
        let Some(at) = self.shapes.iter().position(|one| *one == shape) else { return false };
        for next in at + 1..LEAST {
            (self.keys[next - 1], self.shapes[next - 1]) = (self.keys[next], self.shapes[next]);
        }
        (self.keys[LEAST - 1], self.shapes[LEAST - 1]) = (f64::INFINITY, NOTHING);
        true
    }

    /// Takes a shape in; whether it is known since.
    fn insert(&mut self, key: f64, shape: u32) -> bool {
        if key >= self.bound {
            return false;
        }
        let Some(at) = self.keys.iter().position(|one| key < *one) else {
            self.bound = key;
            return false;
        };
        if self.shapes[LEAST - 1] != NOTHING {
            self.bound = self.keys[LEAST - 1];
        }
        for next in (at + 1..LEAST).rev() {
            (self.keys[next], self.shapes[next]) = (self.keys[next - 1], self.shapes[next - 1]);
        }
        (self.keys[at], self.shapes[at]) = (key, shape);
        true
    }
}

/// The key of a shape in a draw: the minimum over all shapes is each one's as often as its part of all weights is.
fn key(numbers: &Numbers, sequence: usize, weight: u32) -> f64 {
    exponential(numbers.of_sequence(sequence)) / f64::from(weight)
}

/// The random numbers of a shape at one place of all sequences. One lies in each of as many equal parts of all numbers, in an order of the shape's own:
/// so all sequences together hold a shape about as often as it counts, and what they make of a room is less a matter of luck.
struct Numbers(u64);

impl Numbers {
    fn of(seed: u64, at: usize) -> Self {
        Self(mixed(seed ^ mixed(at as u64 + 1)))
    }

    fn of_sequence(&self, sequence: usize) -> u64 {
        let (own, sequence, parts) = (self.0, sequence as u64, SEQUENCES as u64);
        // Odd factors and sums lead from each part to another one.
        let turned =
            (sequence ^ (own % parts)).wrapping_mul((own / parts) | 1).wrapping_add(own >> 32) % parts;
        let bits = SEQUENCES.ilog2();
        (turned << (u64::BITS - bits)) | (mixed(own.wrapping_add(sequence)) >> bits)
    }
}

/// The bits of a number mixed up: the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

/// How often a number can be halved, with its fraction: of random numbers this is distributed as the time to the next of random events. The logarithm
/// is taken by a parabola, so that it is the same on every machine.
#[expect(clippy::cast_precision_loss, reason = "the lowest bits of a random number")]
fn exponential(number: u64) -> f64 {
    let zeros = number.leading_zeros();
    let mantissa = 1.0 + ((number << zeros << 1) >> 12) as f64 / (1_u64 << 52) as f64;
    f64::from(zeros) + 2.0 - ((2.0 - mantissa / 3.0) * mantissa - 2.0 / 3.0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::{
        device::{CoreRequest, MemoryRequest, MiB, ModelFilter},
        scheduling::model::pod_shape::CardShape,
    };

    fn shape(number: u32) -> Arc<PodShape> {
        let share = ShareShape {
            profile: "hami".into(),
            memory: MemoryRequest::Exact(MiB::new(u64::from(number % 7))),
            cores: CoreRequest::NONE,
            alone: false,
            models: ModelFilter::default(),
            modes: None,
            typed: false,
            devices: BTreeMap::new(),
        };
        Arc::new(PodShape { cpu: number, memory: 0, cards: CardShape { count: 1, share } })
    }

    /// The cpu of each pod drawn, by which these shapes are told apart.
    fn drawn(mix: &Mix) -> Vec<Option<u32>> {
        let none = vec![NOTHING; SEQUENCES * DRAWS];
        let pods = if mix.drawn.is_empty() { &none } else { &*mix.drawn };
        pods.iter().map(|place| Some(mix.shape(*place)?.cpu)).collect()
    }

    /// What is drawn where all keys are compared.
    fn compared(mix: &Mix) -> Vec<Option<u32>> {
        let least = |sequence: usize, at: usize| {
            let counting = mix.shapes.iter().filter(|shape| shape.weight > 0);
            let keys =
                counting.map(|shape| (key(&Numbers::of(shape.seed, at), sequence, shape.weight), shape.cpu));
            keys.min_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, cpu)| cpu)
        };
        let pods = (0..SEQUENCES).flat_map(|sequence| (0..DRAWS).map(move |at| (sequence, at)));
        pods.map(|(sequence, at)| least(sequence, at)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn the_shape_with_the_least_key_is_drawn_whatever_counted_before(
            changes in prop::collection::vec((0_u32..9, prop_oneof![Just(0), 1..5_u32, Just(4096)]), 1..40),
        ) {
            let mut mix = Mix::default();
            let mut before = drawn(&mix);
            for (number, weight) in changes {
                let version = mix.version;
                mix.weigh(&shape(number), weight, &CardKinds::default());
                let now = drawn(&mix);
                let first = |sequence: usize| {
                    let pods = sequence * DRAWS..(sequence + 1) * DRAWS;
                    before[pods.clone()].iter().zip(&now[pods]).position(|(one, other)| one != other)
                };
                if mix.version > version {
                    let change = mix.since(version).unwrap().last().unwrap();
                    for (sequence, told) in change.first.iter().enumerate() {
                        prop_assert_eq!(usize::from(*told), first(sequence).unwrap_or(255));
                    }
                } else {
                    prop_assert_eq!(&before, &now);
                }
                before = now;
            }
            prop_assert_eq!(before, compared(&mix));
        }
    }

    #[test]
    fn shapes_that_count_no_more_are_forgotten_and_change_nothing() {
        let kinds = CardKinds::default();
        let mut mix = Mix::default();
        let staying: Vec<_> = (0..4).map(|number| shape(10_000 + number)).collect();
        for shape in &staying {
            mix.weigh(shape, 1 << 20, &kinds);
        }
        let before = drawn(&mix);
        let many = u32::try_from(4 * MOST_SHAPES).unwrap();
        for number in 0..=many {
            mix.weigh(&shape(number), 1, &kinds);
            mix.weigh(&shape(number), 0, &kinds);
        }
        assert!(mix.shapes.len() < MOST_SHAPES, "{}", mix.shapes.len());
        assert_eq!((drawn(&mix), compared(&mix)), (before.clone(), before));
        assert!(staying.iter().all(|shape| mix.weight(shape) == 1 << 20));
        let asked = |shape: &MixedShape| mix.shares[shape.share] == shape.shape.cards.share;
        assert!(mix.shapes.iter().all(asked), "each shape has the share that it asks for");
        let changes = mix.since(mix.version - 64).unwrap();
        let forgotten = changes.filter(|change| change.shape >= mix.shapes.len());
        assert_eq!(forgotten.count(), 0);
        assert!(mix.since(mix.version - 65).is_none());
    }
}
