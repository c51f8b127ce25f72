//! What claims hold of the cards of nodes: a fold over claims for each pool, found anew where a claim or the pool changes.
//!
//! A device and a card are twins where the device names the card's id as its own, or as that of which it is a part.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    device::{CardId, Claimed, DeviceType, Inventory as Cards, Usage},
    dra::{
        DevicePools, PoolId,
        capacity::percent,
        device::{CORES, MEMORY, PoolDevice},
    },
    object::{
        NodeSelectorTerm,
        resource_claim::{AllocatedDevice, AllocationResult},
    },
    persistent::{PersistentMap, value_of},
    scheduling::model::{name::NodeName, node::NodeInfo},
};

/// What the claims on one pool hold of the cards of one node.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct PoolClaims {
    cards: BTreeMap<CardId, Claimed>,
    /// Where a claim holds a device that the pool does not publish any more: the cards that it is not, since the pool publishes these.
    unknown: Option<BTreeSet<CardId>>,
}

/// What claims hold of the cards of nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct ClaimedCards {
    by_node: PersistentMap<NodeName, BTreeMap<PoolId, PoolClaims>>,
    nodes: PersistentMap<PoolId, BTreeSet<NodeName>>,
    /// The nodes for which that has changed since it was last asked.
    moved: BTreeSet<NodeName>,
}

impl ClaimedCards {
    /// Folds anew what these allocations hold of a pool.
    pub(super) fn refold<'a>(
        &mut self,
        pool: &PoolId,
        inventory: &DevicePools,
        allocations: impl Iterator<Item = &'a AllocationResult>,
    ) {
        let mut now = fold(pool, inventory, allocations);
        let before = self.nodes.get(pool).cloned().unwrap_or_default();
        let nodes: BTreeSet<NodeName> = now.keys().cloned().collect();
        let touched: BTreeSet<NodeName> = before.union(&nodes).cloned().collect();
        if nodes.is_empty() {
            self.nodes.remove_mut(pool);
        } else {
            self.nodes.insert_mut(pool.clone(), nodes);
        }
        for node in touched {
            if self.set(&node, pool, now.remove(&node)) {
                self.moved.insert(node);
            }
        }
    }

    /// The nodes for which that has changed since this was last asked.
    pub(super) fn take_moved(&mut self) -> BTreeSet<NodeName> {
        std::mem::take(&mut self.moved)
    }

    /// Whether that is a change.
    fn set(&mut self, node: &NodeName, pool: &PoolId, claims: Option<PoolClaims>) -> bool {
        let pools = value_of(&mut self.by_node, node);
        let is_same = pools.get(pool) == claims.as_ref();
        pools.remove(pool);
        pools.extend(claims.map(|claims| (pool.clone(), claims)));
        if pools.is_empty() {
            self.by_node.remove_mut(node);
        }
        !is_same
    }

    /// What claims hold of the cards of a node; `None`: nothing.
    pub(super) fn on_node(&self, node: &str) -> Option<NodeClaims<'_>> {
        Some(NodeClaims { pools: self.by_node.get(node) }).filter(|claims| claims.pools.is_some())
    }

    /// What claims on other pools hold of a card.
    pub(super) fn beside(&self, node: &str, pool: &PoolId, card: &CardId) -> Claimed {
        let others = self.by_node.get(node).into_iter().flatten().filter(|(other, _)| *other != pool);
        others
            .filter_map(|(_, claims)| claims.cards.get(card))
            .copied()
            .fold(Claimed::default(), Claimed::and)
    }
}

/// What claims hold of the cards of one node.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduling) struct NodeClaims<'a> {
    pub(super) pools: Option<&'a BTreeMap<PoolId, PoolClaims>>,
}

/// Whether what is not known of claims counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::scheduling) enum Doubt {
    /// A card that a claim may hold is held.
    Counted,
    /// Only what is known to be held is.
    Skipped,
    /// As no claim of the node can be read, each card may be held.
    Every,
}

impl NodeClaims<'_> {
    /// Of a node of which nothing is known.
    pub(in crate::scheduling) const NONE: Self = NodeClaims { pools: None };

    /// The use of the node's cards, with what claims hold of them, under each name and as each plugin offers them; those that no plugin offers included.
    pub(in crate::scheduling) fn join(self, info: &NodeInfo, mut usage: Usage, doubt: Doubt) -> Usage {
        let offers = info
            .devices
            .offers
            .iter()
            .filter_map(|offer| Some((offer.core_unit, offer.inventory.as_deref()?)));
        let mut known: BTreeSet<CardId> = BTreeSet::new();
        for id in offers.clone().flat_map(|(_, inventory)| ids(inventory)) {
            if known.contains(&id) {
                continue;
            }
            let names: Vec<&CardId> = info.devices.names_of(&id).collect();
            let claimed = self.of(&names, doubt);
            if claimed != Claimed::default() {
                usage = usage.with_claimed(&names, claimed, offers.clone());
            }
            known.extend(names.into_iter().cloned());
        }
        for card in info.devices.cards.iter().filter(|card| !known.contains(&card.id)) {
            usage = usage.with_published(&card.id, self.of(&[&card.id], doubt));
        }
        usage
    }

    /// What claims hold of the card of these names.
    fn of(self, names: &[&CardId], doubt: Doubt) -> Claimed {
        let mut claimed = Claimed { doubtful: doubt == Doubt::Every, ..Claimed::default() };
        for pool in self.pools.into_iter().flat_map(BTreeMap::values) {
            let held = names.iter().filter_map(|name| pool.cards.get(*name)).copied();
            claimed = held.fold(claimed, Claimed::and);
            let may_be = |others: &BTreeSet<CardId>| !names.iter().any(|name| others.contains(*name));
            claimed.doubtful |= doubt != Doubt::Skipped && pool.unknown.as_ref().is_some_and(may_be);
        }
        claimed
    }
}

/// The ids of what a plugin offers.
fn ids(cards: &Cards) -> impl Iterator<Item = CardId> {
    let gpus = cards.devices().of(DeviceType::Gpu).map(|(_, gpu)| gpu.id.as_str());
    let gpus = gpus.filter(|id| !id.is_empty()).map(CardId::from);
    cards.cards().iter().map(|card| card.id.clone()).chain(gpus)
}

/// What these allocations hold of a pool, by node.
pub(super) fn fold<'a>(
    pool: &PoolId,
    inventory: &DevicePools,
    allocations: impl Iterator<Item = &'a AllocationResult>,
) -> BTreeMap<NodeName, PoolClaims> {
    let mut nodes: BTreeMap<NodeName, PoolClaims> = BTreeMap::new();
    if !inventory.may_name_hardware(&pool.0) {
        return nodes;
    }
    let published: BTreeMap<&str, &PoolDevice> =
        inventory.devices_of(pool).map(|device| (&*device.id.device, device)).collect();
    for allocation in allocations {
        for result in allocation.devices.results.iter().filter(|result| is_use(result, pool)) {
            match published.get(&*result.device) {
                Some(device) => {
                    if let (Some(id), Some(node)) = (&device.hardware, device.node()) {
                        let of_node = nodes.entry(node.into()).or_default();
                        let card = of_node.cards.entry(id.into()).or_default();
                        *card = card.and(claimed(result, device));
                    }
                }
                None => {
                    if let Some(node) = one_node(allocation) {
                        nodes.entry(node.into()).or_default().unknown.get_or_insert_default();
                    }
                }
            }
        }
    }
    for (node, claims) in &mut nodes {
        if let Some(others) = &mut claims.unknown {
            let here = published.values().filter(|device| device.node() == Some(&**node));
            others.extend(here.filter_map(|device| device.hardware.as_ref()).map(CardId::from));
        }
    }
    nodes
}

/// Whether something of the pool is in use by this: what administrators watch over is not.
fn is_use(result: &AllocatedDevice, (driver, pool): &PoolId) -> bool {
    result.admin_access != Some(true) && result.driver == **driver && result.pool == **pool
}

/// What a result holds of the card of its device. A share of which the memory is not known leaves nothing of the card.
pub(super) fn claimed(result: &AllocatedDevice, device: &PoolDevice) -> Claimed {
    let whole = Claimed { whole: true, ..Claimed::default() };
    if result.share_id.is_none() {
        return whole;
    }
    let consumed = |name: &str| {
        let (spelled, all) = device.capacity(name)?;
        let consumed = result.consumed_capacity.get(spelled)?.amount().ok()?;
        Some((consumed.units_rounded_up(), all.units_rounded_up()))
    };
    let Some((memory, _)) = consumed(MEMORY) else { return whole };
    let cores = match consumed(CORES) {
        Some((cores, all)) => percent(cores, all),
        None if device.capacity(CORES).is_some() => return whole,
        None => 0,
    };
    Claimed { shares: 1, memory: u64::try_from(memory).unwrap_or(0), cores, ..Claimed::default() }
}

/// The one node where the devices of an allocation can be used; `None`: there are several.
fn one_node(allocation: &AllocationResult) -> Option<&str> {
    let [NodeSelectorTerm { match_fields, .. }] = &allocation.node_selector.as_ref()?.node_selector_terms[..]
    else {
        return None;
    };
    let named = match_fields.iter().find(|field| field.key == "metadata.name" && field.operator == "In")?;
    match &named.values[..] {
        [node] => Some(node),
        _ => None,
    }
}
