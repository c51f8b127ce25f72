//! Claims of volumes that are bound with a pod of a simulation, as they are printed.

use serde::{Deserialize, Serialize};

use crate::scheduling::effect::PrebindWrite;

/// A claim that is bound with the pod: to a volume, or to one that is made on the pod's node.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeRow {
    claim: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    volume: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provision_on: Option<String>,
}

impl VolumeRow {
    /// What is written for a claim of a volume; `None`: the write is another.
    pub(super) fn of(write: &PrebindWrite) -> Option<Self> {
        match write {
            PrebindWrite::BindVolume { volume, claim: Some(claim) } => Some(Self {
                claim: claim.metadata.name.clone(),
                volume: Some(volume.metadata.name.clone()),
                provision_on: None,
            }),
            PrebindWrite::SelectNode { claim, node: Some(node) } => Some(Self {
                claim: claim.metadata.name.clone(),
                volume: None,
                provision_on: Some(node.to_string()),
            }),
            _ => None,
        }
    }
}
