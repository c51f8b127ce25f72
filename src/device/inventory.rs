//! What one plugin offers on a node: its cards and the links between them, or its typed devices.

use std::collections::BTreeMap;

use super::{
    card::{Card, CardId},
    node_devices::NodeDevices,
};

/// What one plugin offers on a node: cards by their number, or devices by type.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Inventory {
    cards: Vec<Card>,
    links: Links,
    devices: NodeDevices,
}

/// How well cards of a node are linked, from one to another; a pair that is not there: 0.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Links(BTreeMap<CardId, BTreeMap<CardId, i64>>);

impl Links {
    /// Whether no pair is linked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How well the first is linked to the second.
    pub fn between(&self, first: &CardId, second: &CardId) -> i64 {
        self.0.get(first).and_then(|others| others.get(second)).copied().unwrap_or(0)
    }
}

impl FromIterator<(CardId, CardId, i64)> for Links {
    fn from_iter<I: IntoIterator<Item = (CardId, CardId, i64)>>(pairs: I) -> Self {
        let mut links = Self::default();
        for (first, second, score) in pairs {
            links.0.entry(first).or_default().insert(second, score);
        }
        links
    }
}

impl Inventory {
    /// The cards in order of number, then uuid: plugins list them in any order. The model of alike cards is kept once.
    pub fn new(mut cards: Vec<Card>) -> Self {
        cards.sort_by(|a, b| (a.index, &a.id).cmp(&(b.index, &b.id)));
        let mut models = cards.iter_mut().map(|card| &mut card.model);
        if let Some(first) = models.next() {
            models.filter(|model| *model == first).for_each(|model| model.clone_from(first));
        }
        cards.shrink_to_fit();
        Self { cards, ..Self::default() }
    }

    /// With what is known of the links between them.
    #[must_use]
    pub fn with_links(mut self, links: Links) -> Self {
        self.links = links;
        self
    }

    /// With these devices of several types.
    #[must_use]
    pub fn with_devices(mut self, devices: NodeDevices) -> Self {
        self.devices = devices;
        self
    }

    /// With each card as this makes it.
    #[must_use]
    pub fn map(self, change: impl FnMut(Card) -> Card) -> Self {
        Self { cards: self.cards.into_iter().map(change).collect(), ..self }
    }

    /// The devices by type; none where the plugin offers cards.
    pub fn devices(&self) -> &NodeDevices {
        &self.devices
    }

    /// How well the cards are linked.
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// The cards, by number.
    pub fn cards(&self) -> &[Card] {
        &self.cards
    }

    /// A card that is there twice, if any.
    pub fn duplicate(&self) -> Option<&CardId> {
        let mut ids: Vec<_> = self.cards.iter().map(|card| &card.id).collect();
        ids.sort();
        ids.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }
}
