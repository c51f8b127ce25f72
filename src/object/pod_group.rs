//! A group of pods, as Volcano has it: of it only marks are read.

use serde::Deserialize;

use super::metadata::Metadata;

/// A group of pods.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct PodGroup {
    /// Name, namespace, labels and annotations.
    pub metadata: Metadata,
}
