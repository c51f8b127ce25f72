//! Requests that no card of the cluster could ever serve, whether it is free or in use. Without an inventory, it reports nothing.
//!
//! Whether a pod fits now is decided by scheduling.

use std::collections::{BTreeSet, HashMap};

use super::{
    facts::Facts, findings::ReviewFindings, inventory::InventorySummary, rules, settings::Severity,
    shares::PodShares, verdict::Rule, work::Work,
};
use crate::{
    device::{Card, Cores, Inventory, MiB, PodRequest, ShareRequest},
    dialect::{Dialect, SharingMode},
    excerpt::listed,
    object::Pod,
};

/// The most types that a message lists.
const MOST_TYPES: usize = 8;

/// Judges what the pod asks in each mode that is spoken. Where the settings only warn, it is optional work.
pub fn judge(findings: &mut ReviewFindings, pod: &Pod, shares: &PodShares<'_>, facts: &Facts) {
    let (Some(inventory), severity) = (&facts.inventory, facts.settings.guards.never_fits) else { return };
    if severity == Severity::Allow {
        return;
    }
    // What a driver of devices publishes is not known here.
    let requests = shares.requests().filter(|(dialect, _)| !inventory.has_class(dialect.mode()));
    for (dialect, request) in requests {
        let cards = ServingCards::of(request, dialect, inventory);
        if !may(severity, findings.work(), cards.looked_at) {
            return;
        }
        let mut rows: HashMap<Vec<Cores>, Row> = HashMap::new();
        let fields = pod.containers().map(|(field, _)| field);
        for (field, container) in fields.zip(&request.containers) {
            let Some(share) = container.share else { continue };
            let compute = cards.with_compute_for(share);
            let steps = cards.compute.len() + if rows.contains_key(&compute) { 0 } else { cards.looked_at };
            if !may(severity, findings.work(), steps) {
                return;
            }
            let row = rows.entry(compute).or_insert_with_key(|compute| cards.row(compute));
            if let Some((rule, message)) = cards.fault(share, row) {
                findings.report(severity, rule, format!("{field}.resources"), message);
            }
        }
    }
}

/// Whether the work is to be done: a decision always is.
fn may(severity: Severity, work: &mut Work, steps: usize) -> bool {
    if severity == Severity::Deny {
        work.count(steps);
        return true;
    }
    work.afford(steps)
}

/// The n-th is the most memory that n cards of one node have each, on the node that does best.
type Row = Vec<MiB>;

/// The cards that could serve a pod, whatever size its shares have.
struct ServingCards<'a> {
    /// Memory and compute of each, for each kind of node that has any.
    nodes: BTreeSet<Vec<(MiB, Cores)>>,
    /// The different amounts of compute.
    compute: BTreeSet<Cores>,
    /// The memory of the largest.
    largest: Option<MiB>,
    /// The types of all that are known, whether they could serve or not.
    models: BTreeSet<&'a str>,
    /// The mode in which they are offered.
    mode: &'a SharingMode,
    /// Cards that were looked at.
    looked_at: usize,
}

impl<'a> ServingCards<'a> {
    fn of(request: &PodRequest, dialect: &'a dyn Dialect, inventory: &'a InventorySummary) -> Self {
        let mode = dialect.mode();
        let selection = &request.selection;
        let wanted: BTreeSet<&str> = selection.ids.one_of.iter().map(String::as_str).collect();
        let unwanted: BTreeSet<&str> = selection.ids.none_of.iter().map(String::as_str).collect();
        // Nodes of one kind are alike, unless cards are chosen by name.
        let nodes: Vec<&Inventory> = if wanted.is_empty() {
            inventory.shapes(mode).iter().map(|inventory| &**inventory).collect()
        } else {
            inventory.nodes().filter_map(|node| node.offered_in(mode)).collect()
        };
        let all = || nodes.iter().flat_map(|node| node.cards());
        let models: BTreeSet<&str> = all().map(|card| card.model.as_ref()).collect();
        let admitted: BTreeSet<&str> =
            models.iter().copied().filter(|model| selection.models.admits(model)).collect();
        let is_chosen = |card: &&Card| {
            let id = card.id.as_str();
            (wanted.is_empty() || wanted.contains(id))
                && !unwanted.contains(id)
                && selection.admits_mode(card)
                && admitted.contains(card.model.as_ref())
        };
        let chosen = |node: &&Inventory| {
            let sizes = node.cards().iter().filter(is_chosen).map(|card| (card.memory, card.cores));
            let mut sizes: Vec<_> = sizes.collect();
            sizes.sort_unstable();
            sizes
        };
        let looked_at = all().count();
        let nodes: BTreeSet<_> = nodes.iter().map(chosen).filter(|cards| !cards.is_empty()).collect();
        let compute = nodes.iter().flatten().map(|(_, compute)| *compute).collect();
        let largest = nodes.iter().filter_map(|node| node.last()).map(|(memory, _)| *memory).max();
        Self { nodes, compute, largest, models, mode, looked_at }
    }

    /// The message for a pod that no card could serve.
    fn none(&self) -> String {
        if self.models.is_empty() {
            return format!("no known node offers cards in mode {}", self.mode);
        }
        let models: Vec<_> = self.models.iter().collect();
        format!("no known GPU matches the hints; known types: {}", listed(&models, MOST_TYPES))
    }

    /// The amounts of compute that are enough for the share.
    fn with_compute_for(&self, share: ShareRequest) -> Vec<Cores> {
        self.compute.iter().copied().filter(|&compute| share.cores.of(compute) <= compute).collect()
    }

    /// What the cards with these amounts of compute have.
    fn row(&self, compute: &[Cores]) -> Row {
        let mut row = Row::new();
        for node in &self.nodes {
            // Largest first, as the sizes are sorted.
            let enough = node.iter().rev().filter(|(_, its)| compute.binary_search(its).is_ok());
            for (at, (memory, _)) in enough.enumerate() {
                match row.get_mut(at) {
                    Some(best) => *best = (*memory).max(*best),
                    None => row.push(*memory),
                }
            }
        }
        row
    }

    /// Why no node could serve the share; `None` if one could.
    fn fault(&self, share: ShareRequest, row: &Row) -> Option<(Rule, String)> {
        let Some(largest) = self.largest else {
            return Some((rules::NO_SUCH_CARD, self.none()));
        };
        let asked = |memory| share.memory.of(memory);
        match row.partition_point(|memory| asked(*memory) <= *memory) {
            0 => {
                let asked = asked(largest);
                let message =
                    format!("asks for {asked} of a card; the largest that could serve has {largest}");
                Some((rules::TOO_MUCH_MEMORY, message))
            }
            widest if widest < usize::try_from(share.cards.get()).unwrap_or(usize::MAX) => {
                let cards = share.cards;
                let message = format!(
                    "asks for {cards} different cards; the largest node has {widest} that could serve"
                );
                Some((rules::TOO_MANY_CARDS, message))
            }
            _ => None,
        }
    }
}
