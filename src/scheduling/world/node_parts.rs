//! A node in parts, without what tells it from all others: nodes that are equal in the parts that a plugin reads are equal to that plugin.
//!
//! A part is described by the bytes that its values write when they are hashed: equal bytes are equal values, since each value says where it ends.
//! Cards are called by their places, not by their uuids. What a part means to a pod is not known here.

use std::hash::{Hash, Hasher};

use super::node_state::NodeState;
use crate::{
    device::{Card, Inventory, NodeDevice, NodeDevices},
    object::node::HOSTNAME,
    scheduling::model::node::{NodeInfo, Offer, OfferedDevices},
};

/// A part of a node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NodePart {
    /// Its labels, without [`HOSTNAME`].
    Labels,
    /// What of the resources that Kubernetes accounts pods may be given, what of it is requested, and how many pods there are.
    Amounts,
    /// All else: cards and what is in use of them, ports and disks of its pods, taints, the cordon, features, its zone and its device plugins.
    Rest,
}

impl NodePart {
    /// How many there are.
    pub const COUNT: usize = 3;
}

/// The number of a description among those that were seen. Only equal descriptions have one number.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct PartId(pub u32);

/// What is described of a node as long as its `NodeInfo` stays the same.
#[derive(Clone, Copy, Debug)]
pub enum InfoPart {
    /// Its labels, without [`HOSTNAME`].
    Labels,
    /// Of which resources there is some, and whose device plugins offer something.
    Resources,
    /// Its devices, taints and features, and whether it is cordoned.
    Fixtures,
}

/// What descriptions of a node's state begin with; those of its `NodeInfo` begin with the [`InfoPart`].
const AMOUNTS: u8 = 0x10;
const REST: u8 = 0x11;

/// The bytes that values write when they are hashed. Numbers take as few as they need.
#[derive(Debug, Default)]
pub struct Description(Vec<u8>);

impl Description {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Begins another description.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The part of the node that stays the same with this `NodeInfo`.
    pub fn describe_info(&mut self, part: InfoPart, info: &NodeInfo) {
        self.write_u8(part as u8);
        match part {
            InfoPart::Labels => {
                info.labels.iter().filter(|(key, _)| *key != HOSTNAME).for_each(|label| label.hash(self));
            }
            InfoPart::Resources => self.describe_resources(info),
            InfoPart::Fixtures => self.describe_fixtures(info),
        }
    }

    fn describe_resources(&mut self, info: &NodeInfo) {
        self.write_usize(info.allocatable.iter().count());
        info.allocatable.iter().for_each(|(name, _)| name.hash(self));
        info.devices.offers.iter().for_each(|offer| offer.profile.hash(self));
    }

    fn describe_fixtures(&mut self, info: &NodeInfo) {
        // What is left out is in other parts, or nothing that plugins which look at one node read.
        let NodeInfo {
            name,
            uid: _,
            resource_version: _,
            labels: _,
            taints,
            cordoned,
            allocatable: _,
            images: _,
            features,
            devices,
            locks: _,
        } = info;
        (taints, cordoned, features).hash(self);
        if !are_told_apart_by_number(devices) {
            // Their uuids decide which is tried first.
            name.hash(self);
        }
        let OfferedDevices { traits: _, offers, aliases, expiries: _, cards } = devices;
        self.write_usize(offers.len());
        for Offer { core_unit, profile, inventory } in offers {
            (core_unit, profile, inventory.is_some()).hash(self);
            if let Some(inventory) = inventory {
                self.describe_inventory(inventory, devices);
            }
        }
        self.write_usize(aliases.len());
        for (one, other) in aliases {
            (place(one.as_str(), devices), place(other.as_str(), devices)).hash(self);
        }
        self.write_usize(cards.len());
        for card in cards.iter() {
            (place(card.id.as_str(), devices), card.kind).hash(self);
        }
    }

    fn describe_inventory(&mut self, inventory: &Inventory, all: &OfferedDevices) {
        let cards = inventory.cards();
        self.write_usize(cards.len());
        for card in cards {
            let Card { id, index, slots, memory, cores, model, numa, mode, slicing, health } = card;
            place(id.as_str(), all).hash(self);
            (index, slots, memory, cores, model, numa, mode, slicing, health).hash(self);
        }
        let links = inventory.links();
        links.is_empty().hash(self);
        if !links.is_empty() {
            let pairs = cards.iter().flat_map(|first| cards.iter().map(move |second| (first, second)));
            pairs.for_each(|(first, second)| links.between(&first.id, &second.id).hash(self));
        }
        let NodeDevices {
            devices,
            partitions,
            partition_policy,
            vendor,
            model,
            card,
            isolation,
            plugin,
            templates,
        } = inventory.devices();
        self.write_usize(devices.len());
        for (kind, devices) in devices {
            kind.hash(self);
            self.write_usize(devices.len());
            for (minor, device) in devices {
                let NodeDevice { id, health, labels, total, topology, functions } = device;
                place(id, all).hash(self);
                (minor, health, labels, total, topology, functions).hash(self);
            }
        }
        (partitions, partition_policy, vendor, model, card, isolation, plugin, templates).hash(self);
    }

    /// What pods may be given on the node, what is requested and how many pods there are; `resources` is the place of what is described of its
    /// `NodeInfo` as [`InfoPart::Resources`].
    pub fn describe_amounts(&mut self, node: &NodeState, resources: PartId) {
        self.write_u8(AMOUNTS);
        (resources, node.pods.len(), &node.classes).hash(self);
        // Their names are said by `resources`.
        let allocatable = &node.info.allocatable;
        allocatable.iter().for_each(|(_, amount)| amount.hash(self));
        for (name, amount) in node.requested.iter() {
            let place = allocatable.iter().position(|(other, _)| other == name);
            place.hash(self);
            if place.is_none() {
                name.hash(self);
            }
            amount.hash(self);
        }
    }

    /// All else of the node; `fixtures` is the place of what is described of its `NodeInfo` as [`InfoPart::Fixtures`].
    pub fn describe_rest(&mut self, node: &NodeState, fixtures: PartId) {
        let NodeState {
            info,
            usage,
            claimed: _,
            requested: _,
            pods,
            reservations,
            anti_affinity: _,
            agents,
            zone,
            classes: _,
            generation,
            slot: _,
        } = node;
        self.write_u8(REST);
        (fixtures, agents, zone).hash(self);
        // A node as it is within one of its Reservations is like no other.
        reservations.within.as_ref().map(|_| generation).hash(self);
        let exclusive = || pods.iter().map(|pod| &pod.exclusive).filter(|held| !held.is_nothing());
        self.write_usize(exclusive().count());
        exclusive().for_each(|held| held.hash(self));
        (usage.devices(), usage.unread()).hash(self);
        if usage.cards().next().is_some() {
            // No plugin asks for a card of which the node knows nothing.
            names(&info.devices).for_each(|id| usage.users_of(id).hash(self));
        }
    }
}

impl Hasher for Description {
    /// A description is compared as a whole.
    fn finish(&self) -> u64 {
        0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn write_u16(&mut self, number: u16) {
        self.write_u64(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    /// Seven bits in each byte, the lowest first; the last has its highest bit clear.
    fn write_u64(&mut self, mut number: u64) {
        while number > 0x7f {
            self.0.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.0.push((number & 0x7f) as u8);
    }
}

/// The uuids of all cards and devices, in the order of their numbers: first those that plugins offer, then those that drivers alone publish.
fn names(devices: &OfferedDevices) -> impl Iterator<Item = &str> {
    let published = devices.cards.iter().map(|card| card.id.as_str());
    offered(devices).chain(published.filter(|id| !offered(devices).any(|other| other == *id)))
}

fn offered(devices: &OfferedDevices) -> impl Iterator<Item = &str> {
    devices.offers.iter().filter_map(|offer| offer.inventory.as_deref()).flat_map(|inventory| {
        let typed = inventory.devices().devices.values().flat_map(|of_type| of_type.values());
        inventory.cards().iter().map(|card| card.id.as_str()).chain(typed.map(|device| device.id.as_str()))
    })
}

/// The place of a uuid among all; `None`: there is no such card or device. One that is offered twice has one place.
fn place(id: &str, devices: &OfferedDevices) -> Option<usize> {
    names(devices).position(|name| name == id)
}

/// Whether the number of a card says which of two comes first, in each inventory.
fn are_told_apart_by_number(devices: &OfferedDevices) -> bool {
    let inventories = devices.offers.iter().filter_map(|offer| offer.inventory.as_deref());
    // Cards are in the order of their numbers.
    inventories.flat_map(|inventory| inventory.cards().windows(2)).all(|pair| pair[0].index != pair[1].index)
}
