//! Volcano's vGPU side as Berth's: pods, cards, allocation by one profile.

use berth::{
    device::{
        Assignment, Card, CardPolicy, Cores, Health, InitPhase, Inventory, MiB, Mode, NodePolicy, PodRequest,
        Quota, Slicing, Usage,
    },
    dialect::{
        Dialect as _,
        volcano::{Volcano, VolcanoSettings},
    },
    object::Pod,
    scheduling::{DeviceReason, plugin::allocate::allocate},
};
use serde_json::{Value, json};

use super::upstream::{list, number, text, volcano_settings};

/// Volcano's dialect with this policy for nodes and cards.
pub(crate) fn dialect(policy: &str) -> Volcano {
    let (card_policy, node_policy) = policies(policy);
    Volcano::new(VolcanoSettings { card_policy, node_policy, ..volcano_settings() })
}

/// A policy for cards and for nodes; an unset one leaves nodes alike.
pub(crate) fn policies(policy: &str) -> (CardPolicy, NodePolicy) {
    match policy {
        "binpack" => (CardPolicy::Binpack, NodePolicy::Binpack),
        "spread" => (CardPolicy::Spread, NodePolicy::Spread),
        _ => (CardPolicy::Binpack, NodePolicy::Indifferent),
    }
}

/// A card of a table, whatever the case of its fields.
pub(crate) fn card(device: &Value) -> Card {
    let either = |upper, lower| number(device, upper).max(number(device, lower));
    let named = [text(device, "UUID"), text(device, "uuid")].concat();
    let id = if named.is_empty() { format!("GPU-{}", number(device, "index")) } else { named };
    let slots = either("Number", "number");
    Card {
        id: id.into(),
        index: either("Index", "index"),
        slots: if slots == 0 { 10 } else { slots },
        memory: MiB::new(either("Memory", "memory").into()),
        cores: Cores::WHOLE,
        model: "NVIDIA".into(),
        numa: 0,
        mode: Mode::Soft,
        slicing: Slicing::Unknown,
        health: Health::Healthy,
    }
}

/// So many cards like this one.
pub(crate) fn cards(like: &Value, count: u32) -> Inventory {
    let card = |index: u32| {
        let mut device = like.clone();
        device["index"] = json!(index);
        device["uuid"] = json!(format!("GPU-{index}"));
        card(&device)
    };
    Inventory::new((0..count).map(card).collect())
}

/// What the pod asks.
pub(crate) fn asked(dialect: &Volcano, pod: &Pod) -> PodRequest {
    dialect.request(pod, berth::dialect::MissingCount::Refuse).unwrap().expect("the pod asks for a card")
}

/// The cards that the pod is given beside these.
pub(crate) fn given(
    asked: &PodRequest,
    inventory: &Inventory,
    held: &[Assignment],
) -> Result<Assignment, Vec<DeviceReason>> {
    let usage = Usage::of(held.iter().map(|assignment| (assignment, InitPhase::Done)));
    allocate(asked, inventory, &usage, &Volcano::profile(), Quota::default())
}

/// One pod after the other, each beside those before it: the card of each, or nothing where it does not fit.
pub(crate) fn one_by_one(dialect: &Volcano, inventory: &Inventory, pods: &Value) -> Vec<Option<String>> {
    let mut held = Vec::new();
    let mut cards = Vec::new();
    for pod in list(pods) {
        let asked = asked(dialect, &super::upstream::pod(pod));
        let assignment = given(&asked, inventory, &held).ok();
        cards.push(assignment.iter().flat_map(Assignment::shares).map(|share| share.card.to_string()).next());
        held.extend(assignment);
    }
    cards
}
