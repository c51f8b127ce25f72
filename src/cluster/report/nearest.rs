//! The node that comes closest to having a pod that fits nowhere, and what it lacks.

use serde::{Deserialize, Serialize};

use crate::scheduling::decide::nearest::{Lack, Nearest};

/// The node that comes closest.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct NearestRow {
    /// The node.
    pub node: String,
    /// What it lacks.
    pub lacks: Vec<LackRow>,
}

/// One thing that a node lacks.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct LackRow {
    /// The reason's name, as among a node's `reasons`.
    pub reason: String,
    /// The card that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub card: Option<String>,
    /// How much is missing: MiB, percent of compute, slots or cards; of another resource in its own unit, cpu in thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<u64>,
}

impl NearestRow {
    /// Of this node.
    pub fn of(nearest: &Nearest) -> Self {
        let lack = |lack: &Lack| LackRow {
            reason: lack.reason(),
            card: lack.card().map(ToString::to_string),
            by: lack.by(),
        };
        Self { node: nearest.node.to_string(), lacks: nearest.lacks.iter().map(lack).collect() }
    }
}
