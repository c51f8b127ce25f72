//! Why a claim can't be allocated on a node, in words.

use super::pool::{MigrationPool, PoolCard, PoolNode};
use crate::{
    dra::HeldDevices,
    object::{Amount, resource_claim::ResourceClaimSpec},
};

/// What is left on a node.
pub(super) struct LeftOnNode<'a> {
    pub(super) held: &'a HeldDevices,
    /// Whether the claim would be given devices if no other claim had any.
    pub(super) alone: bool,
}

/// Why the node can't serve the claim.
pub(super) fn of(
    spec: &ResourceClaimSpec,
    node: &PoolNode,
    pool: &MigrationPool<'_>,
    left: &LeftOnNode<'_>,
) -> String {
    let driver = pool.class.driver;
    if node.cards.is_empty() {
        return format!("driver {driver} would publish no card of node {}", node.name);
    }
    let asked = spec.devices.requests.iter().filter_map(|request| request.exactly.as_ref());
    let wants_shares = asked.clone().any(|devices| devices.capacity.is_some());
    if wants_shares && node.cards.iter().all(|card| !card.shareable) {
        let cards: i64 = asked.filter_map(|devices| devices.count).sum();
        let free = node.cards.iter().filter(|card| left.held.of(&card.id).is_none()).count();
        return format!(
            "driver {driver} publishes no card that several claims can share; the pod would need {cards} whole card(s), and {free} of {} are free",
            node.cards.len()
        );
    }
    if left.alone {
        let rest: Vec<String> = node.cards.iter().map(|card| rest(card, left.held)).collect();
        return format!("the claims before it leave too little: {}", rest.join("; "));
    }
    "no card of the node would fit, even if all were free".to_owned()
}

/// What claims leave of a card.
fn rest(card: &PoolCard, held: &HeldDevices) -> String {
    let name = &card.id.device;
    let Some(taken) = held.of(&card.id) else { return format!("all of {name}") };
    if taken.whole {
        return format!("nothing of {name}");
    }
    let consumed = |capacity: &str| taken.consumed.get(capacity).copied().unwrap_or_default();
    let Some(memory) = card.memory else { return format!("a part of {name}") };
    let memory = Amount::units(i64::try_from(memory.get() << 20).unwrap_or(i64::MAX));
    let memory = memory.minus(consumed("memory")).whole().unwrap_or_default().max(0) >> 20;
    let cores = Amount::units(100).minus(consumed("cores")).whole().unwrap_or_default().max(0);
    format!("{memory} MiB and {cores} % of {name}")
}
