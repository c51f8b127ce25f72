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

/// What pods of this shape could take, in thousandths of a card and parts of [`FRACTION`].
fn of_shape(room: &Room, shape: &MixedShape, fitting: ShareFit) -> i64 {
    let cards = if shape.count == 1 { fitting.shares } else { fitting.cards / shape.count };
    if cards == 0 || shape.cpu > room.cpu || shape.memory > room.memory {
        return 0;
    }
    let times = |free: u32, each: u32| {
        if each == 0 { f64::INFINITY } else { f64::from(free) / f64::from(each) }
    };
    let pods = f64::from(cards).min(times(room.cpu, shape.cpu)).min(times(room.memory, shape.memory));
    let taken = f64::from(shape.count) * f64::from(fitting.worth) * pods;
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
    let shapes = mix.shapes().iter().filter(|shape| shape.weight > 0);
    shapes.map(|shape| i64::from(shape.weight) * of_shape(room, shape, fittings[shape.share])).sum()
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
    of_shape(room, shape, fit)
}
