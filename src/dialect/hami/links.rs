//! How well a node's cards are linked, as HAMi's plugin scores each pair.
//!
//! Source: HAMi v2.10 `pkg/device/devices.go` (`DevicePairScore`): a JSON list of `{"uuid": id, "score": {other: points}}`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::names;
use crate::{
    device::Links,
    dialect::{Problem, Unreadable},
    object::Node,
};

#[derive(Deserialize)]
struct Entry {
    uuid: String,
    #[serde(default)]
    score: BTreeMap<String, i64>,
}

/// The links of the node's cards; none where the plugin has not scored them.
pub(super) fn read(node: &Node) -> Result<Links, Unreadable> {
    let Some(text) = node.metadata.annotation(names::LINKS) else {
        return Ok(Links::default());
    };
    let entries: Option<Vec<Entry>> = serde_json::from_str(text)
        .map_err(|error| Unreadable::annotation(Problem::Registration, names::LINKS, error.to_string()))?;
    let pairs = entries.into_iter().flatten().flat_map(|Entry { uuid, score }| {
        score.into_iter().map(move |(other, score)| (uuid.as_str().into(), other.into(), score))
    });
    Ok(pairs.collect())
}
