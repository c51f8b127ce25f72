//! How much pods ask for that only some cards, or only some nodes, could give them: both are left to those pods.

use std::collections::BTreeMap;

use super::{
    fleet::{Fleet, NodeSize},
    mix::Mix,
};
use crate::{device::ModelFilter, scheduling::model::card_kind::KindId};

/// What is asked is counted in so small parts, so that sums are exact.
const FRACTION: u128 = 1 << 20;

/// What is asked for, in parts of what there is, if all that is asked for were as much as there is.
#[derive(Clone, Debug, Default)]
pub struct Pressure {
    /// By kind of card, by pods that take only some models.
    kinds: BTreeMap<KindId, u64>,
    /// By size of node, by pods for which some nodes are too small though their cards would serve: how much more it is than if none were.
    sizes: BTreeMap<NodeSize, u64>,
}

impl Pressure {
    /// How much of this kind is asked for, in millionths, of which there are at most a million.
    pub fn of_kind(&self, kind: KindId) -> u64 {
        self.kinds.get(&kind).copied().unwrap_or(0)
    }

    /// How much more is asked of nodes of this size than if no node were too small for a pod, in millionths, of which there are at most a million.
    pub fn of_size(&self, size: NodeSize) -> u64 {
        self.sizes.get(&size).copied().unwrap_or(0)
    }

    pub(super) fn of(mix: &Mix, fleet: &Fleet) -> Self {
        let cards = fleet.cards();
        let mut asked_in_all = 0;
        let mut by_kind: BTreeMap<KindId, u128> = BTreeMap::new();
        let mut by_size: BTreeMap<NodeSize, u128> = BTreeMap::new();
        for shape in mix.shapes().iter().filter(|shape| shape.weight > 0) {
            let on = |kind: KindId| mix.portion(shape.share, kind.place());
            let admitted = || cards.iter().filter_map(|(kind, cards)| Some((*kind, *cards, on(*kind)?)));
            let Some(worth) = admitted().map(|(.., portion)| portion.worth).max() else { continue };
            let asked = u128::from(shape.weight) * u128::from(shape.count) * u128::from(worth);
            asked_in_all += asked;
            let large = fleet.sizes().iter().filter(|(size, _)| {
                size.cards >= shape.count
                    && size.cpu >= shape.cpu
                    && size.memory >= shape.memory
                    && on(size.kind).is_some()
            });
            let admitting: u64 = admitted().map(|(_, cards, _)| cards).sum();
            let own: u64 = large.clone().map(|(_, cards)| cards).sum();
            if 0 < own && own < admitting {
                let more = asked * FRACTION * u128::from(admitting - own)
                    / (u128::from(own) * u128::from(admitting));
                for (size, _) in large {
                    *by_size.entry(*size).or_default() += more;
                }
            }
            if mix.shares()[shape.share].models != ModelFilter::default() {
                for (kind, ..) in admitted() {
                    *by_kind.entry(kind).or_default() += asked * FRACTION / u128::from(admitting.max(1));
                }
            }
        }
        let all: u64 = cards.values().sum();
        let of_all = |asked: u128| {
            let millionths = asked * u128::from(all) * 1_000_000 / (FRACTION * asked_in_all).max(1);
            u64::try_from(millionths).unwrap_or(u64::MAX).min(1_000_000)
        };
        Self {
            kinds: by_kind.into_iter().map(|(kind, asked)| (kind, of_all(asked))).collect(),
            sizes: by_size.into_iter().map(|(size, asked)| (size, of_all(asked))).collect(),
        }
    }
}
