//! What the nodes make of a pod that waits, as JSON.

use serde::{Deserialize, Serialize};

use crate::{
    cluster::report::nearest::NearestRow,
    scheduling::{
        FitError,
        decide::explanation::{AlikeNodes, DemandExplanation},
    },
};

/// What the nodes make of a pod; a key that does not apply is absent.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct ExplanationRow {
    /// Why it fits on no node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// On how many nodes it would fit now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fitting: Option<usize>,
    /// The others, by what they lack.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeGroup>,
    /// The node that comes closest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<NearestRow>,
}

/// A place among the pods that wait, from 1.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Deserialize, Serialize)]
pub struct QueuePlace {
    /// The place.
    pub position: usize,
    /// How many wait.
    pub of: usize,
}

/// Nodes that lack the same.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct NodeGroup {
    /// What they lack.
    pub reasons: Vec<LackingReason>,
    /// How many these are.
    pub count: usize,
    /// By name.
    pub names: Vec<String>,
}

/// What nodes lack.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct LackingReason {
    /// As `berth simulate` has it.
    pub reason: String,
    /// How much is missing on the node that lacks least: MiB, percent of compute, slots or cards; of another resource in its own unit, cpu in
    /// thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<u64>,
}

impl From<DemandExplanation> for ExplanationRow {
    fn from(explanation: DemandExplanation) -> Self {
        let DemandExplanation { fitting, groups, error } = explanation;
        // A pod that is refused for itself was compared with no node.
        let is_judged = error.is_none() || !groups.is_empty();
        Self {
            message: error.as_ref().map(ToString::to_string),
            fitting: is_judged.then_some(fitting),
            nodes: groups.into_iter().map(NodeGroup::from).collect(),
            nearest: error.as_ref().and_then(FitError::nearest).map(NearestRow::of),
        }
    }
}

impl From<AlikeNodes> for NodeGroup {
    fn from(alike: AlikeNodes) -> Self {
        let reasons = alike.lacks.into_iter().map(|(reason, by)| LackingReason { reason, by });
        Self {
            reasons: reasons.collect(),
            count: alike.names.len(),
            names: alike.names.iter().map(ToString::to_string).collect(),
        }
    }
}
