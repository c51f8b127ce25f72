//! The cards of a node of which only their number and their memory together are known.
//!
//! Source: Volcano `gpushare/device_info.go` (`NewGPUDevices`): both resources must be in `status.capacity`; all cards are taken to
//! be of one size. Where the plugin counts whole cards it states no memory, and none is needed.

use std::collections::BTreeSet;

use super::{GpuShareSettings, ShareUnit};
use crate::{
    device::{Card, Cores, Health, Inventory, MiB, Mode, Slicing},
    dialect::{Problem, Unreadable, hints::elements, registered::MOST_CARDS, volcano::names},
    object::{Amount, Node},
};

/// The cards; `None` where the plugin does not run.
pub(super) fn read(settings: &GpuShareSettings, node: &Node) -> Result<Option<Inventory>, Unreadable> {
    let Some(count) = capacity(node, names::GPU_NUMBER)? else { return Ok(None) };
    let memory = match (settings.unit, capacity(node, names::GPU_MEMORY)?) {
        (_, Some(memory)) => memory,
        (ShareUnit::Memory, None) => return Ok(None),
        (ShareUnit::Cards, None) => 0,
    };
    if count == 0 {
        return Ok(None);
    }
    if count > MOST_CARDS.into() {
        let message = format!("`{count}` cards are more than the {MOST_CARDS} that a node may have");
        let field = format!("status.capacity[{}]", names::GPU_NUMBER);
        return Err(Unreadable::new(Problem::Registration, field, message));
    }
    let each = MiB::new(u64::from(memory) * u64::from(settings.memory_factor.max(1)) / u64::from(count));
    let unhealthy: BTreeSet<_> =
        elements(node.metadata.annotation(names::GPU_UNHEALTHY)).into_iter().collect();
    let card = |index: u32| Card {
        id: index.to_string().into(),
        index,
        slots: match settings.unit {
            ShareUnit::Memory => memory.max(1),
            ShareUnit::Cards => 1,
        },
        memory: each,
        cores: Cores::WHOLE,
        model: "".into(),
        numa: 0,
        mode: Mode::Soft,
        slicing: Slicing::Unknown,
        health: if unhealthy.contains(&index.to_string()) { Health::Unhealthy } else { Health::Healthy },
    };
    Ok(Some(Inventory::new((0..count).map(card).collect())))
}

fn capacity(node: &Node, name: &str) -> Result<Option<u32>, Unreadable> {
    let Some(quantity) = node.status.capacity.get(name) else { return Ok(None) };
    let whole = quantity.amount().ok().and_then(Amount::whole).and_then(|whole| u32::try_from(whole).ok());
    let refuse = || {
        let message = format!("`{quantity}` is not a whole number");
        Unreadable::new(Problem::Registration, format!("status.capacity[{name}]"), message)
    };
    whole.map(Some).ok_or_else(refuse)
}
