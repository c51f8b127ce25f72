//! What the cards of each node and the pods of each namespace come to, summed; and how many rows there are of single ones.
//!
//! A node's cards are looked at and forgotten before the next node's, so that a scrape of a large cluster takes little memory. No names of metrics.

use std::{borrow::Cow, collections::BTreeMap, iter::Peekable, sync::Arc};

use super::{Holdings, rows::model};
use crate::{
    cluster::report::{
        cards::{HeldCard, NodeCards, OfferedCard, held_on},
        gpus::models::{FleetCount, FleetGpus, counted},
    },
    device::Inventory,
    scheduling::world::ledger::Charge,
};

/// What the cards of one model on one node come to.
#[derive(Debug, Default)]
pub(super) struct CardSums {
    /// How many there are.
    pub(super) cards: f64,
    /// How many work.
    pub(super) healthy: f64,
    /// Bytes.
    pub(super) memory: f64,
    /// Bytes that are given away.
    pub(super) memory_allocated: f64,
    /// In whole cards.
    pub(super) cores: f64,
    /// In whole cards.
    pub(super) cores_allocated: f64,
    /// Containers that can share them.
    pub(super) slots: f64,
    /// Containers that share them.
    pub(super) slots_allocated: f64,
}

/// What the pods of a namespace hold of one model: bytes, whole cards and shares.
pub(super) type HeldSums = [f64; 3];

/// Every sum.
#[derive(Debug, Default)]
pub(super) struct Totals<'a> {
    /// By node and model, in order of the node's name.
    pub(super) nodes: Vec<(&'a str, Cow<'a, str>, CardSums)>,
    /// By namespace and model.
    pub(super) namespaces: BTreeMap<&'a str, BTreeMap<Arc<str>, HeldSums>>,
    /// By model.
    pub(super) gpus: BTreeMap<Arc<str>, FleetGpus>,
    pub(super) rows: RowCounts,
}

/// How many rows there are of single things.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RowCounts {
    pub(super) cards: usize,
    pub(super) devices: usize,
    /// Pods, once for each card of which they hold something.
    pub(super) held: usize,
}

impl<'a> Totals<'a> {
    /// The sums of these holdings.
    pub(super) fn of(holdings: &'a Holdings) -> Self {
        let mut totals = Self::default();
        let mut gpus = FleetCount::of_shapes(&holdings.shapes);
        let mut charges = holdings.charges.of_shares().map(AsRef::as_ref).peekable();
        for state in holdings.world.nodes() {
            let name = &*state.info.name;
            // Both are in order of the node's name: what is before this one is on nodes that are gone.
            totals.hold_before(&mut charges, None, |node| node < name);
            let inventories = state.info.devices.offers.iter().filter_map(|offer| offer.inventory.as_deref());
            totals.rows.devices +=
                inventories.map(|one| Inventory::devices(one).devices.len()).sum::<usize>();
            let cards = NodeCards::of(state, &holdings.dialects);
            if !cards.cards.is_empty() {
                gpus.add(state, &cards);
                totals.offer(name, &cards);
            }
            totals.hold_before(&mut charges, Some(&cards), |node| node == name);
        }
        totals.hold_before(&mut charges, None, |_| true);
        totals.gpus = gpus.into_models();
        totals
    }

    fn offer(&mut self, node: &'a str, cards: &NodeCards<'a>) {
        self.rows.cards += cards.cards.len();
        let first = self.nodes.len();
        for offered in &cards.cards {
            let card = offered.card;
            let model = model(&card.model);
            let place = self.nodes[first..].iter().position(|(_, known, _)| *known == model);
            let place = place.map_or(self.nodes.len(), |place| first + place);
            if place == self.nodes.len() {
                self.nodes.push((node, model, CardSums::default()));
            }
            self.nodes[place].2.add(offered);
        }
    }

    /// Takes in the charges that come next, as long as they are of such a node.
    fn hold_before(
        &mut self,
        charges: &mut Peekable<impl Iterator<Item = &'a Charge>>,
        cards: Option<&NodeCards<'_>>,
        is_on: impl Fn(&str) -> bool,
    ) {
        while let Some(charge) = charges.next_if(|charge| is_on(&charge.node)) {
            let cards = cards.filter(|cards| !cards.cards.is_empty());
            let held = held_on(cards, &charge.allocations, charge.init);
            self.rows.held += held.len();
            let models = self.namespaces.entry(&charge.pod.namespace).or_default();
            for held in &held {
                let sums = counted(models, held.model());
                sums.iter_mut().zip(amounts(held)).for_each(|(sum, amount)| *sum += amount);
            }
        }
    }
}

/// What a pod holds of a card: bytes, whole cards and shares.
pub(super) fn amounts(held: &HeldCard<'_>) -> HeldSums {
    [super::bytes(held.used.memory), held.ratio(), f64::from(held.used.slots)]
}

impl CardSums {
    fn add(&mut self, offered: &OfferedCard<'_>) {
        self.cards += 1.0;
        self.healthy += f64::from(u8::from(offered.is_healthy()));
        self.memory += super::bytes(offered.card.memory);
        self.memory_allocated += super::bytes(offered.used.memory);
        self.cores += offered.ratio(offered.cores);
        self.cores_allocated += offered.ratio(offered.used.cores);
        self.slots += f64::from(offered.card.slots);
        self.slots_allocated += f64::from(offered.used.slots);
    }
}
