//! A pod's toleration of a taint.

use serde::Deserialize;

/// `spec.tolerations[]`.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
#[serde(default)]
pub struct Toleration {
    /// The taint's key; absent with `Exists`: every key.
    pub key: Option<String>,
    /// `Equal` (also when absent) or `Exists`.
    pub operator: Option<String>,
    /// The taint's value, for `Equal`.
    pub value: Option<String>,
    /// The effect; absent: every effect.
    pub effect: Option<String>,
}
