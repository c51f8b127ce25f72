//! A node's cards of one family: registered by its plugin, or reckoned from what the node has.

use super::{
    ascend,
    row::{Cards, Sizes, Splitting, VendorRow},
};
use crate::{
    device::{Card, Cores, Health, Inventory, MiB, Mode, Slicing},
    dialect::{Problem, Unreadable, hami::register, registered::MOST_CARDS},
    object::Node,
};

/// The cards; `None`: the family's plugin does not run there.
pub(super) fn read(row: &VendorRow, node: &Node) -> Result<Option<Inventory>, Unreadable> {
    match &row.cards {
        Cards::Registered { key, cores } => {
            let Some(inventory) = register::read(node, key)? else { return Ok(None) };
            let split = split(row, node);
            Ok(Some(inventory.map(|card| as_split(card, *cores, split))))
        }
        Cards::Capacity { cores_of_a_card, infix } => reckoned(row, node, *cores_of_a_card, infix),
    }
}

/// How the node splits cards of a family that has templates.
fn split(row: &VendorRow, node: &Node) -> Option<Splitting> {
    let Sizes::Templates(templates) = &row.memory.sizes else { return None };
    Some(match node.metadata.annotation(ascend::NODE_SPLITS_IN_SOFTWARE) {
        Some("true") => Splitting::Software,
        Some("false") => Splitting::Templates,
        _ => templates.unsaid,
    })
}

/// In software a card's compute is shared by percent, whatever its plugin registered.
fn as_split(card: Card, cores: Option<Cores>, split: Option<Splitting>) -> Card {
    let cores = cores.unwrap_or(card.cores);
    match split {
        None => Card { cores, ..card },
        Some(Splitting::Templates) => Card { cores, mode: Mode::Templates, ..card },
        Some(Splitting::Software) => Card { cores: Cores::WHOLE, mode: Mode::Soft, ..card },
    }
}

fn reckoned(
    row: &VendorRow,
    node: &Node,
    cores_of_a_card: u32,
    infix: &str,
) -> Result<Option<Inventory>, Unreadable> {
    let amount = |name: &Option<String>| {
        let Some((name, quantity)) = name.as_ref().and_then(|name| node.status.capacity.get_key_value(name))
        else {
            return Ok(0);
        };
        let whole = quantity.amount().ok().and_then(crate::object::Amount::whole).filter(|&whole| whole >= 0);
        whole.ok_or_else(|| {
            let field = format!("status.capacity[{name}]");
            Unreadable::new(
                Problem::Registration,
                field,
                format!("`{quantity}` is not a whole number from 0"),
            )
        })
    };
    let (cores, memory) = (amount(&row.resources.cores)?, amount(&row.resources.memory)?);
    if cores == 0 {
        return Ok(None);
    }
    let of_a_card = i128::from(cores_of_a_card);
    let count = cores.saturating_add(of_a_card - 1) / of_a_card;
    if count > MOST_CARDS.into() {
        let field = format!("status.capacity[{}]", row.resources.cores.as_deref().unwrap_or_default());
        let message = format!("`{cores}` would be {count} cards; a node has {MOST_CARDS} at most");
        return Err(Unreadable::new(Problem::Registration, field, message));
    }
    let memory = memory.saturating_mul(row.memory.unit.into()).saturating_mul(of_a_card) / cores;
    let card = |number: i128| Card {
        id: format!("{}{infix}{number}", node.metadata.name).into(),
        index: u32::try_from(number).unwrap_or(u32::MAX),
        slots: 100,
        memory: MiB::new(u64::try_from(memory).unwrap_or(u64::MAX)),
        cores: Cores::new(cores_of_a_card),
        model: row.word.as_str().into(),
        numa: 0,
        mode: Mode::Soft,
        slicing: Slicing::Unknown,
        health: Health::Healthy,
    };
    Ok(Some(Inventory::new((0..count).map(card).collect())))
}
