//! What is in use of the devices that a node can reach, with what others than their own pool's claims use of the hardware that they are:
//! pods that hold shares of the same card, and claims on another driver's device.
//!
//! Found for one node and forgotten: nothing of it is stored.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{ResourceClaims, cards::claimed};
use crate::{
    device::{CardId, CardUsage, Claimed, CoreUnit, Cores, MiB, Usage},
    dra::{
        self, DevicePools, HeldDevices, PoolId,
        capacity::percent,
        device::{CORES, DeviceId, MEMORY, PoolDevice},
        held::DeviceInUse,
    },
    object::{Amount, resource_claim::AllocationResult},
    scheduling::{
        model::node::NodeInfo,
        world::{node_parts::Description, node_state::NodeState},
    },
};

/// Whether the pod asks for shares of registered cards beside its claims.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(in crate::scheduling) enum Beside {
    /// It does not.
    Nothing,
    /// It does: which cards it gets is not known when its claims are decided on, so these get none that is registered.
    Shares,
}

/// What others use of the hardware of a device, and how many more shares of it can be given; `None`: as many as its capacities allow.
type Others = (Option<DeviceInUse>, Option<u32>);

impl ResourceClaims {
    /// What is in use of the devices that the node can reach: by claims, and beside them of the cards that some of the devices are.
    pub(in crate::scheduling) fn in_use(&self, node: &NodeState, beside: Beside) -> Cow<'_, HeldDevices> {
        let name = &*node.info.name;
        let pools = self.inventory.hardware_pools(name);
        let kept = node.claimed.kept.as_deref().unwrap_or_default();
        let is_alone =
            pools == 0 || pools == 1 && node.info.devices.offers.is_empty() && node.registered().is_nothing();
        if is_alone && kept.is_empty() {
            return Cow::Borrowed(&self.held);
        }
        let mut others: BTreeMap<&DeviceId, Others> = BTreeMap::new();
        for (pool, device) in self.inventory.hardware_of(name) {
            let used = self.others(node, (pool, device), beside);
            if used != (None, None) {
                others.insert(&device.id, used);
            }
        }
        if others.is_empty() && kept.is_empty() {
            return Cow::Borrowed(&self.held);
        }
        let mut held = self.held.of_pools(self.inventory.pools_near(name));
        for allocation in kept {
            held.add(allocation);
        }
        for (id, (used, shares_left)) in others {
            held.add_unclaimed(id, used, shares_left);
        }
        Cow::Owned(held)
    }

    fn others(&self, node: &NodeState, (pool, device): (&PoolId, &PoolDevice), beside: Beside) -> Others {
        let Some(id) = device.hardware.as_ref().map(CardId::from) else { return (None, None) };
        let all = || (Some(DeviceInUse { whole: true, ..DeviceInUse::default() }), None);
        let registered = node.registered();
        if registered.unread().iter().any(|profile| node.info.devices.may_have(&id, profile))
            || beside == Beside::Shares && node.info.devices.has_card(&id)
        {
            return all();
        }
        let slots = node.info.devices.cards_named(&id).map(|(_, card)| card.slots).max();
        let shares_left = slots.map(|slots| slots.saturating_sub(node.usage.card(&id).slots));
        let claims =
            self.cards.beside(&node.info.name, pool, &id).and(kept_beside(&self.inventory, node, pool, &id));
        if registered.users(&id).is_none() && claims == Claimed::default() {
            return (None, shares_left.filter(|_| device.shareable));
        }
        shared(&node.info, registered, (&id, device), claims)
            .map_or_else(all, |used| (Some(used), shares_left))
    }

    /// The claims, by full name, that hold some of the card of these names.
    pub fn holders_of(&self, node: &str, card: &[&CardId]) -> BTreeSet<Arc<str>> {
        let is_it = |device: &PoolDevice| {
            device.hardware.as_deref().is_some_and(|id| card.iter().any(|name| name.as_str() == id))
        };
        let devices = self.inventory.hardware_of(node).filter(|(_, device)| is_it(device));
        let claims = devices.flat_map(|(pool, device)| {
            self.by_pool.get(pool).into_iter().flatten().map(move |claim| (claim, &device.id))
        });
        claims.filter(|(claim, id)| self.holds(claim, id)).map(|(claim, _)| claim.clone()).collect()
    }

    fn holds(&self, claim: &str, device: &DeviceId) -> bool {
        let allocation = self.claims.get(claim).and_then(|standing| standing.allocation());
        allocation.into_iter().flat_map(|allocation| &allocation.devices.results).any(|result| {
            (&*result.driver, &*result.pool, &*result.device)
                == (&*device.driver, &*device.pool, &*device.device)
                && result.admin_access != Some(true)
        })
    }

    /// Whether two of these devices, of different pools, are one card.
    pub(in crate::scheduling) fn are_one_card(&self, node: &str, given: &[AllocationResult]) -> bool {
        if self.inventory.hardware_pools(node) < 2 {
            return false;
        }
        let results = given.iter().flat_map(|allocation| &allocation.devices.results);
        let mut pools: BTreeMap<&str, &DeviceId> = BTreeMap::new();
        let devices = results
            .filter(|result| result.admin_access != Some(true))
            .filter_map(|result| self.inventory.device(&result.into()));
        devices.filter_map(|device| Some((device.hardware.as_deref()?, &device.id))).any(|(hardware, id)| {
            let known = pools.insert(hardware, id);
            known.is_some_and(|known| (&known.driver, &known.pool) != (&id.driver, &id.pool))
        })
    }
}

/// Describes the node's devices, with these of their attributes, so that the allocator finds the same on nodes with equal descriptions for claims of pods
/// that ask for no shares ([`dra::describe`]), and returns how many there are; `None`: the node can't be described so.
pub(in crate::scheduling) fn describe_devices(
    claims: &ResourceClaims,
    node: &NodeState,
    attributes: &BTreeSet<String>,
    description: &mut Description,
) -> Option<usize> {
    // Which devices of several pools are one card is not described.
    if claims.inventory.hardware_pools(&node.info.name) > 1 {
        return None;
    }
    let held = claims.in_use(node, Beside::Nothing);
    dra::describe(node.target(), (&claims.inventory, &held), attributes, description)
}

/// What is kept on the node of a card, through devices of other pools.
fn kept_beside(inventory: &DevicePools, node: &NodeState, pool: &PoolId, card: &CardId) -> Claimed {
    let kept = node.claimed.kept.iter().flatten();
    let results = kept.flat_map(|allocation| &allocation.devices.results);
    let others = results.filter(|result| (&*result.driver, &*result.pool) != (&*pool.0, &*pool.1));
    let of_card = others.filter(|result| result.admin_access != Some(true)).filter_map(|result| {
        let device = inventory.device(&result.into())?;
        (device.hardware.as_deref() == Some(card.as_str())).then(|| claimed(result, device))
    });
    of_card.fold(Claimed::default(), Claimed::and)
}

/// What others use of a device's capacities; `None`: none of it can be given.
fn shared(
    node: &NodeInfo,
    registered: &Usage,
    (id, device): (&CardId, &PoolDevice),
    claims: Claimed,
) -> Option<DeviceInUse> {
    let users = registered.users(id);
    let sliced = users.is_some_and(|users| !users.slices.is_empty());
    if !device.shareable || claims.whole || sliced {
        return None;
    }
    let amounts = users.map(|users| users.amounts).unwrap_or_default();
    let memory = amounts.memory.known()?.get().saturating_mul(MiB::BYTES).saturating_add(claims.memory);
    let cores = percent_of(node, id, amounts)?.saturating_add(claims.cores);
    if cores >= 100 {
        return None;
    }
    let (spelled, _) = device.capacity(MEMORY)?;
    let memory = Amount::units(i64::try_from(memory).unwrap_or(i64::MAX));
    let mut consumed = BTreeMap::from([(spelled.to_owned(), memory)]);
    if let Some((spelled, all)) = device.capacity(CORES) {
        let part = i128::from(all.units_rounded_up()) * i128::from(cores);
        let part = part / 100 + i128::from(part % 100 != 0);
        consumed.insert(spelled.to_owned(), Amount::units(i64::try_from(part).unwrap_or(i64::MAX)));
    }
    Some(DeviceInUse { consumed, ..DeviceInUse::default() })
}

/// The compute of a card that pods hold by their shares, in percent; `None`: it is not known, as no plugin offers the card any more.
fn percent_of(node: &NodeInfo, id: &CardId, amounts: CardUsage) -> Option<u32> {
    let held = amounts.cores.known()?;
    if held == Cores::NONE {
        return Some(0);
    }
    let of_cards = node.devices.cards_named(id).map(|(unit, card)| match unit {
        CoreUnit::Percent => held.get(),
        CoreUnit::Units => percent(held.get().into(), card.cores.get().into()),
    });
    of_cards.max().or_else(|| node.devices.has_card(id).then_some(held.get()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        device::{Card, Health, Inventory as Cards, Mode, Slicing, Users},
        dra::DevicePools,
        object::ResourceSlice,
        scheduling::{fixtures, model::node::Offer},
    };

    /// A node whose plugin registers `GPU-a` with so much compute in this unit.
    fn node(unit: CoreUnit, cores: u32) -> NodeInfo {
        let card = Card {
            id: "GPU-a".into(),
            index: 0,
            slots: 10,
            memory: MiB::new(1000),
            cores: Cores::new(cores),
            model: "A100".into(),
            numa: 0,
            mode: Mode::Soft,
            slicing: Slicing::Unknown,
            health: Health::Healthy,
        };
        let inventory = Some(Cards::new(vec![card]).into());
        let offer = Offer { core_unit: unit, profile: "test".into(), inventory };
        fixtures::node_offering("n1", vec![offer])
    }

    fn inventory(capacity: &Value) -> DevicePools {
        let attributes = json!({"uuid": {"string": "GPU-a"}});
        let device = json!({"name": "d", "allowMultipleAllocations": true, "attributes": attributes, "capacity": capacity});
        let spec = json!({"driver": "gpu.example.com", "nodeName": "n1", "devices": [device],
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}});
        let slice: ResourceSlice =
            serde_json::from_value(json!({"metadata": {"name": "s"}, "spec": spec})).unwrap();
        DevicePools::new(&[slice])
    }

    /// What is left out of a device of which pods hold so much: memory in bytes, compute in units of the device.
    fn taken(node: &NodeInfo, capacity: &Value, memory: u64, cores: u32) -> Option<Vec<(String, i64)>> {
        let amounts = CardUsage { slots: 1, memory: MiB::new(memory), cores: Cores::new(cores) };
        let users = Users { amounts, unsliced: 1, ..Users::default() };
        let usage = Usage::from_iter([(CardId::from("GPU-a"), users)]);
        let inventory = inventory(capacity);
        let (_, device) = inventory.hardware_of("n1").next().unwrap();
        let held = shared(node, &usage, (&"GPU-a".into(), device), Claimed::default())?;
        Some(held.consumed.into_iter().map(|(name, amount)| (name, amount.units_rounded_up())).collect())
    }

    #[test]
    fn what_pods_hold_is_counted_in_the_capacities_of_the_device() {
        let amount = |value: &str| json!({"value": value});
        let plain = json!({"memory": amount("1000Mi"), "cores": amount("100")});
        let percent = node(CoreUnit::Percent, 100);
        let named = |memory: &str, cores: &str, of: [i64; 2]| {
            Some(vec![(cores.to_owned(), of[0]), (memory.to_owned(), of[1])])
        };
        assert_eq!(taken(&percent, &plain, 10, 30), named("memory", "cores", [30, 10 << 20]));
        let full_names =
            json!({"gpu.example.com/memory": amount("1000Mi"), "gpu.example.com/cores": amount("50")});
        let in_full = named("gpu.example.com/memory", "gpu.example.com/cores", [16, 10 << 20]);
        assert_eq!(taken(&percent, &full_names, 10, 31), in_full, "31 % of 50, rounded up");
        assert_eq!(
            taken(&node(CoreUnit::Units, 304), &plain, 10, 92),
            named("memory", "cores", [31, 10 << 20])
        );
        assert_eq!(
            taken(&percent, &plain, 10, 100),
            None,
            "a pod that holds all compute is alone on its card"
        );
        assert_eq!(taken(&percent, &plain, MiB::UNREAD.get(), 0), None);
        assert_eq!(
            taken(&percent, &json!({"cores": amount("100")}), 10, 0),
            None,
            "its memory is not divided"
        );
        assert_eq!(taken(&NodeInfo::default(), &plain, 10, 30), None, "what 30 is a part of is not known");
    }
}
