//! What the free room of a node is worth to the pods that may come: by this `least-waste` chooses nodes and cards.
//!
//! A room is worth what random pods of the mix would take of its cards, and half of what each shape of pod could take alone. The mix is made of
//! the shapes of the pods that are bound or wait ([`census`]) and, while these are few, of pods that are made up by how nodes are cut ([`fleet`]).
//! All of it is a function of the cluster's pods and nodes: after a restart, and on another replica, rooms are worth the same.

mod alone;
pub mod census;
mod fill;
pub mod fleet;
pub mod free_room;
pub mod mix;
pub mod pressure;
pub mod renewal;
pub mod room;
pub mod rooms;
#[cfg(test)]
mod tests;
pub mod vacancy;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use smallvec::SmallVec;

use super::model::{
    card_kind::{CardKind, CardKinds, CountedCard, KindId},
    node::{NodeInfo, Offer, OfferedDevices},
    pod_shape::PodShape,
    resources::ResourceAmounts,
};
use crate::{
    device::{CardId, CardUsage, DeviceType, Health, Inventory, NodeDevice, ProfileName},
    dra::device::DeviceKind,
};
use census::Weighed;
use fleet::Fleet;
use mix::{Mix, POD};
use pressure::Pressure;
use renewal::{Renewal, RenewedMix};
use room::{Room, RoomCard};
use rooms::{Rooms, ValuedRoom};

/// The pods that may come, the cards that there are, and what rooms are worth by that.
#[derive(Clone, Debug, Default)]
pub struct Packing {
    kinds: Arc<CardKinds>,
    fleet: Arc<Fleet>,
    /// The kinds of all cards of the fleet that drivers publish.
    device_kinds: Arc<BTreeSet<Arc<DeviceKind>>>,
    /// By which rooms are worth something.
    mix: Mix,
    /// The mix as it is by now, where it is another one: it counts once rooms have been valued by it, beside the decisions.
    coming: Option<Mix>,
    /// Whether that is under way; `None`: another mix counts at once.
    is_renewing: Option<bool>,
    /// The pods that are made up, with their weights.
    made_up: Arc<BTreeMap<Arc<PodShape>, u32>>,
    pressure: Pressure,
    rooms: Arc<Rooms>,
    /// Greater after every change of what a pod may cost.
    version: u64,
}

impl Packing {
    /// Every kind of card.
    pub fn kinds(&self) -> &CardKinds {
        &self.kinds
    }

    /// Greater after every change of what a pod may cost.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The shapes of pods that may come, in no order, each with how much it counts: in parts of a pod, the same for all.
    pub fn shapes(&self) -> impl Iterator<Item = (&Arc<PodShape>, u32)> {
        self.mix.weights()
    }

    /// As [`Self::shapes`], to be kept by others.
    pub fn shared_shapes(&self) -> Vec<(Arc<PodShape>, u32)> {
        self.shapes().map(|(shape, weight)| (shape.clone(), weight)).collect()
    }

    /// How much pods ask for cards of some kinds alone.
    pub fn pressure(&self) -> &Pressure {
        &self.pressure
    }

    /// Takes in that a node has other cards, cpu or memory than before; `None`: it is not there. Its cards are counted as they are given their kinds, those
    /// that drivers publish as devices of claims included.
    pub(in crate::scheduling) fn replace_node(
        &mut self,
        before: Option<&NodeInfo>,
        after: Option<&mut NodeInfo>,
        published: Vec<(CardId, Arc<DeviceKind>)>,
    ) {
        let after = after.map(|node| {
            node.devices.cards = self.count(&node.devices, published);
            &*node
        });
        let cut = |node: &NodeInfo| {
            let of = |name: &str| node.allocatable.get(name);
            (node.devices.cards.clone(), of("cpu"), of("memory"))
        };
        if before.map(cut) == after.map(cut) {
            return;
        }
        let fleet = Arc::make_mut(&mut self.fleet);
        if let Some(node) = before {
            fleet.remove(node);
        }
        if let Some(node) = after {
            fleet.add(node);
        }
        self.mix.know(&self.kinds);
        self.make_up();
        self.note_devices();
        self.note_change();
    }

    /// The kinds of all cards that drivers publish as devices of claims.
    pub fn device_kinds(&self) -> &Arc<BTreeSet<Arc<DeviceKind>>> {
        &self.device_kinds
    }

    fn note_devices(&mut self) {
        let cards = self.fleet.cards().keys();
        let kinds: BTreeSet<_> =
            cards.flat_map(|kind| self.kinds.get(*kind).devices.iter().cloned()).collect();
        if kinds != *self.device_kinds {
            self.device_kinds = Arc::new(kinds);
        }
    }

    /// Whether another mix counts only once it is renewed.
    pub fn is_renewed_beside(&self) -> bool {
        self.is_renewing.is_some()
    }

    /// From now on another mix counts only once it is renewed.
    pub fn renew_beside(&mut self) {
        self.is_renewing.get_or_insert(false);
    }

    /// Whether [`Self::begin_renewal`] has something to say.
    pub fn needs_renewal(&self) -> bool {
        self.coming.is_some() && self.is_renewing == Some(false)
    }

    /// What has to be done before the mix counts that there is by now; `None`: it does, or that is under way.
    pub fn begin_renewal(&mut self) -> Option<Renewal> {
        let mix = self.coming.as_ref().filter(|_| self.needs_renewal())?.clone();
        self.is_renewing = Some(true);
        Some(Renewal::new(mix, self.kinds.clone(), self.rooms.clone()))
    }

    /// Takes in that the renewal is over that was begun.
    pub fn renew(&mut self, RenewedMix(mix): RenewedMix) {
        self.is_renewing = Some(false);
        self.coming = self.coming.take().filter(|coming| coming.version > mix.version);
        self.mix = mix;
        self.mix.know(&self.kinds);
        self.note_change();
    }

    /// Changes the mix: the one that counts where that is so at once, else the one that counts later.
    fn change_mix(&mut self, change: impl FnOnce(&mut Mix, &Self)) {
        if !self.is_renewed_beside() {
            // While lists are taken in, nothing of the mix is copied.
            let mut mix = std::mem::take(&mut self.mix);
            change(&mut mix, self);
            self.mix = mix;
            return;
        }
        let mut mix = self.coming.take().unwrap_or_else(|| self.mix.clone());
        mix.know(&self.kinds);
        change(&mut mix, self);
        self.coming = Some(mix).filter(|mix| mix.version > self.mix.version);
    }

    fn note_change(&mut self) {
        self.pressure = Pressure::of(&self.mix, &self.fleet);
        self.version += 1;
    }

    /// Takes in with how much shapes count from now on.
    pub fn weigh(&mut self, weighed: Vec<Weighed>) {
        if weighed.is_empty() {
            return;
        }
        self.change_mix(|mix, packing| {
            for (shape, pods) in weighed {
                let made_up = packing.made_up.get(&shape).copied().unwrap_or(0);
                mix.weigh(&shape, pods.saturating_mul(POD).saturating_add(made_up), &packing.kinds);
            }
        });
        if !self.is_renewed_beside() {
            self.note_change();
        }
    }

    fn make_up(&mut self) {
        let made_up = Arc::new(self.fleet.made_up(&self.kinds));
        let before = std::mem::replace(&mut self.made_up, made_up);
        let shapes: BTreeSet<_> = before.keys().chain(self.made_up.keys()).cloned().collect();
        self.change_mix(|mix, packing| {
            for shape in shapes {
                let of = |made_up: &BTreeMap<_, u32>| made_up.get(&shape).copied().unwrap_or(0);
                let counted = mix.weight(&shape).saturating_sub(of(&before));
                mix.weigh(&shape, counted.saturating_add(of(&packing.made_up)), &packing.kinds);
            }
        });
    }

    /// The cards of a node that work, each once, with their kinds: those that plugins register, GPUs that are listed as devices by type, and those that
    /// drivers publish. A card that a plugin offers and that does not work for it is not among them.
    fn count(
        &mut self,
        devices: &OfferedDevices,
        published: Vec<(CardId, Arc<DeviceKind>)>,
    ) -> Arc<[CountedCard]> {
        let mut cards: Vec<(CountedCard, CardKind)> = Vec::new();
        let mut count = |profile: &ProfileName, id: &CardId, kind: &dyn Fn() -> CardKind| match cards
            .iter_mut()
            .find(|(known, _)| devices.is_one_card(&known.id, id))
        {
            Some((_, kind)) => kind.profiles.push(profile.clone()),
            None => cards.push((CountedCard { id: id.clone(), kind: KindId::default() }, kind())),
        };
        for Offer { core_unit, profile, inventory } in &devices.offers {
            let offered = inventory.as_deref().into_iter().flat_map(Inventory::cards);
            for card in offered.filter(|card| card.health == Health::Healthy) {
                count(profile, &card.id, &|| CardKind::of(card, *core_unit, vec![profile.clone()]));
            }
        }
        for Offer { profile, inventory, .. } in &devices.offers {
            let Some(listed) = inventory.as_deref().map(Inventory::devices) else { continue };
            let Some(dimensions) = &listed.card else { continue };
            // What is held of a device without an id is not known by card.
            let known = |device: &&NodeDevice| device.serves() && !device.id.is_empty();
            for device in listed.of(DeviceType::Gpu).map(|(_, device)| device).filter(known) {
                let model = listed.model.as_deref().unwrap_or_default();
                count(profile, &CardId::from(&device.id), &|| {
                    CardKind::of_gpu(device, dimensions, model, profile)
                });
            }
        }
        for (id, device) in published {
            match cards.iter_mut().find(|(known, _)| devices.is_one_card(&known.id, &id)) {
                Some((_, kind)) => {
                    kind.devices.push(device);
                    kind.devices.sort();
                }
                None if devices.has_card(&id) => {}
                None => {
                    cards.push((CountedCard { id, kind: KindId::default() }, CardKind::of_device(device)));
                }
            }
        }
        let kinds = Arc::make_mut(&mut self.kinds);
        cards.into_iter().map(|(card, kind)| CountedCard { kind: kinds.place(kind), ..card }).collect()
    }

    /// The room of a node of which so much is requested, and so much of each card in use.
    pub fn room(&self, node: &NodeInfo, requested: [i64; 2], used: impl Fn(&CardId) -> CardUsage) -> Room {
        let cards = node.devices.cards.iter();
        let cards: SmallVec<[RoomCard; 8]> =
            cards.map(|card| RoomCard::new(card.kind, &self.kinds, used(&card.id))).collect();
        let left = |name: &str, requested: i64| node.allocatable.get(name).saturating_sub(requested);
        Room::new(left("cpu", requested[0]), left("memory", requested[1]), cards, &self.kinds)
    }

    /// The room, with what it is worth as far as that is known.
    pub fn valued(&self, room: Room) -> Arc<ValuedRoom> {
        self.rooms.valued(room)
    }

    /// What a room is worth, in millionths of a card.
    pub fn worth(&self, room: &ValuedRoom) -> i64 {
        room.worth(&self.mix, &self.kinds)
    }

    /// What it is worth by an eighth of the sequences, which takes an eighth of the time. `alone` says what shapes could take of it alone.
    fn worth_by_few(&self, room: &ValuedRoom, alone: impl FnOnce() -> i64) -> i64 {
        room.worth_by_few(&self.mix, &self.kinds, alone)
    }
}

/// cpu in thousandths and memory in bytes, of these amounts.
pub fn cpu_and_memory(amounts: &ResourceAmounts) -> [i64; 2] {
    ["cpu", "memory"].map(|name| amounts.get(name))
}
