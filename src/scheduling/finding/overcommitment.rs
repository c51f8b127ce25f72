//! Cards of which pods hold more than there is.
//!
//! Berth gives no card away twice: what is found here was written by others, or a card has shrunk since.

use std::{collections::BTreeMap, fmt};

use crate::{
    device::{Card, CardId, CardUsage, CoreUnit, Cores, MiB, Usage},
    scheduling::model::{name::NodeName, node::NodeInfo},
};

/// A card of which pods hold more than it has.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Overcommitment {
    /// The card.
    pub card: CardId,
    /// Its node.
    pub node: NodeName,
    /// Of what, by the plugin that has most of the card to give; one at least.
    pub beyond: Vec<Beyond>,
}

/// An amount of a card that is held beyond what the card has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Beyond {
    /// Slots.
    Slots {
        /// Held.
        used: u32,
        /// Of so many.
        of: u32,
    },
    /// Memory.
    Memory {
        /// Held.
        used: MiB,
        /// Of so much.
        of: MiB,
    },
    /// Compute.
    Cores {
        /// What it is counted in.
        unit: CoreUnit,
        /// Held.
        used: Cores,
        /// Of so much.
        of: Cores,
    },
}

impl fmt::Display for Beyond {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Slots { used, of } => write!(formatter, "{used} of {of} slots"),
            Self::Memory { used, of } => write!(formatter, "{used} of {of}"),
            Self::Cores { unit, used, of } => formatter.write_str(&unit.words_of(used, of)),
        }
    }
}

impl fmt::Display for Overcommitment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { card, node, beyond } = self;
        write!(formatter, "Pods hold more of card {card} on node {node} than it has: ")?;
        for (at, beyond) in beyond.iter().enumerate() {
            write!(formatter, "{}{beyond}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// The cards of the node of which more is held than there is. The usage is one that knows the cards' second names.
pub fn overcommitted(info: &NodeInfo, usage: &Usage) -> BTreeMap<CardId, Overcommitment> {
    // What is held of a card of two names stands under both.
    let second = |id: &CardId| info.devices.aliases.iter().any(|(number, _)| number == id);
    let used = usage.cards().filter(|(id, _)| !second(id));
    used.filter_map(|(id, used)| Some((id.clone(), of_card(info, id, used)?))).collect()
}

/// What is held of a card beyond what there is; `None`: nothing, or no plugin names it.
fn of_card(info: &NodeInfo, id: &CardId, used: CardUsage) -> Option<Overcommitment> {
    let inventories =
        info.devices.offers.iter().filter_map(|offer| Some((offer.core_unit, offer.inventory.as_deref()?)));
    let cards = inventories.flat_map(|(unit, cards)| cards.cards().iter().map(move |card| (unit, card)));
    let cards = cards.filter(|(_, card)| card.id == *id);
    let least = cards.map(|(unit, card)| beyond(unit, card, used)).min_by_key(Vec::len);
    let beyond = least.filter(|beyond| !beyond.is_empty())?;
    Some(Overcommitment { card: id.clone(), node: info.name.clone(), beyond })
}

fn beyond(unit: CoreUnit, card: &Card, used: CardUsage) -> Vec<Beyond> {
    let cores = match unit {
        CoreUnit::Percent => card.cores.max(Cores::WHOLE),
        CoreUnit::Units => card.cores,
    };
    let beyond = [
        (used.slots > card.slots).then_some(Beyond::Slots { used: used.slots, of: card.slots }),
        (used.memory > card.memory).then_some(Beyond::Memory { used: used.memory, of: card.memory }),
        (used.cores > cores).then_some(Beyond::Cores { unit, used: used.cores, of: cores }),
    ];
    beyond.into_iter().flatten().collect()
}
