//! The devices of a node, as its plugins and Devices offer them.

use std::{collections::BTreeSet, iter, sync::Arc};

use jiff::Timestamp;

use crate::{
    device::{
        Card, CardId, CoreUnit, Cuts, DevicePlace, DeviceTraits, DeviceType, Health, Inventory,
        ModelTemplates, ProfileName, Usage,
    },
    scheduling::model::{card_kind::CountedCard, pod::Claim},
};

/// What one device plugin offers on a node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Offer {
    /// What the cards' compute is counted in.
    pub core_unit: CoreUnit,
    /// Whose plugin.
    pub profile: ProfileName,
    /// Its cards; `None` where the registration can't be read.
    pub inventory: Option<Arc<Inventory>>,
}

/// What a node has of devices.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct OfferedDevices {
    /// What the node's labels say of the devices that its Device lists.
    pub traits: DeviceTraits,
    /// Its cards, by plugin.
    pub offers: Vec<Offer>,
    /// Cards with two names, such as a number and a uuid: what is held of one is held of the other.
    pub aliases: Vec<(CardId, CardId)>,
    /// Until when cards may be used without a new sign of their plugin, where there is an end to it.
    pub expiries: Vec<(ProfileName, Timestamp)>,
    /// The cards that work, each once, those included that drivers publish as devices of claims: counted once the node is taken in.
    pub cards: Arc<[CountedCard]>,
}

impl Offer {
    /// The same offer on a node whose labels say this of its devices, with the templates of shares where there are any.
    #[must_use]
    pub fn on(&self, node: &DeviceTraits, templates: Option<&ModelTemplates>) -> Self {
        let on = |inventory: &Arc<Inventory>| {
            let devices = inventory.devices().clone().on(node);
            let devices = match templates {
                Some(templates) => devices.dividing(templates),
                None => devices,
            };
            Inventory::clone(inventory).with_devices(devices).into()
        };
        Self { inventory: self.inventory.as_ref().map(on), ..self.clone() }
    }

    /// Makes each card what this makes of it, for this offer alone.
    pub fn map_cards(&mut self, change: impl FnMut(Card) -> Card) {
        let changed = |inventory: Arc<Inventory>| Arc::unwrap_or_clone(inventory).map(change).into();
        self.inventory = self.inventory.take().map(changed);
    }
}

impl OfferedDevices {
    /// Whether both are names of one card.
    pub fn is_one_card(&self, one: &CardId, other: &CardId) -> bool {
        one == other || self.aliases.iter().any(|(first, second)| first == one && second == other)
    }

    /// Whether plugins offer something here, or drivers publish cards.
    pub fn has_cards(&self) -> bool {
        !self.offers.is_empty() || !self.cards.is_empty()
    }

    /// Where a pod that asks for devices by type is given them; `None`: it asks for none, or there are none.
    pub fn place(&self, claim: &Claim) -> Option<DevicePlace> {
        let Claim::Place(ask) = claim else { return None };
        let (profile, request) =
            ask.devices.iter().find_map(|asked| Some((&asked.profile.name, asked.joint.as_ref()?)))?;
        let devices = self.offer(profile)?.inventory.as_deref()?.devices().clone();
        Some(DevicePlace { devices: Arc::new(devices), request: request.clone() })
    }

    /// What the plugin of this dialect offers.
    pub fn offer(&self, profile: &ProfileName) -> Option<&Offer> {
        self.offers.iter().find(|offer| offer.profile == *profile)
    }

    /// Whether these cards of one plugin may be cards of another's: they are if they have a name in common or two names of one, and for
    /// all that is known if the other doesn't say which are its own.
    pub fn may_be_cards_of(&self, cards: &[Card], other: &ProfileName) -> bool {
        let others = self.offer(other).and_then(|offer| offer.inventory.as_deref()).map(Inventory::cards);
        let is_one = |one: &Card, other: &Card| {
            let pair = |alias: &(CardId, CardId), a, b| (&alias.0, &alias.1) == (a, b);
            let called = |alias| pair(alias, &one.id, &other.id) || pair(alias, &other.id, &one.id);
            one.id == other.id || self.aliases.iter().any(called)
        };
        let Some(others) = others.filter(|others| !others.is_empty()) else { return true };
        cards.iter().any(|card| others.iter().any(|other| is_one(card, other)))
    }

    /// Every name of the card that has this one: a card may have a number and a uuid.
    pub fn names_of<'a>(&'a self, card: &'a CardId) -> impl Iterator<Item = &'a CardId> {
        let others = self.aliases.iter().flat_map(move |(number, uuid)| {
            let of_uuid = (uuid == card).then_some(number);
            of_uuid.into_iter().chain((number == card).then_some(uuid))
        });
        iter::once(card).chain(others)
    }

    /// The cards of this name, as each plugin offers them, with what their compute is counted in.
    pub(in crate::scheduling) fn cards_named<'a>(
        &'a self,
        id: &'a CardId,
    ) -> impl Iterator<Item = (CoreUnit, &'a Card)> {
        let inventories =
            self.offers.iter().filter_map(|offer| Some((offer.core_unit, offer.inventory.as_deref()?)));
        let cards =
            inventories.flat_map(|(unit, inventory)| inventory.cards().iter().map(move |card| (unit, card)));
        cards.filter(move |(_, card)| self.names_of(id).any(|name| *name == card.id))
    }

    /// Whether a plugin offers this card, as a card or as a device by type.
    pub(in crate::scheduling) fn has_card(&self, id: &CardId) -> bool {
        self.offers
            .iter()
            .filter_map(|offer| offer.inventory.as_deref())
            .any(|offered| self.is_among(id, offered))
    }

    /// Whether this card may be one of a plugin's: for all that is known it is where the plugin doesn't say which are its own.
    pub(in crate::scheduling) fn may_have(&self, id: &CardId, profile: &ProfileName) -> bool {
        let offered = self.offer(profile).and_then(|offer| offer.inventory.as_deref());
        let names = |offered: &&Inventory| {
            !offered.cards().is_empty() || offered.devices().of(DeviceType::Gpu).next().is_some()
        };
        offered.filter(names).is_none_or(|offered| self.is_among(id, offered))
    }

    fn is_among(&self, id: &CardId, offered: &Inventory) -> bool {
        let mut gpus = offered.devices().of(DeviceType::Gpu);
        gpus.any(|(_, gpu)| gpu.id == id.as_str())
            || offered.cards().iter().any(|card| self.names_of(id).any(|name| *name == card.id))
    }

    /// What is in use of it, with each card that has several names or several plugins counted under each of them. What a pod may hold whose cards are
    /// unknown counts on each card of its plugin, and on each card of all where that names none.
    pub fn joined(&self, usage: Usage) -> Usage {
        let cards_of = |profile: &ProfileName| {
            let own = self.offer(profile).and_then(|offer| offer.inventory.as_deref()).map(Inventory::cards);
            let own = own.filter(|cards| !cards.is_empty()).map(|_| profile.clone());
            let offers =
                self.offers.iter().filter(move |offer| own.as_ref().is_none_or(|own| offer.profile == *own));
            let cards = offers.filter_map(|offer| offer.inventory.as_deref()).flat_map(Inventory::cards);
            // Two plugins may name one card alike.
            let mut named = BTreeSet::new();
            cards.filter(move |card| named.insert(&card.id))
        };
        let usage = usage.with_cards(cards_of);
        let inventories = self.offers.iter().filter_map(|offer| offer.inventory.as_deref());
        let devices = inventories.map(Inventory::devices).filter(|devices| !devices.devices.is_empty());
        devices.fold(usage.with_aliases(&self.aliases), Usage::with_twins)
    }

    /// How its cards are cut, as far as its plugins know.
    pub fn cuts(&self) -> Cuts {
        let inventories = self.offers.iter().filter_map(|offer| offer.inventory.as_deref());
        inventories.flat_map(Inventory::cards).collect()
    }

    /// The plugins that have given no sign for too long.
    pub fn expired(&self, now: Timestamp) -> BTreeSet<ProfileName> {
        self.expiries.iter().filter(|(_, at)| *at <= now).map(|(profile, _)| profile.clone()).collect()
    }

    /// Cordons these cards, by any of their names.
    pub fn cordon(&mut self, cards: &BTreeSet<CardId>) {
        let mut offers = std::mem::take(&mut self.offers);
        let is_named = |id: &CardId| cards.iter().any(|card| self.is_one_card(card, id));
        for offer in &mut offers {
            let cordon = |card: Card| {
                let health = if is_named(&card.id) { Health::Cordoned } else { card.health };
                Card { health, ..card }
            };
            offer.map_cards(cordon);
        }
        self.cards = self.cards.iter().filter(|counted| !is_named(&counted.id)).cloned().collect();
        self.offers = offers;
    }

    /// Whether the other differs in nothing that decides what fits.
    pub fn fits_as(&self, other: &Self) -> bool {
        // The offers are by the traits already.
        let Self { traits: _, offers, aliases, expiries: _, cards: _ } = self;
        (offers, aliases) == (&other.offers, &other.aliases)
    }
}
