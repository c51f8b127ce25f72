//! A vendor's cards, in the words of upstream's tables: as they are registered, in use and chosen.
//!
//! Judges no case.

use berth::{
    device::{Card, CardUsage, Health, Inventory},
    dialect::{
        Dialect as _,
        vendor::{Vendor, row::Cards},
    },
};
use serde_json::{Value, json};

use crate::{
    call::Outcome,
    upstream::{card, list, node, number, share, text, usage},
};

/// The cards as the plugin would have registered them, read back; those of a node that has no registration, as they are.
pub(crate) fn inventory(vendor: &Vendor, devices: &[&Value], annotations: &Value) -> Inventory {
    let Cards::Registered { key, .. } = &vendor.row().cards else {
        return Inventory::new(devices.iter().map(|device| card(device)).collect());
    };
    let entries: Vec<_> = devices.iter().map(|device| entry(device)).collect();
    let written = if key.contains("-dcu-") || key.ends_with("V100-register") {
        entries.iter().map(fields).collect::<String>()
    } else {
        json!(entries).to_string()
    };
    let mut on_node = annotations.as_object().cloned().unwrap_or_default();
    on_node.insert(key.to_owned(), json!(written));
    vendor.inventory(&node(&Value::Object(on_node))).unwrap().unwrap()
}

fn entry(device: &Value) -> Value {
    json!({
        "id": device["ID"], "index": number(device, "Index"), "count": number(device, "Count"),
        "devmem": number(device, "Totalmem"), "devcore": number(device, "Totalcore"), "type": text(device, "Type"),
        "numa": number(device, "Numa"), "health": device["Health"] == json!(true), "custominfo": device["CustomInfo"],
    })
}

fn fields(entry: &Value) -> String {
    let number = |key: &str| number(entry, key);
    format!(
        "{},{},{},{},{},{},{}:",
        text(entry, "id"),
        number("count"),
        number("devmem"),
        number("devcore"),
        text(entry, "type"),
        number("numa"),
        entry["health"]
    )
}

/// The cards of an outcome; upstream's tables say nothing of amounts.
pub(crate) fn chosen(outcome: Outcome) -> Result<Vec<String>, String> {
    outcome.map(|shares| shares.into_iter().map(|(card, _, _)| card).collect())
}

pub(crate) fn fits(expect: &Value) -> Result<Vec<String>, String> {
    if [&expect["wantFit"], &expect["wantOK"]].into_iter().any(|fits| *fits == json!(true)) {
        return Ok(list(&expect["wantDevIDs"]).iter().map(|id| id.as_str().unwrap().to_owned()).collect());
    }
    Err(text(expect, "wantReason").to_owned())
}

pub(crate) fn plain(card: &Card) -> (String, u32, u64, u32, bool) {
    (card.id.to_string(), card.slots, card.memory.get(), card.cores.get(), card.health == Health::Healthy)
}

pub(crate) fn described(device: &Value) -> (String, u32, u64, u32, bool) {
    plain(&card(device))
}

pub(crate) fn used(input: &Value) -> CardUsage {
    usage_of(&input["deviceUsage"]).with(&share(&input["ctr"]))
}

pub(crate) fn usage_of(device: &Value) -> CardUsage {
    usage(std::slice::from_ref(device)).card(&text(device, "ID").into())
}
