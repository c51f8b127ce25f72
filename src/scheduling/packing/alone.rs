//! How much of a room each shape of the mix could take if no other came: it keeps room for large pods that random sequences seldom hold.

use smallvec::SmallVec;

use super::{
    mix::{Mix, MixedShape},
    room::{Room, RoomCard},
};
use crate::scheduling::model::pod_shape::Portion;

/// Thousandths of a card are counted in parts of this, so that sums are exact.
pub(super) const FRACTION: f64 = 1024.0;

/// What a room has for one share.
#[derive(Clone, Copy, Debug, Default)]
struct ShareFit {
    /// How many pods with one such share it has cards for.
    shares: u32,
    /// How many cards take one.
    cards: u32,
    /// What one is worth, in thousandths of a card.
    worth: u32,
}

/// The cards of a room, those that are alike once, with how many these are.
type AlikeCards = SmallVec<[(RoomCard, u32); 8]>;

fn alike_cards(room: &Room) -> AlikeCards {
    let mut alike = AlikeCards::new();
    for card in &room.cards {
        match alike.last_mut() {
            Some((last, count)) if last == card => *count += 1,
            _ => alike.push((*card, 1)),
        }
    }
    alike
}

impl ShareFit {
    /// With one card after a pod in place of before.
    fn with(self, before: &RoomCard, after: &RoomCard, portion: &Portion) -> Self {
        let [before, after] = [before, after].map(|card| card.times(portion));
        let shares = self.shares - before + after;
        Self {
            shares,
            cards: self.cards - u32::from(before > 0) + u32::from(after > 0),
            worth: portion.worth,
        }
    }

    fn add(&mut self, card: &RoomCard, alike: u32, portion: &Portion) {
        let times = card.times(portion);
        if times > 0 {
            self.shares = self.shares.saturating_add(times.saturating_mul(alike));
            self.cards += alike;
            if self.worth == 0 {
                self.worth = portion.worth;
            }
        }
    }
}

/// How many pods of this shape this cpu and memory would do for, in parts of one too where it would do for one.
fn times([cpu, memory]: [u32; 2], shape: &MixedShape) -> f64 {
    if shape.cpu > cpu || shape.memory > memory {
        return 0.0;
    }
    let times = |free: u32, each: u32| {
        if each == 0 { f64::INFINITY } else { f64::from(free) / f64::from(each) }
    };
    times(cpu, shape.cpu).min(times(memory, shape.memory))
}

/// What pods of this shape could take, in thousandths of a card and parts of [`FRACTION`], where cpu and memory do for so many.
fn of_shape(shape: &MixedShape, fitting: ShareFit, times: f64) -> i64 {
    let cards = if shape.count == 1 { fitting.shares } else { fitting.cards / shape.count };
    if cards == 0 {
        return 0;
    }
    let taken = f64::from(shape.count) * f64::from(fitting.worth) * f64::from(cards).min(times);
    #[expect(clippy::cast_possible_truncation, reason = "a room has less than 2^40 of it")]
    let whole = (taken * FRACTION) as i64;
    whole
}

/// The sum over all shapes, each with its weight.
pub(super) fn all(room: &Room, mix: &Mix) -> i64 {
    let mut fittings: SmallVec<[ShareFit; 64]> = SmallVec::from_elem(ShareFit::default(), mix.shares().len());
    for (card, alike) in alike_cards(room) {
        for (fit, portion) in fittings.iter_mut().zip(mix.portions(card.kind.place())) {
            if let Some(portion) = portion {
                fit.add(&card, alike, portion);
            }
        }
    }
    let left = [room.cpu, room.memory];
    let shapes = mix.shapes().iter().filter(|shape| shape.weight > 0);
    shapes
        .map(|shape| i64::from(shape.weight) * of_shape(shape, fittings[shape.share], times(left, shape)))
        .sum()
}

/// As [`all`], of each room that is left where one of the cards of a room becomes another: before and after. So much cpu and memory is left in all of them.
/// `None`: the cards are not of one kind.
///
/// The rooms have all other cards in common, and what these take is found out once.
pub(super) fn of_choices(
    room: &Room,
    left: [u32; 2],
    choices: &[[RoomCard; 2]],
    mix: &Mix,
) -> Option<SmallVec<[i64; 8]>> {
    let kind = room.cards.first()?.kind;
    if room.cards.iter().any(|card| card.kind != kind) {
        return None;
    }
    let portions = mix.portions(kind.place());
    let mut common = vec![ShareFit::default(); portions.len()];
    for (card, alike) in alike_cards(room) {
        for (fit, portion) in common.iter_mut().zip(portions) {
            if let Some(portion) = portion {
                fit.add(&card, alike, portion);
            }
        }
    }
    let shapes: Vec<_> = mix.shapes().iter().filter(|shape| shape.weight > 0).collect();
    let times: Vec<f64> = shapes.iter().map(|shape| times(left, shape)).collect();
    let mut fittings = common.clone();
    let of_choice = |[before, after]: &[RoomCard; 2]| {
        for ((fit, common), portion) in fittings.iter_mut().zip(&common).zip(portions) {
            if let Some(portion) = portion {
                *fit = common.with(before, after, portion);
            }
        }
        let shapes = shapes.iter().zip(&times);
        shapes
            .map(|(shape, times)| i64::from(shape.weight) * of_shape(shape, fittings[shape.share], *times))
            .sum()
    };
    Some(choices.iter().map(of_choice).collect())
}

/// The part of one shape, with a weight of 1.
pub(super) fn one(room: &Room, shape: usize, mix: &Mix) -> i64 {
    let shape = &mix.shapes()[shape];
    let mut fit = ShareFit::default();
    for (card, alike) in alike_cards(room) {
        if let Some(portion) = mix.portion(shape.share, card.kind.place()) {
            fit.add(&card, alike, portion);
        }
    }
    of_shape(shape, fit, times([room.cpu, room.memory], shape))
}
