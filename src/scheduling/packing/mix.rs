//! Which pods may come: the shapes of those that are there, each as often as it counts, and sequences of such pods drawn from them.
//!
//! A draw takes the shape with the least key, and the key of a shape in a draw depends on that shape, its weight and the number of the draw
//! alone. So the sequences are a function of the weights, and where one weight changes, few draws do: most of what rooms are worth stays known.

use std::{collections::HashMap, sync::Arc};

use super::census::{MOST_SHAPES, seed};
use crate::{
    device::ModelFilter,
    scheduling::model::{
        card_kind::CardKinds,
        pod_shape::{PodShape, Portion, ShareShape},
    },
};

/// So many sequences of pods are drawn: a power of 2.
pub(super) const SEQUENCES: usize = 16;

/// So many pods are drawn for each.
pub(super) const DRAWS: usize = 240;

/// With how much one pod counts: made-up pods count in parts of one.
pub(super) const POD: u32 = 1024;

/// So many changes of weights are remembered.
const REMEMBERED: usize = 64;

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

/// A share that shapes of the mix ask for.
#[derive(Clone, Debug)]
pub(super) struct MixedShare {
    shape: ShareShape,
    /// What it comes to, by kind of card.
    portions: Vec<Option<Portion>>,
}

impl MixedShare {
    /// Which models serve it.
    pub(super) fn models(&self) -> &ModelFilter {
        &self.shape.models
    }

    /// What it comes to on a card of the kind at this place.
    pub(super) fn on(&self, kind: usize) -> Option<&Portion> {
        self.portions.get(kind)?.as_ref()
    }
}

/// One pod drawn: the place of its shape, with the least key.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Draw {
    key: f64,
    shape: u32,
}

const NOTHING: Draw = Draw { key: f64::INFINITY, shape: u32::MAX };

/// A weight that has changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reweighed {
    pub(super) version: u64,
    pub(super) shape: usize,
    pub(super) by: i64,
}

/// The shapes that may come, with sequences of pods drawn from them.
#[derive(Clone, Debug)]
pub struct Mix {
    /// Greater after every change.
    pub(super) version: u64,
    shapes: Arc<Vec<MixedShape>>,
    places: Arc<HashMap<Arc<PodShape>, usize>>,
    shares: Arc<Vec<MixedShare>>,
    draws: Arc<Vec<Draw>>,
    /// By draw, the version at which it changed last.
    changed: Arc<Vec<u64>>,
    /// The last changes, oldest first.
    log: Arc<Vec<Reweighed>>,
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
            draws: Arc::new(vec![NOTHING; SEQUENCES * DRAWS]),
            changed: Arc::new(vec![1; SEQUENCES * DRAWS]),
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

    /// Every share that they ask for.
    pub(super) fn shares(&self) -> &[MixedShare] {
        &self.shares
    }

    /// The share of this place.
    pub(super) fn share(&self, place: usize) -> &MixedShare {
        &self.shares[place]
    }

    /// The shape drawn as this pod of a sequence; `None`: the mix is empty.
    pub(super) fn drawn(&self, sequence: usize, at: usize) -> Option<&MixedShape> {
        self.shapes.get(self.draws[sequence * DRAWS + at].shape as usize)
    }

    /// Whether the first pods of a sequence, so many, have changed since this version.
    pub(super) fn has_changed(&self, sequence: usize, first: usize, since: u64) -> bool {
        let from = sequence * DRAWS;
        self.changed[from..from + first].iter().any(|changed| *changed > since)
    }

    /// By how much weights have changed since this version; `None`: that is not remembered any more.
    pub(super) fn since(&self, version: u64) -> Option<impl Iterator<Item = &Reweighed>> {
        let forgotten = self.version - self.log.len() as u64;
        (version >= forgotten).then(|| self.log.iter().filter(move |one| one.version > version))
    }

    /// Takes in kinds of cards that are new.
    pub(super) fn know(&mut self, kinds: &CardKinds) {
        let known = |share: &MixedShare| share.portions.len() == kinds.all().len();
        if !self.shares.iter().all(known) {
            for share in Arc::make_mut(&mut self.shares) {
                let new = kinds.all().iter().skip(share.portions.len());
                let new: Vec<_> = new.map(|kind| share.shape.on(kind)).collect();
                share.portions.extend(new);
            }
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
        let log = Arc::make_mut(&mut self.log);
        if log.len() == REMEMBERED {
            log.remove(0);
        }
        log.push(Reweighed {
            version: self.version,
            shape: place,
            by: i64::from(weight) - i64::from(before),
        });
        self.draw(place, weight > before);
    }

    /// Forgets the shapes that count no more, once they are many.
    fn compact(&mut self, kinds: &CardKinds) {
        if self.shapes.len() <= 4 * MOST_SHAPES {
            return;
        }
        let mut kept: Vec<_> = self.shapes.iter().filter(|shape| shape.weight > 0).cloned().collect();
        kept.sort_by(|one, other| one.shape.cmp(&other.shape));
        let mut anew = Self { version: self.version, total: self.total, ..Self::default() };
        for MixedShape { shape, weight, .. } in &kept {
            let place = anew.add(shape, kinds);
            Arc::make_mut(&mut anew.shapes)[place].weight = *weight;
            anew.draw(place, true);
        }
        // The draws are what they were, at other places.
        anew.changed = self.changed.clone();
        *self = anew;
    }

    fn add(&mut self, shape: &Arc<PodShape>, kinds: &CardKinds) -> usize {
        self.compact(kinds);
        let asked = &shape.cards.share;
        let at = self.shares.iter().position(|share| share.shape == *asked).unwrap_or_else(|| {
            let portions = kinds.all().iter().map(|kind| asked.on(kind)).collect();
            let shares = Arc::make_mut(&mut self.shares);
            shares.push(MixedShare { shape: asked.clone(), portions });
            shares.len() - 1
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
            share: at,
        });
        place
    }

    /// Draws anew where the weight of this shape decides.
    fn draw(&mut self, place: usize, grew: bool) {
        let shapes = &self.shapes;
        let own = &shapes[place];
        let at = u32::try_from(place).unwrap_or(u32::MAX);
        let draws = Arc::make_mut(&mut self.draws).iter_mut();
        let changed = Arc::make_mut(&mut self.changed).iter_mut();
        for (number, (draw, changed)) in draws.zip(changed).enumerate() {
            let before = draw.shape;
            if draw.shape == at && !grew {
                let keys = shapes.iter().zip(0_u32..).filter(|(one, _)| one.weight > 0);
                *draw = keys.fold(NOTHING, |least, (one, shape)| {
                    let key = key(one, number);
                    if key < least.key { Draw { key, shape } } else { least }
                });
            } else if own.weight > 0 {
                let key = key(own, number);
                if key < draw.key || draw.shape == at {
                    *draw = Draw { key, shape: at };
                }
            }
            if draw.shape != before {
                *changed = self.version;
            }
        }
    }
}

/// The key of a shape in a draw: the minimum over all shapes is each one's as often as its part of all weights is.
fn key(shape: &MixedShape, draw: usize) -> f64 {
    exponential(number(shape.seed, draw)) / f64::from(shape.weight)
}

/// The random number of a shape in a draw. At one place of all sequences it lies once in each of as many equal parts of all numbers, in an order of
/// the shape's own: so all sequences together hold a shape about as often as it counts, and what they make of a room is less a matter of luck.
fn number(seed: u64, draw: usize) -> u64 {
    let parts = SEQUENCES as u64;
    let (sequence, at) = ((draw / DRAWS) as u64, (draw % DRAWS) as u64);
    let own = mixed(seed ^ mixed(at + 1));
    // Odd factors and sums lead from each part to another one.
    let turned = (sequence ^ (own % parts)).wrapping_mul((own / parts) | 1).wrapping_add(own >> 32) % parts;
    let bits = SEQUENCES.ilog2();
    (turned << (u64::BITS - bits)) | (mixed(own.wrapping_add(sequence)) >> bits)
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
