//! A physical card and the cards of a node.

use std::{borrow::Borrow, collections::BTreeMap, fmt, sync::Arc};

use super::{
    amount::{Cores, MiB},
    node_devices::NodeDevices,
    slice::Slicing,
};

/// A card's identity: its uuid. Cards of one uuid are one card, whichever plugin names them.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CardId(Arc<str>);

impl CardId {
    /// The uuid.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: AsRef<str>> From<T> for CardId {
    fn from(uuid: T) -> Self {
        Self(Arc::from(uuid.as_ref()))
    }
}

impl Borrow<str> for CardId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CardId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Whether new pods may be given a card.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Health {
    /// It works.
    Healthy,
    /// Its plugin says that it does not.
    Unhealthy,
    /// An operator keeps new pods off it; running ones stay.
    Cordoned,
}

/// How the node's plugin slices a card.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Mode {
    /// Any amount of memory and compute, enforced in software.
    Soft,
    /// Fixed hardware slices.
    Mig,
    /// NVIDIA's multi-process service.
    Mps,
    /// Sizes of memory that the vendor's driver knows, each a template.
    Templates,
}

/// One card and what there is of it to share.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Card {
    /// Its uuid.
    pub id: CardId,
    /// Its number on the node, from 0.
    pub index: u32,
    /// How many containers may share it.
    pub slots: u32,
    /// Memory to share.
    pub memory: MiB,
    /// Compute to share, in the unit of the cards' profile: 100 percent for one card, more where the plugin scales it.
    pub cores: Cores,
    /// The product name, as the plugin spells it.
    pub model: Arc<str>,
    /// The NUMA node that it hangs on.
    pub numa: u32,
    /// How it is sliced.
    pub mode: Mode,
    /// How it may be cut, where it is cut in hardware.
    pub slicing: Slicing,
    /// Whether new pods may be given it.
    pub health: Health,
}

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
    /// The cards in order of number, then uuid: plugins list them in any order.
    pub fn new(mut cards: Vec<Card>) -> Self {
        cards.sort_by(|a, b| (a.index, &a.id).cmp(&(b.index, &b.id)));
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
