//! A node, as scheduling sees it.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};

use super::{
    images::NodeImages,
    name::NodeName,
    pod::{Ask, Claim},
    resources::ResourceAmounts,
};
use crate::{
    device::{
        Card, CardId, CoreUnit, Cuts, DevicePlace, DeviceTraits, DeviceType, Inventory, Lock, LockName,
        ModelTemplates, ProfileName, Usage,
    },
    object::Taint,
};

/// What one device plugin offers on a node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Offer {
    /// What the cards' compute is counted in.
    pub core_unit: CoreUnit,
    /// Whose plugin.
    pub profile: ProfileName,
    /// Its cards; `None` where the registration can't be read.
    pub inventory: Option<Inventory>,
}

/// What a lock that is taken here says of whose it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Signature {
    /// Its pod.
    Pod,
    /// Since when it is held, and nothing else.
    Time,
}

/// A lock of a node and what stands under it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NodeLock {
    /// Which lock.
    pub name: LockName,
    /// Who holds it.
    pub state: Lock,
    /// What it says when it is taken here.
    pub signature: Signature,
    /// After this time a holder that gives no sign may be taken over.
    pub expiry: SignedDuration,
}

impl NodeLock {
    /// When a holder that gives no sign may be taken over; `None`: there is no holder.
    pub fn expires(&self) -> Option<Timestamp> {
        match self.state {
            Lock::Held { since, .. } => since.checked_add(self.expiry).ok(),
            Lock::Free | Lock::Malformed { .. } => None,
        }
    }

    /// Whether a holder that gives no sign may be taken over by now. A lock that is dated further ahead than its time says nothing: no
    /// clock is so wrong.
    pub fn is_over(&self, now: Timestamp) -> bool {
        let latest = now.checked_add(self.expiry).ok();
        let ahead =
            matches!(self.state, Lock::Held { since, .. } if latest.is_some_and(|latest| since > latest));
        ahead || self.expires().is_some_and(|at| at <= now)
    }
}

/// A node.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NodeInfo {
    /// Its name.
    pub name: NodeName,
    /// Its identity.
    pub uid: Arc<str>,
    /// The version that a lock is taken against.
    pub resource_version: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// Whether it is cordoned.
    pub cordoned: bool,
    /// What pods may be given.
    pub allocatable: ResourceAmounts,
    /// The images that it has, where the score of `ImageLocality` counts.
    pub images: NodeImages,
    /// Features that its kubelet declares.
    pub features: BTreeSet<String>,
    /// What its labels say of the devices that its Device lists.
    pub device_traits: DeviceTraits,
    /// Its cards, by plugin.
    pub offers: Vec<Offer>,
    /// Cards with two names, such as a number and a uuid: what is held of one is held of the other.
    pub aliases: Vec<(CardId, CardId)>,
    /// Until when cards may be used without a new sign of their plugin, where there is an end to it.
    pub expiries: Vec<(ProfileName, Timestamp)>,
    /// Its locks, for the dialects that need one.
    pub locks: Vec<NodeLock>,
    /// Locks of which each is needed only where the node's devices are of the vendor whose device plugin needs it.
    pub plugin_locks: Vec<NodeLock>,
}

impl Offer {
    /// The same offer on a node whose labels say this of its devices, with the templates of shares where there are any.
    #[must_use]
    pub fn on(&self, node: &DeviceTraits, templates: Option<&ModelTemplates>) -> Self {
        let on = |inventory: Inventory| {
            let devices = inventory.devices().clone().on(node);
            let devices = match templates {
                Some(templates) => devices.dividing(templates),
                None => devices,
            };
            inventory.with_devices(devices)
        };
        Self { inventory: self.inventory.clone().map(on), ..self.clone() }
    }
}

impl NodeInfo {
    /// Takes in what a Device of the node offers, in place of what one offered before, with the templates of shares where there are any.
    pub fn set_devices(&mut self, offer: &Offer, templates: Option<&ModelTemplates>) {
        self.drop_devices(&offer.profile);
        let offer = offer.on(&self.device_traits, templates);
        let plugin = offer.inventory.as_ref().and_then(|inventory| inventory.devices().plugin.as_ref());
        let needed = |lock: &&NodeLock| {
            lock.name.profile == offer.profile && plugin.is_some_and(|plugin| plugin.lock == lock.name.key)
        };
        self.locks.extend(self.plugin_locks.iter().filter(needed).cloned());
        self.offers.push(offer);
    }

    /// Takes in that no Device of the node offers anything, and so that no device plugin needs a lock.
    pub fn drop_devices(&mut self, profile: &ProfileName) {
        self.offers.retain(|known| known.profile != *profile);
        self.locks.retain(|lock| {
            !self.plugin_locks.iter().any(|own| own.name == lock.name) || lock.name.profile != *profile
        });
    }

    /// Whether both are names of one card.
    pub fn is_one_card(&self, one: &CardId, other: &CardId) -> bool {
        one == other || self.aliases.iter().any(|(first, second)| first == one && second == other)
    }

    /// Where a pod that asks for devices by type is given them; `None`: it asks for none, or there are none.
    pub fn device_place(&self, claim: &Claim) -> Option<DevicePlace> {
        let Claim::Place(ask) = claim else { return None };
        let (profile, request) =
            ask.devices.iter().find_map(|asked| Some((&asked.profile.name, asked.joint.as_ref()?)))?;
        let devices = self.offer(profile)?.inventory.as_ref()?.devices().clone();
        Some(DevicePlace { devices: Arc::new(devices), request: request.clone() })
    }

    /// What the plugin of this dialect offers.
    pub fn offer(&self, profile: &ProfileName) -> Option<&Offer> {
        self.offers.iter().find(|offer| offer.profile == *profile)
    }

    /// Whether these cards of one plugin may be cards of another's: they are if they have a name in common or two names of one, and for
    /// all that is known if the other doesn't say which are its own.
    pub fn may_be_cards_of(&self, cards: &[Card], other: &ProfileName) -> bool {
        let others = self.offer(other).and_then(|offer| offer.inventory.as_ref()).map(Inventory::cards);
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
            self.offers.iter().filter_map(|offer| Some((offer.core_unit, offer.inventory.as_ref()?)));
        let cards =
            inventories.flat_map(|(unit, inventory)| inventory.cards().iter().map(move |card| (unit, card)));
        cards.filter(move |(_, card)| self.names_of(id).any(|name| *name == card.id))
    }

    /// Whether a plugin offers this card, as a card or as a device by type.
    pub(in crate::scheduling) fn has_card(&self, id: &CardId) -> bool {
        self.offers
            .iter()
            .filter_map(|offer| offer.inventory.as_ref())
            .any(|offered| self.is_among(id, offered))
    }

    /// Whether this card may be one of a plugin's: for all that is known it is where the plugin doesn't say which are its own.
    pub(in crate::scheduling) fn may_have(&self, id: &CardId, profile: &ProfileName) -> bool {
        let offered = self.offer(profile).and_then(|offer| offer.inventory.as_ref());
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
            let own = self.offer(profile).and_then(|offer| offer.inventory.as_ref()).map(Inventory::cards);
            let own = own.filter(|cards| !cards.is_empty()).map(|_| profile.clone());
            let offers =
                self.offers.iter().filter(move |offer| own.as_ref().is_none_or(|own| offer.profile == *own));
            let cards = offers.filter_map(|offer| offer.inventory.as_ref()).flat_map(Inventory::cards);
            // Two plugins may name one card alike.
            let mut named = BTreeSet::new();
            cards.filter(move |card| named.insert(&card.id))
        };
        let usage = usage.with_cards(cards_of);
        let inventories = self.offers.iter().filter_map(|offer| offer.inventory.as_ref());
        let devices = inventories.map(Inventory::devices).filter(|devices| !devices.devices.is_empty());
        devices.fold(usage.with_aliases(&self.aliases), Usage::with_twins)
    }

    /// How its cards are cut, as far as its plugins know.
    pub fn cuts(&self) -> Cuts {
        let inventories = self.offers.iter().filter_map(|offer| offer.inventory.as_ref());
        inventories.flat_map(Inventory::cards).collect()
    }

    /// The plugins that have given no sign for too long.
    pub fn expired(&self, now: Timestamp) -> BTreeSet<ProfileName> {
        self.expiries.iter().filter(|(_, at)| *at <= now).map(|(profile, _)| profile.clone()).collect()
    }

    /// The lock of this dialect; `None`: it needs none.
    pub fn lock(&self, profile: &ProfileName) -> Option<&NodeLock> {
        self.locks.iter().find(|lock| lock.name.profile == *profile)
    }

    /// The locks that a pod needs to be given here what it asks for.
    pub fn locks_for<'a>(&'a self, ask: &'a Ask) -> impl Iterator<Item = &'a NodeLock> {
        self.locks_of(ask.served())
    }

    /// The locks that these dialects need; several may have one in common.
    pub fn locks_of<'a>(
        &'a self,
        profiles: impl IntoIterator<Item = &'a ProfileName>,
    ) -> impl Iterator<Item = &'a NodeLock> {
        // Without a plugin there is no lock to take: a claim serves the pod.
        let offered = profiles.into_iter().filter(|profile| self.offer(profile).is_some());
        offered.filter_map(|profile| self.lock(profile))
    }

    /// Whether the other differs in anything that decides what fits.
    pub fn fits_as(&self, other: &Self) -> bool {
        let Self {
            name: _,
            uid,
            resource_version: _,
            labels,
            taints,
            cordoned,
            allocatable,
            images: _,
            features,
            // Its offers are by these already.
            device_traits: _,
            offers,
            aliases,
            expiries: _,
            locks: _,
            plugin_locks: _,
        } = self;
        let own = (uid, labels, taints, cordoned, allocatable, features, offers, aliases);
        let Self { uid, labels, taints, cordoned, allocatable, features, offers, aliases, .. } = other;
        own == (uid, labels, taints, cordoned, allocatable, features, offers, aliases)
    }
}
