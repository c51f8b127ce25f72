//! Cards of which more is given away than there is: found by the audit, said, and given to nobody else.
//!
//! Berth does not do that to a card by itself. Another scheduler can, on nodes without a lock; so can a node that comes back with less.
//! What is bound is not taken back here: whose pod goes is for its owner to say.

use std::collections::{BTreeMap, BTreeSet};

use super::Scheduler;
use crate::{
    device::{CardId, CardUsage, Inventory},
    scheduling::{effect::Effect, ledger::Charge, node::NodeName, pod::Uid, snapshot::NodeState},
};

/// A card of a node.
pub(super) type Place = (NodeName, CardId);

impl Scheduler {
    /// Says of each card, once, that more of it is given away than there is.
    pub(super) fn audit_capacity(&mut self) {
        let states = self.snapshot.nodes();
        let over: BTreeMap<Place, String> = states.flat_map(|state| overcommitted(state)).collect();
        let known = std::mem::take(&mut self.overcommitted);
        for ((node, card), amounts) in &over {
            if !known.contains(&(node.clone(), card.clone())) {
                let what = format!("{amounts}, to {}", self.holders(node, card).join(", "));
                self.effects.push(Effect::ReportOvercommitted { node: node.clone(), what });
            }
        }
        self.overcommitted = over.into_keys().collect();
    }

    /// The pods that hold a share of this card, by name.
    fn holders(&self, node: &NodeName, card: &CardId) -> Vec<String> {
        let holds = |charge: &Charge| {
            let shares = charge.assignment.iter().flat_map(|assignment| assignment.shares());
            shares.into_iter().any(|share| share.card == *card)
        };
        let charges = self.snapshot.ledger().on_node(node).filter(|(_, charge)| holds(charge));
        let name = |uid: &Uid| self.pods.get(uid).map(|entry| entry.info.key.to_string());
        let names: BTreeSet<String> = charges.filter_map(|(uid, _)| name(uid)).collect();
        names.into_iter().collect()
    }
}

/// The cards of a node of which more is in use than any plugin says that there is.
fn overcommitted(state: &NodeState) -> Vec<(Place, String)> {
    let cards =
        state.info.offers.iter().filter_map(|offer| offer.inventory.as_ref()).flat_map(Inventory::cards);
    let mut there: BTreeMap<&CardId, CardUsage> = BTreeMap::new();
    for card in cards {
        let most = there.entry(&card.id).or_default();
        most.slots = most.slots.max(card.slots);
        most.memory = most.memory.max(card.memory);
        most.cores = most.cores.max(card.cores);
    }
    let over = |(id, has): (&CardId, CardUsage)| {
        let used = state.usage.card(id);
        let within = used.slots <= has.slots && used.memory <= has.memory && used.cores <= has.cores;
        let text = || {
            format!(
                "Of card {id} {} of {} slots, {} of {} and {} of {} of its cores are given away",
                used.slots, has.slots, used.memory, has.memory, used.cores, has.cores
            )
        };
        (!within).then(|| ((state.info.name.clone(), id.clone()), text()))
    };
    there.into_iter().filter_map(over).collect()
}
