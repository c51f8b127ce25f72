//! Cards of which pods hold more than there is: said once, to everyone who holds a share of one. Nothing is taken from anybody.
//!
//! Berth gives no card away twice: what is found here was written by others, or a card has shrunk since.

use std::collections::BTreeMap;

use super::Scheduler;
use crate::{
    device::{Card, CardId, CardUsage, CoreUnit, Cores, Usage},
    scheduling::{
        effect::Effect,
        model::{
            message::Message,
            name::{NodeName, Uid},
            node::NodeInfo,
            pod::PodKey,
        },
        world::ledger::{Charge, Commitment},
    },
};

impl Scheduler {
    /// Finds out of which cards of the node more is held than there is, and says what is new.
    pub(super) fn watch_cards(&mut self, node: &NodeName) {
        let found = self.excess_of(node);
        let Some(known) = self.reports.excess.replace(node, &found) else { return };
        for (card, message) in found.iter().filter(|(card, _)| !known.contains_key(*card)) {
            for pod in self.holders_of(node, card) {
                let own = "Pods hold more of a card of this Pod than it has";
                let message = self.worded(&pod, Message::with_own(message, own));
                self.outbox.effects.push(Effect::TellExcess { pod, message });
            }
        }
        self.outbox
            .effects
            .push(Effect::ReportExcess { node: node.clone(), cards: found.into_values().collect() });
    }

    /// For each card of which bound pods hold too much, in words what they hold. A decision that is not bound holds nothing of a card: HAMi's
    /// scheduler writes its own before it asks for the lock, and decides anew where it does not get it.
    fn excess_of(&self, node: &NodeName) -> BTreeMap<CardId, String> {
        let Some(state) = self.snapshot.node(node) else { return BTreeMap::new() };
        let found = excess_in(&state.info, &state.usage);
        if found.is_empty() {
            return found;
        }
        let bound = |_: &Uid, charge: &Charge| charge.commitment == Commitment::Bound;
        let of_pods = self.snapshot.ledger().usage_by(&state.info.name, bound);
        let given = self.snapshot.known_use(&state.info, of_pods);
        excess_in(&state.info, &given)
    }

    fn holders_of(&self, node: &NodeName, card: &CardId) -> Vec<PodKey> {
        let aliases = self.snapshot.node(node).map(|state| state.info.aliases.clone()).unwrap_or_default();
        let is_it = |id: &CardId| id == card || aliases.iter().any(|(one, other)| one == id && other == card);
        let holds = |charge: &Charge| {
            charge.commitment == Commitment::Bound && charge.shares().any(|share| is_it(&share.card))
        };
        let holding = self.snapshot.ledger().on_node(node).filter(|(_, charge)| holds(charge));
        holding.filter_map(|(uid, _)| Some(self.pods.get(uid)?.info.key.clone())).collect()
    }
}

/// Each card of the node of which more is held than there is, with that in words. The usage is one that knows the cards' second names.
pub fn excess_in(info: &NodeInfo, usage: &Usage) -> BTreeMap<CardId, String> {
    // What is held of a card of two names stands under both.
    let second = |id: &CardId| info.aliases.iter().any(|(number, _)| number == id);
    let used = usage.cards().filter(|(id, _)| !second(id));
    used.filter_map(|(id, used)| Some((id.clone(), words(info, id, used)?))).collect()
}

/// What is held of a card beyond what there is, by the plugin that has most of it to give; `None`: nothing, or no plugin names it.
fn words(info: &NodeInfo, id: &CardId, used: CardUsage) -> Option<String> {
    let inventories =
        info.offers.iter().filter_map(|offer| Some((offer.core_unit, offer.inventory.as_ref()?)));
    let cards = inventories.flat_map(|(unit, cards)| cards.cards().iter().map(move |card| (unit, card)));
    let cards = cards.filter(|(_, card)| card.id == *id);
    let least = cards.map(|(unit, card)| beyond(unit, card, used)).min_by_key(Vec::len);
    let beyond = least.filter(|beyond| !beyond.is_empty())?;
    Some(format!("Pods hold more of card {id} on node {} than it has: {}", info.name, beyond.join(", ")))
}

fn beyond(unit: CoreUnit, card: &Card, used: CardUsage) -> Vec<String> {
    let cores = match unit {
        CoreUnit::Percent => card.cores.max(Cores::WHOLE),
        CoreUnit::Units => card.cores,
    };
    let beyond = [
        (used.slots > card.slots).then(|| format!("{} of {} slots", used.slots, card.slots)),
        (used.memory > card.memory).then(|| format!("{} of {}", used.memory, card.memory)),
        (used.cores > cores).then(|| unit.words_of(used.cores, cores)),
    ];
    beyond.into_iter().flatten().collect()
}
