//! What all plugins of a node have registered, and which of their cards are one.
//!
//! A card that one plugin knows by number is the one that another knows by uuid: both count as the driver does. It must not guess: a
//! number that another plugin gives to several cards says nothing.

use super::{CardNaming, Dialects, SharingMode, Unreadable};
use crate::{
    device::{Card, CardId, Inventory, ProfileName},
    object::Node,
};

/// What one plugin has registered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Registration {
    /// Whose plugin.
    pub profile: ProfileName,
    /// The mode that it serves.
    pub mode: SharingMode,
    /// What it calls its cards by.
    pub naming: CardNaming,
    /// Its cards.
    pub inventory: Result<Inventory, Unreadable>,
}

/// What all plugins of a node have registered.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Registered {
    /// Plugin by plugin; one that does not run there is absent.
    pub plugins: Vec<Registration>,
    /// Cards with two names: a number and a uuid.
    pub aliases: Vec<(CardId, CardId)>,
}

impl Registered {
    /// What is registered on this node. Where others tell the sizes of all cards that a plugin knows by number, these count: the plugin
    /// itself tells their sum only.
    pub fn read(dialects: &Dialects, node: &Node) -> Self {
        let plugins = dialects.iter().filter_map(|dialect| {
            let inventory = dialect.inventory(node).transpose()?;
            let (profile, mode, naming) = (dialect.name().clone(), dialect.mode().clone(), dialect.naming());
            Some(Registration { profile, mode, naming, inventory })
        });
        let mut registered = Self { plugins: plugins.collect(), aliases: Vec::new() };
        for at in 0..registered.plugins.len() {
            registered.identify(at);
        }
        registered
    }

    fn identify(&mut self, at: usize) {
        let Registration { naming: CardNaming::Number, inventory: Ok(inventory), .. } = &self.plugins[at]
        else {
            return;
        };
        let known = inventory.cards().iter().map(|card| (card.clone(), self.namesakes(card.index)));
        let known: Vec<(Card, Vec<Card>)> = known.collect();
        if known.iter().all(|(_, others)| !others.is_empty()) {
            let sized = known.iter().map(|(card, others)| {
                let least = others.iter().map(|other| other.memory).min();
                Card { memory: least.unwrap_or(card.memory), ..card.clone() }
            });
            self.plugins[at].inventory = Ok(Inventory::new(sized.collect()));
        }
        let pairs = |(card, others): (Card, Vec<Card>)| {
            others.into_iter().map(move |other| (card.id.clone(), other.id))
        };
        self.aliases.extend(known.into_iter().flat_map(pairs));
    }

    /// The cards of that number that other plugins know by uuid, one for each uuid.
    fn namesakes(&self, index: u32) -> Vec<Card> {
        let mut found: Vec<Card> = Vec::new();
        for plugin in self.plugins.iter().filter(|plugin| plugin.naming == CardNaming::Uuid) {
            let cards = plugin.inventory.iter().flat_map(Inventory::cards);
            let of_number: Vec<_> = cards.filter(|card| card.index == index).collect();
            if let [card] = of_number[..]
                && found.iter().all(|known| known.id != card.id)
            {
                found.push(card.clone());
            }
        }
        found
    }
}
