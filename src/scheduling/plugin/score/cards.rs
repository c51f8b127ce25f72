//! How well a node suits a pod for its cards, from 0 to 100; higher is better.

use crate::{
    device::{
        Allocation, Assignment, Blend, Card, CardUsage, Cores, InitPhase, Inventory, JointRequest, MiB,
        NodePolicy, Profile, ProfileRequest, Usage, Weights,
    },
    scheduling::{model::devices, plugin::allocate, world::node_state::NodeState},
};

/// How full a card is, by these weights: the weighted sum of what is in use of its slots, compute and memory, each from 0 to 1.
pub fn fullness(usage: CardUsage, card: &Card, budget: Cores, weights: Weights) -> f64 {
    let slots = part(usage.slots.into(), card.slots.into());
    let cores = part(usage.cores.get().into(), budget.get().into());
    let memory = part(usage.memory.get(), card.memory.get());
    f64::from(weights.slots) * slots + f64::from(weights.cores) * cores + f64::from(weights.memory) * memory
}

/// The mean of what the cards of each request make of the node, each from 0 to 100; 0 where the pod asks for no cards.
pub(in crate::scheduling::plugin) fn of_node(
    devices: &[ProfileRequest],
    node: &NodeState,
    allocations: &[Allocation],
) -> f64 {
    let score = |(device, allocation): (&ProfileRequest, &Allocation)| {
        let offer =
            node.info.devices.offer(&device.profile.name).and_then(|offer| offer.inventory.as_deref());
        let inventory = offer.expect("a node without an inventory does not pass the filter");
        if let Some(joint) = &device.joint {
            return of_typed(joint, inventory, &node.usage);
        }
        let policy = device.request.node_policy;
        of_request(&device.profile, policy, inventory, &node.usage, &allocation.assignment)
    };
    // An empty sum of floating point numbers is -0.
    let given = devices.iter().filter_map(|device| {
        let own = allocations.iter().find(|one| one.profile == device.profile.name);
        Some((device, own?))
    });
    let sum = given.map(score).fold(0.0, |sum, score| sum + score);
    sum / u32::try_from(devices.len()).map_or(f64::MAX, f64::from).max(1.0)
}

/// The mean of what the devices of each type make of the node, 0 to 100.
fn of_typed(joint: &JointRequest, inventory: &Inventory, usage: &Usage) -> f64 {
    let settings = devices::AllocationSettings::of(joint);
    let score = devices::score(inventory.devices(), usage.devices(), joint, &settings);
    let sum = score.ok().and_then(|score| u32::try_from(score).ok()).map_or(0.0, f64::from);
    sum / u32::try_from(joint.types.len()).map_or(f64::MAX, f64::from).max(1.0)
}

/// 0 to 100 by the node policy, over the node's cards or, where the dialect scores so, over the pod's.
pub fn of_request(
    profile: &Profile,
    policy: NodePolicy,
    inventory: &Inventory,
    usage: &Usage,
    assignment: &Assignment,
) -> f64 {
    let own = Usage::of([(assignment, InitPhase::Ahead)]);
    let after = |card: &Card| usage.card(&card.id).and(own.card(&card.id));
    let full = match profile.blend {
        Blend::Even => of_cards_of_node(profile, inventory, &after),
        Blend::MemoryThenSlots => of_cards_of_pod(policy, inventory, &own, &after),
    };
    match policy {
        NodePolicy::Binpack => 100.0 * full,
        NodePolicy::Spread => 100.0 * (1.0 - full),
        NodePolicy::Indifferent | NodePolicy::LeastWaste => 0.0,
    }
}

/// HAMi: the sums over all cards of the node (`pkg/scheduler/policy/node_policy.go`), the request included as its design page has it.
fn of_cards_of_node(profile: &Profile, inventory: &Inventory, after: &dyn Fn(&Card) -> CardUsage) -> f64 {
    let cards = inventory.cards();
    let used = cards.iter().map(after).fold(CardUsage::default(), CardUsage::and);
    let slots: u64 = cards.iter().map(|card| u64::from(card.slots)).sum();
    let cores: Cores = cards.iter().map(|card| allocate::core_budget(profile, card)).sum();
    let memory: MiB = cards.iter().map(|card| card.memory).sum();
    let parts = part(used.slots.into(), slots)
        + part(used.cores.get().into(), cores.get().into())
        + part(used.memory.get(), memory.get());
    parts / 3.0
}

/// Volcano: the mean over the pod's cards of memory in use when packing, of being shared when spreading
/// (`vgpu/utils.go` `GPUScore`), taken when the pod is on them; upstream's spread score is always 0.
fn of_cards_of_pod(
    policy: NodePolicy,
    inventory: &Inventory,
    own: &Usage,
    after: &dyn Fn(&Card) -> CardUsage,
) -> f64 {
    let cards: Vec<&Card> = inventory.cards().iter().filter(|card| own.card(&card.id).slots > 0).collect();
    let full = |card: &&Card| match policy {
        NodePolicy::Spread if after(card).slots > own.card(&card.id).slots => 1.0,
        NodePolicy::Spread => 0.0,
        NodePolicy::Binpack | NodePolicy::Indifferent | NodePolicy::LeastWaste => {
            part(after(card).memory.get(), card.memory.get())
        }
    };
    let count = u32::try_from(cards.len()).map_or(f64::MAX, f64::from);
    if cards.is_empty() { 0.0 } else { cards.iter().map(full).sum::<f64>() / count }
}

/// A part of a whole, from 0 to 1; 0 of nothing. More may be used than there is: slices round up what they take of a card's compute.
#[expect(clippy::cast_precision_loss, reason = "amounts of memory and slots are far below 2^52")]
fn part(used: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (used as f64 / whole as f64).min(1.0) }
}
