//! What can never run: asked of all the cards that there are, taken or free. Without an inventory nothing is said.
//!
//! Whether a pod fits now is scheduling's to say.

use super::{
    facts::Facts, findings::Findings, inventory::InventorySummary, rules, shares::Shares, verdict::Rule,
};
use crate::{
    device::{Card, Inventory, PodRequest, ShareRequest},
    dialect::Dialect,
    object::Pod,
};

/// Judges what the pod asks in each mode that is spoken.
pub fn judge(findings: &mut Findings, pod: &Pod, shares: &Shares<'_>, facts: &Facts) {
    let Some(inventory) = &facts.inventory else { return };
    for (dialect, request) in shares.requests() {
        let fields = pod.containers().map(|(field, _)| field);
        for (field, container) in fields.zip(&request.containers) {
            let Some(share) = container.share else { continue };
            if let Some((rule, message)) = fault(request, share, dialect, inventory) {
                findings.report(
                    facts.settings.guards.never_fits,
                    rule,
                    format!("{field}.resources"),
                    message,
                );
            }
        }
    }
}

/// Why no node could serve the share, if none could.
fn fault(
    request: &PodRequest,
    share: ShareRequest,
    dialect: &dyn Dialect,
    inventory: &InventorySummary,
) -> Option<(Rule, String)> {
    let mode = dialect.mode();
    let named = !request.selection.ids.one_of.is_empty();
    let by_name = || inventory.nodes().filter_map(|node| node.offers.get(mode)).collect();
    // Nodes of one kind are alike, unless cards are chosen by name.
    let nodes: Vec<&Inventory> = if named { by_name() } else { inventory.shapes(mode).iter().collect() };
    if nodes.is_empty() {
        return Some((rules::NO_SUCH_CARD, format!("no known node offers cards in mode {mode}")));
    }
    let chosen = |card: &&Card| {
        let selection = &request.selection;
        selection.models.admits(&card.model) && selection.ids.admits(&card.id) && selection.admits_mode(card)
    };
    let cores = |card: &Card| dialect.profile().core_budget.share(share.cores, card.cores);
    let large = |card: &&Card| share.memory.of(card.memory) <= card.memory && cores(card) <= card.cores;
    let candidates = || nodes.iter().flat_map(|node| node.cards().iter()).filter(chosen);
    let Some(largest) = candidates().map(|card| card.memory).max() else {
        return Some((rules::NO_SUCH_CARD, no_such_card(&nodes)));
    };
    let widest = nodes.iter().map(|node| node.cards().iter().filter(chosen).filter(large).count()).max();
    match widest.unwrap_or(0) {
        0 => {
            let asked = share.memory.of(largest);
            let message = format!("asks for {asked} of a card; the largest that could serve has {largest}");
            Some((rules::TOO_MUCH_MEMORY, message))
        }
        widest if widest < usize::try_from(share.cards.get()).unwrap_or(usize::MAX) => {
            let cards = share.cards;
            let message =
                format!("asks for {cards} different cards; the largest node has {widest} that could serve");
            Some((rules::TOO_MANY_CARDS, message))
        }
        _ => None,
    }
}

fn no_such_card(nodes: &[&Inventory]) -> String {
    let cards = nodes.iter().flat_map(|node| node.cards().iter());
    let mut models: Vec<_> = cards.map(|card| card.model.as_ref()).collect();
    models.sort_unstable();
    models.dedup();
    models.truncate(8);
    format!("no known card is one that the hints admit; known types: {}", models.join(", "))
}
