//! The cards of a node, as Volcano's vGPU plugin registers them.
//!
//! Each card is `uuid,count,memory,type,health,mode` ended by `:`; plugins up to v1.9 leave the mode out; further fields are ignored
//! (`pkg/scheduler/api/devices/nvidia/vgpu/utils.go` `decodeNodeDevices`). A card's number is its place in the list. Numbers
//! that can't be read make the node unreadable; upstream reads them as 0.

use super::{ModelGeometries, VolcanoSettings, names};
use crate::{
    device::{Card, Cores, Health, Inventory, MiB, Mode, Slicing},
    dialect::{Problem, Unreadable, go_bool, registered},
    excerpt::{VALUE, excerpt},
    object::Node,
};

/// The cards of a node; `None` where the plugin has registered none.
pub(super) fn read(node: &Node, settings: &VolcanoSettings) -> Result<Option<Inventory>, Unreadable> {
    let Some(text) = node.metadata.annotation(names::REGISTER) else {
        return Ok(None);
    };
    let refuse = |message| Unreadable::annotation(Problem::Registration, names::REGISTER, message);
    if !text.contains(':') {
        return Err(refuse("cards must each end with `:`".to_owned()));
    }
    let pieces = text.split(':').enumerate().filter(|(_, piece)| piece.contains(','));
    let cards =
        pieces.map(|(at, piece)| card(at, piece, settings.memory_factor)).collect::<Result<Vec<_>, _>>();
    let mut cards = cards.map_err(refuse)?;
    // Upstream takes the node's mode from its last card.
    let mode = cards.last().map_or(Mode::Soft, |last| last.mode);
    for card in &mut cards {
        card.mode = mode;
        if mode == Mode::Mig {
            card.slicing = ModelGeometries::slicing(&settings.geometries, &card.model);
        }
    }
    registered::inventory(cards).map(Some).map_err(refuse)
}

fn card(at: usize, piece: &str, memory_factor: u32) -> Result<Card, String> {
    let fields: Vec<&str> = piece.split(',').collect();
    let piece = excerpt(piece, VALUE);
    let [id, count, memory, model, health, ref rest @ ..] = fields[..] else {
        return Err(format!("card `{piece}` has {} fields, not 5 or more", fields.len()));
    };
    let number = |what: &str, field: &str| {
        field
            .parse::<u32>()
            .map_err(|_| format!("card `{piece}`: {what} `{}` is not a number", excerpt(field, VALUE)))
    };
    let healthy = go_bool(health).ok_or_else(|| {
        format!("card `{piece}`: health `{}` is neither true nor false", excerpt(health, VALUE))
    })?;
    let memory = u64::from(number("memory", memory)?) * u64::from(memory_factor.max(1));
    Ok(Card {
        id: id.into(),
        index: u32::try_from(at).map_err(|_| "too many cards".to_owned())?,
        slots: number("count", count)?,
        memory: MiB::new(memory),
        cores: Cores::WHOLE,
        model: model.into(),
        numa: 0,
        mode: if rest.first() == Some(&"mig") { Mode::Mig } else { Mode::Soft },
        slicing: Slicing::Unknown,
        health: if healthy { Health::Healthy } else { Health::Unhealthy },
    })
}
