//! A pod's toleration of a taint.

use compact_str::CompactString;
use serde::Deserialize;

/// `spec.tolerations[]`.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
#[serde(default)]
pub struct Toleration {
    /// The taint's key; absent with `Exists`: every key.
    pub key: Option<CompactString>,
    /// `Equal` (also when absent) or `Exists`.
    pub operator: Option<CompactString>,
    /// The taint's value, for `Equal`.
    pub value: Option<CompactString>,
    /// The effect; absent: every effect.
    pub effect: Option<CompactString>,
}
