//! The cards of a node, each once whichever plugins name it, with what is given away of it; and what one pod holds of them.
//!
//! Values only: how they are printed or exported is not known here.

use std::collections::BTreeMap;

use crate::{
    device::{
        Allocation, Card, CardId, CardUsage, CoreUnit, Cores, Health, InitPhase, Inventory, MiB, ProfileName,
        Usage,
    },
    dialect::{CardNaming, Dialects},
    scheduling::{plugin::allocate::core_budget, world::node_state::NodeState},
};

/// One card of a node.
#[derive(Clone, Copy, Debug)]
pub struct OfferedCard<'a> {
    /// The card, as the first plugin that names it registered it.
    pub card: &'a Card,
    /// Whether it is known by its uuid or by its number alone.
    pub naming: CardNaming,
    /// What its compute is counted in.
    pub unit: CoreUnit,
    /// The compute that may be given away.
    pub cores: Cores,
    /// What is given away; an amount that can't be read counts as the whole card.
    pub used: CardUsage,
}

impl OfferedCard<'_> {
    /// Whether its plugin says that it works.
    pub fn is_healthy(&self) -> bool {
        self.card.health != Health::Unhealthy
    }

    /// Its uuid; `None`: it is known by its number alone.
    pub fn uuid(&self) -> Option<&CardId> {
        (self.naming == CardNaming::Uuid).then_some(&self.card.id)
    }

    /// Its number, where no plugin tells its uuid.
    pub fn number(&self) -> Option<u32> {
        (self.naming == CardNaming::Number).then_some(self.card.index)
    }

    /// What `usage` comes to on this card: an amount that can't be read counts as all of it.
    pub fn bounded(&self, usage: CardUsage) -> CardUsage {
        let (memory, cores) = (usage.memory.of_card(self.card.memory), usage.cores.of_card(self.cores));
        CardUsage { memory, cores, ..usage }
    }

    /// So much compute as a part of one whole card; a card of 200 % gives away up to 2.
    pub fn ratio(&self, cores: Cores) -> f64 {
        match self.unit {
            CoreUnit::Percent => f64::from(cores.get()) / 100.0,
            CoreUnit::Units if self.cores == Cores::NONE => 0.0,
            CoreUnit::Units => f64::from(cores.get()) / f64::from(self.cores.get()),
        }
    }
}

/// The cards of one node, found by any of their names.
#[derive(Debug)]
pub struct NodeCards<'a> {
    node: &'a NodeState,
    /// By plugin, then by number.
    pub cards: Vec<OfferedCard<'a>>,
    /// The dialects whose plugins name a card, by its place.
    profiles: Vec<Vec<&'a ProfileName>>,
    places: BTreeMap<&'a CardId, usize>,
}

impl<'a> NodeCards<'a> {
    /// The cards of a node whose offers these dialects have read.
    pub fn of(node: &'a NodeState, dialects: &Dialects) -> Self {
        let mut found = Self { node, cards: Vec::new(), profiles: Vec::new(), places: BTreeMap::new() };
        for offer in &node.info.devices.offers {
            let dialect = dialects.named(&offer.profile).expect("an offer is of one of the dialects");
            for card in offer.inventory.as_deref().into_iter().flat_map(Inventory::cards) {
                let cores = core_budget(dialect.profile(), card);
                let card = OfferedCard {
                    card,
                    naming: dialect.naming(),
                    unit: offer.core_unit,
                    cores,
                    used: node.usage.card(&card.id),
                };
                found.add(card, &offer.profile);
            }
        }
        found
    }

    /// Takes a card in, unless a plugin before has named it.
    fn add(&mut self, card: OfferedCard<'a>, profile: &'a ProfileName) {
        let names: Vec<&CardId> = self.node.info.devices.names_of(&card.card.id).collect();
        if let Some(place) = names.iter().find_map(|name| self.places.get(name)) {
            self.profiles[*place].push(profile);
            return;
        }
        let place = self.cards.len();
        self.places.extend(names.into_iter().map(|name| (name, place)));
        let used = card.bounded(card.used);
        self.cards.push(OfferedCard { used, ..card });
        self.profiles.push(vec![profile]);
    }

    /// The cards, each with the dialects whose plugins name it.
    pub fn offering(&self) -> impl Iterator<Item = (&OfferedCard<'a>, &[&'a ProfileName])> {
        self.cards.iter().zip(self.profiles.iter().map(|profiles| &**profiles))
    }

    /// The card of this name.
    pub fn get(&self, id: &CardId) -> Option<&OfferedCard<'a>> {
        self.places.get(id).map(|place| &self.cards[*place])
    }

    /// What a pod with these allocations holds at its peak, by card.
    pub fn held(&self, allocations: &[Allocation], init: InitPhase) -> Vec<HeldCard<'_>> {
        held(allocations, init, |id| self.get(id), Some(self.node))
    }
}

/// What a pod holds of one card.
#[derive(Clone, Debug)]
pub struct HeldCard<'a> {
    /// The card's name in the pod's assignment, or its node's name for it.
    pub id: CardId,
    /// The card; `None`: its node has none of this name.
    pub card: Option<&'a OfferedCard<'a>>,
    /// The amounts at their peak; one that can't be read counts as the whole card, or as nothing where the card is unknown.
    pub used: CardUsage,
}

impl<'a> HeldCard<'a> {
    /// The card's model; empty where the card is unknown.
    pub fn model(&self) -> &'a str {
        self.card.map_or("", |card| &*card.card.model)
    }

    /// The compute as a part of one whole card.
    pub fn ratio(&self) -> f64 {
        self.card.map_or(f64::from(self.used.cores.get()) / 100.0, |card| card.ratio(self.used.cores))
    }
}

/// What a pod with these allocations holds at its peak on a node with these cards; `None`: the node does not exist (any more), and its cards are
/// unknown.
pub fn held_on<'a>(
    cards: Option<&'a NodeCards<'a>>,
    allocations: &[Allocation],
    init: InitPhase,
) -> Vec<HeldCard<'a>> {
    match cards {
        Some(cards) => cards.held(allocations, init),
        None => held(allocations, init, |_| None, None),
    }
}

fn held<'a>(
    allocations: &[Allocation],
    init: InitPhase,
    card: impl Fn(&CardId) -> Option<&'a OfferedCard<'a>>,
    node: Option<&NodeState>,
) -> Vec<HeldCard<'a>> {
    let cuts = node.map(|node| node.info.devices.cuts()).unwrap_or_default();
    let assignments: Vec<_> = allocations.iter().map(|one| cuts.sized(&one.assignment)).collect();
    let usage = Usage::of(assignments.iter().map(|assignment| (&**assignment, init)));
    let mut held: BTreeMap<CardId, HeldCard<'a>> = BTreeMap::new();
    for (id, used) in usage.cards() {
        let card = card(id);
        let used = match card {
            Some(card) => card.bounded(used),
            None => CardUsage {
                memory: used.memory.of_card(MiB::default()),
                cores: used.cores.of_card(Cores::NONE),
                ..used
            },
        };
        let id = card.map_or(id, |card| &card.card.id).clone();
        let row = held.entry(id.clone()).or_insert(HeldCard { id, card, used: CardUsage::default() });
        row.used = row.used.and(used);
    }
    held.into_values().filter(|held| held.used != CardUsage::default()).collect()
}
