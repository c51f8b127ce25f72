//! The cards of a node, as HAMi's plugins of every vendor register them.
//!
//! v2.8 and later write JSON with zero values left out (`pkg/device/devices.go` `MarshalNodeDevices`): a card without `health` is
//! unhealthy, one without `index` is number 0. Up to v2.7 it is comma fields, each card ended by `:`; 7 fields in v2.4, 9 later.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::{cordon, links, mig::MigPlace, names};
use crate::{
    device::{Card, Cores, Health, Inventory, Links, MiB, Mode, SliceProfile, Slicing},
    dialect::{Problem, Unreadable, registered},
    excerpt::{VALUE, excerpt},
    object::Node,
};

/// Go takes keys in any case; older plugins write them as their structs have them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RegisteredCard {
    #[serde(alias = "ID")]
    id: String,
    #[serde(alias = "Index")]
    index: u32,
    #[serde(alias = "Count")]
    count: u32,
    #[serde(alias = "Devmem")]
    devmem: u32,
    #[serde(alias = "Devcore")]
    devcore: u32,
    #[serde(rename = "type", alias = "Type")]
    model: String,
    #[serde(alias = "Numa")]
    numa: i64,
    #[serde(alias = "Mode")]
    mode: String,
    #[serde(alias = "Health")]
    health: bool,
    #[serde(rename = "migProfiles")]
    profiles: Option<Vec<MigProfile>>,
    #[serde(rename = "custominfo", alias = "CustomInfo")]
    custom: Option<Custom>,
}

/// What a vendor adds to a card.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Custom {
    /// Cards of one network reach each other fast (`pkg/device/ascend/device.go` `computeBestCombination`).
    #[serde(rename = "NetworkID")]
    network: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MigProfile {
    name: String,
    #[serde(rename = "memoryMB")]
    memory: u32,
    core: u32,
    slice_count: u32,
    placements: Option<Vec<MigPlace>>,
}

/// NVIDIA's cards of a node and their links; `None` where no plugin of HAMi's has registered any.
pub(super) fn read_linked(node: &Node) -> Result<Option<Inventory>, Unreadable> {
    let Some(inventory) = read(node, names::REGISTER)? else { return Ok(None) };
    Ok(Some(inventory.with_links(links::read(node)?)))
}

/// The cards that are registered under this key, those of one network linked; `None` where there are none.
pub(in crate::dialect) fn read(node: &Node, key: &str) -> Result<Option<Inventory>, Unreadable> {
    let Some(text) = node.metadata.annotation(key) else {
        return Ok(None);
    };
    let refuse = |message| Unreadable::annotation(Problem::Registration, key, message);
    let entries = if is_json(text) {
        serde_json::from_str::<Option<Vec<RegisteredCard>>>(text)
            .map_err(|error| refuse(error.to_string()))?
            .unwrap_or_default()
    } else {
        comma_fields(text).map_err(refuse)?
    };
    let cordoned = cordon::cordoned(node);
    let links = networks(&entries);
    let cards = entries.into_iter().map(|entry| entry.card(&cordoned)).collect();
    let inventory = registered::inventory(cards).map_err(refuse)?;
    Ok(Some(inventory.with_links(links)))
}

/// No machine has more cards that reach each other; links are pairs, so a longer list would cost its square.
const MOST_LINKED: usize = 64;

/// Cards of one network are linked, if each card states its network.
fn networks(entries: &[RegisteredCard]) -> Links {
    if entries.len() > MOST_LINKED {
        return Links::default();
    }
    let network = |entry: &RegisteredCard| entry.custom.as_ref().and_then(|custom| custom.network);
    let Some(networks) = entries.iter().map(network).collect::<Option<Vec<_>>>() else {
        return Links::default();
    };
    let known = || entries.iter().zip(&networks);
    let pairs = known().flat_map(|one| known().map(move |other| (one, other)));
    let linked = pairs.filter(|((one, network), (other, its))| one.id != other.id && network == its);
    linked.map(|((one, _), (other, _))| (one.id.as_str().into(), other.id.as_str().into(), 1)).collect()
}

/// Whether a plugin from v2.8 on wrote this.
pub(super) fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('[') || text.trim() == "null"
}

impl RegisteredCard {
    fn card(self, cordoned: &BTreeSet<String>) -> Card {
        let health = match self.health {
            _ if cordoned.contains(&self.id) => Health::Cordoned,
            true => Health::Healthy,
            false => Health::Unhealthy,
        };
        Card {
            health,
            index: self.index,
            slots: self.count,
            memory: MiB::new(self.devmem.into()),
            cores: Cores::new(self.devcore),
            model: self.model.into(),
            numa: u32::try_from(self.numa).unwrap_or(0),
            mode: mode(&self.mode),
            slicing: slicing(self.profiles.unwrap_or_default()),
            id: self.id.into(),
        }
    }
}

fn slicing(profiles: Vec<MigProfile>) -> Slicing {
    if profiles.is_empty() {
        return Slicing::Unknown;
    }
    let profile = |profile: MigProfile| SliceProfile {
        name: profile.name.into(),
        memory: MiB::new(profile.memory.into()),
        cores: Cores::new(profile.core),
        slices: profile.slice_count,
        placements: profile.placements.into_iter().flatten().map(Into::into).collect(),
    };
    Slicing::Placements(profiles.into_iter().map(profile).collect())
}

fn mode(text: &str) -> Mode {
    match text {
        "mig" => Mode::Mig,
        "mps" => Mode::Mps,
        _ => Mode::Soft,
    }
}

fn comma_fields(text: &str) -> Result<Vec<RegisteredCard>, String> {
    if !text.contains(':') {
        return Err("neither a JSON list nor cards that each end with `:`".to_owned());
    }
    text.split(':').filter(|card| !card.trim().is_empty()).map(comma_card).collect()
}

fn comma_card(card: &str) -> Result<RegisteredCard, String> {
    let fields: Vec<&str> = card.split(',').collect();
    let card = excerpt(card, VALUE);
    let (index, mode) = match fields[..] {
        [_, _, _, _, _, _, _] => ("0", "hami-core"),
        [_, _, _, _, _, _, _, index, mode] => (index, mode),
        _ => return Err(format!("card `{card}` has {} fields, not 7 or 9", fields.len())),
    };
    let number = |what: &str, field: &str| {
        field
            .parse::<u32>()
            .map_err(|_| format!("card `{card}`: {what} `{}` is not a number", excerpt(field, VALUE)))
    };
    Ok(RegisteredCard {
        id: fields[0].to_owned(),
        count: number("count", fields[1])?,
        devmem: number("memory", fields[2])?,
        devcore: number("cores", fields[3])?,
        model: fields[4].to_owned(),
        numa: fields[5].parse().map_err(|_| {
            format!("card `{card}`: NUMA node `{}` is not a number", excerpt(fields[5], VALUE))
        })?,
        health: crate::dialect::go_bool(fields[6]).ok_or_else(|| {
            format!("card `{card}`: health `{}` is neither true nor false", excerpt(fields[6], VALUE))
        })?,
        index: number("index", index)?,
        mode: mode.to_owned(),
        profiles: None,
        custom: None,
    })
}
