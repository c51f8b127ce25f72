//! A namespace: its labels decide who comes in, its annotations carry hints for its pods.

use serde::Deserialize;

use super::metadata::Metadata;

/// A namespace.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct Namespace {
    /// Name, labels and annotations.
    pub metadata: Metadata,
}
