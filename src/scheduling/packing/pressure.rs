//! How much pods ask for cards of some kinds alone: such cards are left to them.

use std::collections::BTreeMap;

use super::{fleet::Fleet, mix::Mix};
use crate::{device::ModelFilter, scheduling::model::card_kind::KindId};

/// What is asked is counted in so small parts, so that sums are exact.
const FRACTION: u128 = 1 << 20;

/// By kind of card, how much of it is asked for by pods that take only some models, in parts of what there is, if all that is asked for were as much as
/// there is.
#[derive(Clone, Debug, Default)]
pub struct Pressure(BTreeMap<KindId, u64>);

impl Pressure {
    /// How much of this kind is asked for, in millionths, of which there are at most a million.
    pub fn of_kind(&self, kind: KindId) -> u64 {
        self.0.get(&kind).copied().unwrap_or(0)
    }

    pub(super) fn of(mix: &Mix, fleet: &Fleet) -> Self {
        let cards = fleet.cards();
        let mut asked_in_all = 0;
        let mut by_kind: BTreeMap<KindId, u128> = BTreeMap::new();
        for shape in mix.shapes().iter().filter(|shape| shape.weight > 0) {
            let share = mix.share(shape.share);
            let admitted =
                || cards.iter().filter_map(|(kind, cards)| Some((*kind, *cards, share.on(kind.place())?)));
            let Some(worth) = admitted().map(|(.., portion)| portion.worth).max() else { continue };
            let asked = u128::from(shape.weight) * u128::from(shape.count) * u128::from(worth);
            asked_in_all += asked;
            if share.models() == &ModelFilter::default() {
                continue;
            }
            let own: u64 = admitted().map(|(_, cards, _)| cards).sum();
            for (kind, ..) in admitted() {
                *by_kind.entry(kind).or_default() += asked * FRACTION / u128::from(own.max(1));
            }
        }
        let all: u64 = cards.values().sum();
        let of_all = |asked: u128| {
            let millionths = asked * u128::from(all) * 1_000_000 / (FRACTION * asked_in_all).max(1);
            u64::try_from(millionths).unwrap_or(u64::MAX).min(1_000_000)
        };
        Self(by_kind.into_iter().map(|(kind, asked)| (kind, of_all(asked))).collect())
    }
}
