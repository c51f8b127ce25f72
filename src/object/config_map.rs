//! A ConfigMap and its texts.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{metadata::Metadata, nullable};

/// `v1` ConfigMap.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct ConfigMap {
    /// Names.
    pub metadata: Metadata,
    /// Its texts, by key.
    #[serde(deserialize_with = "nullable")]
    pub data: BTreeMap<String, String>,
}
