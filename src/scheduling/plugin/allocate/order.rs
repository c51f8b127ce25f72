//! In which order a container tries the cards of a node.

use std::cmp::Ordering;

use super::{CardScene, core_budget};
use crate::{
    device::{Blend, Card, CardPreference, CardUsage, Share, ShareRequest, Tie},
    scheduling::plugin::score,
};

/// A card as it would stand with the share on it, beside what is in use now.
struct CardStanding<'a> {
    card: &'a Card,
    now: CardUsage,
    fullness: f64,
}

/// The node's cards, the one to be tried first first. What the container asks counts into how full a card is.
pub fn preferred<'a>(scene: &CardScene<'a>, ask: ShareRequest) -> Vec<&'a Card> {
    let mut cards: Vec<_> =
        scene.inventory.cards().iter().map(|card| CardStanding::of(scene, card, ask)).collect();
    let is_first = |card: &Card| scene.first.is_some_and(|first| *first == card.id);
    cards.sort_by(|a, b| {
        if is_first(a.card) != is_first(b.card) {
            return is_first(b.card).cmp(&is_first(a.card));
        }
        let first = |order: Ordering, measure| order.then_with(|| compare(scene, measure, a, b));
        let measures = scene.request.choice.order.iter().copied();
        measures.fold(Ordering::Equal, first).then_with(|| tie(scene.profile.tie, a.card, b.card))
    });
    cards.into_iter().map(|standing| standing.card).collect()
}

impl<'a> CardStanding<'a> {
    fn of(scene: &CardScene<'_>, card: &'a Card, ask: ShareRequest) -> Self {
        let now = scene.in_use(card);
        let share = Share {
            card: card.id.clone(),
            memory: ask.memory.of(card.memory),
            cores: ask.cores.of(card.cores),
            slice: None,
        };
        let budget = core_budget(scene.profile, card);
        let fullness = score::fullness(now.with(&share), card, budget, scene.request.choice.weights);
        Self { card, now, fullness }
    }
}

/// Less: the first is tried before the second.
fn compare(
    scene: &CardScene<'_>,
    measure: CardPreference,
    a: &CardStanding<'_>,
    b: &CardStanding<'_>,
) -> Ordering {
    match (measure, scene.profile.blend) {
        (CardPreference::Fullest | CardPreference::LeastWaste, Blend::Even) => {
            b.fullness.total_cmp(&a.fullness)
        }
        (CardPreference::Emptiest, Blend::Even) => a.fullness.total_cmp(&b.fullness),
        (CardPreference::Fullest | CardPreference::LeastWaste, Blend::MemoryThenSlots) => {
            b.now.memory.cmp(&a.now.memory)
        }
        (CardPreference::FewestUsers, _) | (CardPreference::Emptiest, Blend::MemoryThenSlots) => {
            a.now.slots.cmp(&b.now.slots)
        }
        (CardPreference::HighestNuma, _) => b.card.numa.cmp(&a.card.numa),
        (CardPreference::LowestNuma, _) => a.card.numa.cmp(&b.card.numa),
    }
}

fn tie(tie: Tie, a: &Card, b: &Card) -> Ordering {
    match tie {
        Tie::Highest => (b.index, &b.id).cmp(&(a.index, &a.id)),
        Tie::Lowest => (a.index, &a.id).cmp(&(b.index, &b.id)),
    }
}
