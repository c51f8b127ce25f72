//! In which order a container tries the cards of a node.

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::{CardScene, core_budget};
use crate::{
    device::{Blend, Card, CardPreference, CardUsage, ShareRequest, Tie},
    scheduling::plugin::score,
};

/// A card, and what decides when it is tried: the less, the sooner.
struct RankedCard<'a> {
    card: &'a Card,
    in_use: CardUsage,
    /// What it has in each measure, in their order.
    rank: SmallVec<[i64; 3]>,
}

/// The node's cards, the one to be tried first first, each with what is in use of it before the container. What the container asks counts into how full
/// a card is.
pub fn preferred<'a>(scene: &CardScene<'a>, ask: ShareRequest) -> Vec<(&'a Card, CardUsage)> {
    let mut cards: Vec<_> =
        scene.inventory.cards().iter().map(|card| RankedCard::of(scene, card, ask)).collect();
    cards.sort_by(|a, b| a.rank.cmp(&b.rank).then_with(|| tie(scene.profile.tie, a.card, b.card)));
    let mut cards: Vec<_> = cards.into_iter().map(|ranked| (ranked.card, ranked.in_use)).collect();
    if let Some(first) = scene.first {
        cards.sort_by_key(|(card, _)| card.id != *first);
    }
    cards
}

impl<'a> RankedCard<'a> {
    fn of(scene: &CardScene<'_>, card: &'a Card, ask: ShareRequest) -> Self {
        let now = scene.in_use(card);
        let (memory, cores) = (ask.memory.of(card.memory), ask.cores.of(card.cores));
        let then = now.and(CardUsage { slots: 1, memory, cores });
        let budget = core_budget(scene.profile, card);
        let fullness = score::fullness(then, card, budget, scene.request.choice.weights);
        let measures = scene.request.choice.order.iter();
        Self {
            card,
            in_use: now,
            rank: measures.map(|&of| measure(of, scene.profile.blend, card, now, fullness)).collect(),
        }
    }
}

/// What a card has in a measure; the less, the sooner it is tried.
fn measure(preference: CardPreference, blend: Blend, card: &Card, now: CardUsage, fullness: f64) -> i64 {
    match (preference, blend) {
        (CardPreference::Fullest | CardPreference::LeastWaste, Blend::Even) => reversed(ordered(fullness)),
        (CardPreference::Emptiest, Blend::Even) => ordered(fullness),
        (CardPreference::Fullest | CardPreference::LeastWaste, Blend::MemoryThenSlots) => {
            reversed(i64::try_from(now.memory.get()).unwrap_or(i64::MAX))
        }
        (CardPreference::FewestUsers, _) | (CardPreference::Emptiest, Blend::MemoryThenSlots) => {
            now.slots.into()
        }
        (CardPreference::HighestNuma, _) => reversed(card.numa.into()),
        (CardPreference::LowestNuma, _) => card.numa.into(),
    }
}

/// An integer in whose order numbers are as in [`f64::total_cmp`].
const fn ordered(number: f64) -> i64 {
    let bits = number.to_bits().cast_signed();
    // Of negative numbers, all bits but the sign count the other way round.
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

/// The opposite order.
const fn reversed(rank: i64) -> i64 {
    !rank
}

fn tie(tie: Tie, a: &Card, b: &Card) -> Ordering {
    match tie {
        Tie::Highest => (b.index, &b.id).cmp(&(a.index, &a.id)),
        Tie::Lowest => (a.index, &a.id).cmp(&(b.index, &b.id)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_numbers_have_the_order_of_the_numbers() {
        let numbers = [
            f64::NEG_INFINITY,
            -30.0,
            -1.5,
            -f64::MIN_POSITIVE,
            -0.0,
            0.0,
            0.1 + 0.2,
            0.4,
            30.0,
            f64::INFINITY,
        ];
        for pair in numbers.windows(2) {
            assert_eq!(pair[0].total_cmp(&pair[1]), Ordering::Less, "{pair:?}");
            assert!(ordered(pair[0]) < ordered(pair[1]), "{pair:?}");
            assert!(reversed(ordered(pair[0])) > reversed(ordered(pair[1])), "{pair:?}");
        }
    }
}
