//! The cards of the cluster, to find pods that can never run.
//!
//! It knows the size of each card, not its use.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use thin_vec::ThinVec;

use crate::{
    device::{CardId, Inventory, Mode},
    dialect::{Dialects, Registered, SharingMode, marks},
    object::{Node, node::HOSTNAME},
};

/// One node: its names, and its cards by mode.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NodeOffer {
    /// Its name.
    pub name: Arc<str>,
    /// Its host name, if that differs from its name.
    pub hostname: Option<String>,
    /// The revocable zone that it is in.
    pub zone: Option<String>,
    /// Its cards, by the mode that the node's plugin serves them in; each mode once, in order.
    offers: ThinVec<(SharingMode, Arc<Inventory>)>,
}

impl NodeOffer {
    /// Reads a node; cards that can't be read are not there.
    pub fn read(node: &Node, dialects: &Dialects) -> Self {
        let plugins = Registered::read(dialects, node).plugins.into_iter();
        let offers = plugins.filter_map(|plugin| Some((plugin.mode, plugin.inventory.ok()?.into())));
        Self::new(node.metadata.name.as_str(), |key| node.metadata.label(key), offers)
    }

    /// The same node, which offers these cards or devices too; an inventory that has none is left out.
    #[must_use]
    pub fn with(mut self, mode: SharingMode, inventory: Arc<Inventory>) -> Self {
        if !(inventory.cards().is_empty() && inventory.devices().devices.is_empty()) {
            match self.offers.binary_search_by(|(known, _)| known.cmp(&mode)) {
                Ok(at) => self.offers[at].1 = inventory,
                Err(at) => self.offers.insert(at, (mode, inventory)),
            }
        }
        self
    }

    /// Its cards by mode, in order of the modes.
    pub fn offers(&self) -> impl ExactSizeIterator<Item = (&SharingMode, &Arc<Inventory>)> {
        self.offers.iter().map(|(mode, inventory)| (mode, inventory))
    }

    /// Its cards in this mode.
    pub fn offered_in(&self, mode: &SharingMode) -> Option<&Inventory> {
        self.offers().find(|(offered, _)| *offered == mode).map(|(_, inventory)| &**inventory)
    }

    /// A node of this name and these labels that offers this.
    pub fn new<'a>(
        name: impl Into<Arc<str>>,
        label: impl Fn(&str) -> Option<&'a str>,
        offers: impl IntoIterator<Item = (SharingMode, Arc<Inventory>)>,
    ) -> Self {
        let name = name.into();
        let zone = label(marks::REVOCABLE_ZONE).filter(|zone| !zone.is_empty());
        let node = Self {
            hostname: label(HOSTNAME).filter(|hostname| **hostname != *name).map(str::to_owned),
            zone: zone.map(str::to_owned),
            offers: ThinVec::new(),
            name,
        };
        offers.into_iter().fold(node, |node, (mode, inventory)| node.with(mode, inventory))
    }
}

/// All nodes; built anew when one of them changes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct InventorySummary {
    nodes: BTreeMap<Arc<str>, Arc<NodeOffer>>,
    hostnames: BTreeMap<String, Arc<str>>,
    cards: BTreeSet<CardId>,
    shapes: BTreeMap<SharingMode, Vec<Arc<Inventory>>>,
    /// Modes whose shares a class of devices serves too: how large its devices are is not known.
    by_class: BTreeSet<SharingMode>,
}

/// What makes two nodes alike for a pod that names no card.
type Shape = Vec<(String, u64, u32, u8)>;

impl InventorySummary {
    /// Sums up these nodes.
    pub fn new(offers: impl IntoIterator<Item = impl Into<Arc<NodeOffer>>>) -> Self {
        let mut summary = Self::default();
        let mut seen: BTreeSet<(SharingMode, Shape)> = BTreeSet::new();
        for offer in offers {
            let offer = offer.into();
            for (mode, inventory) in offer.offers() {
                summary.cards.extend(inventory.cards().iter().map(|card| card.id.clone()));
                if seen.insert((mode.clone(), shape(inventory))) {
                    summary.shapes.entry(mode.clone()).or_default().push(inventory.clone());
                }
            }
            if let Some(hostname) = &offer.hostname {
                summary.hostnames.insert(hostname.clone(), offer.name.clone());
            }
            summary.nodes.insert(offer.name.clone(), offer);
        }
        summary
    }

    /// The same, of a cluster in which a class of devices serves shares of these modes too.
    #[must_use]
    pub fn serving_by_class(self, modes: BTreeSet<SharingMode>) -> Self {
        Self { by_class: modes, ..self }
    }

    /// Whether a class of devices serves shares of this mode too.
    pub fn has_class(&self, mode: &SharingMode) -> bool {
        self.by_class.contains(mode)
    }

    /// The node of that name or host's name.
    pub fn node(&self, name: &str) -> Option<&NodeOffer> {
        let by_hostname = || self.nodes.get(self.hostnames.get(name)?);
        self.nodes.get(name).or_else(by_hostname).map(Arc::as_ref)
    }

    /// Every node.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeOffer> {
        self.nodes.values().map(Arc::as_ref)
    }

    /// One node's cards for each kind of node that serves this mode.
    pub fn shapes(&self, mode: &SharingMode) -> &[Arc<Inventory>] {
        self.shapes.get(mode).map_or(&[], Vec::as_slice)
    }

    /// The uuids of all cards, in order.
    pub fn cards(&self) -> &BTreeSet<CardId> {
        &self.cards
    }
}

fn shape(inventory: &Inventory) -> Shape {
    let cards = inventory.cards().iter();
    let mut shape: Shape = cards
        .map(|card| {
            let mode = match card.mode {
                Mode::Soft => 0,
                Mode::Mig => 1,
                Mode::Mps => 2,
                Mode::Templates => 3,
            };
            (card.model.to_string(), card.memory.get(), card.cores.get(), mode)
        })
        .collect();
    shape.sort();
    shape
}
