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
struct LinkEntry {
    uuid: String,
    /// Go writes an empty map as `null`.
    #[serde(default)]
    score: Option<BTreeMap<String, i64>>,
}

/// The links of the node's cards; none where the plugin has not scored them.
pub(super) fn read(node: &Node) -> Result<Links, Unreadable> {
    let Some(text) = node.metadata.annotation(names::LINKS) else {
        return Ok(Links::default());
    };
    let entries: Option<Vec<LinkEntry>> = serde_json::from_str(text)
        .map_err(|error| Unreadable::annotation(Problem::Registration, names::LINKS, error.to_string()))?;
    let pairs = entries.into_iter().flatten().flat_map(|LinkEntry { uuid, score }| {
        score.into_iter().flatten().map(move |(other, score)| (uuid.as_str().into(), other.into(), score))
    });
    Ok(pairs.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(text: &str) -> Result<Links, Unreadable> {
        let annotations = serde_json::json!({names::LINKS: text});
        read(&serde_json::from_value(serde_json::json!({"metadata": {"annotations": annotations}})).unwrap())
    }

    #[test]
    fn pairs_read_as_they_are_scored() {
        let read =
            links(r#"[{"uuid":"GPU-a","score":{"GPU-b":200}},{"uuid":"GPU-b","score":null}]"#).unwrap();
        assert_eq!(read.between(&"GPU-a".into(), &"GPU-b".into()), 200);
        assert_eq!(read.between(&"GPU-b".into(), &"GPU-a".into()), 0);
        assert_eq!(links("null").unwrap(), Links::default());
        assert!(links("[{}]").is_err());
    }
}
