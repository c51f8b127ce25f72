//! Whether a node's kubelet has the features that a pod needs (KEP-5328).
//!
//! Source: v1.36 `k8s.io/component-helpers/nodedeclaredfeatures/features`; only these two decide where a pod may go.

use std::borrow::Cow;

use smallvec::smallvec;

use super::{
    contract::{Cure, Filter, Reasons, Rejection, SchedulingPlugin},
    scene::Scene,
};
use crate::scheduling::{
    model::{feature::Feature, pod::Ask},
    world::node_parts::NodePart,
};

/// Rejects a node that does not declare one of the features.
#[derive(Debug)]
pub struct NodeDeclaredFeatures;

impl SchedulingPlugin for NodeDeclaredFeatures {
    const NAME: &'static str = "NodeDeclaredFeatures";

    type Reason = FeatureMissing;

    fn reads(_ask: &Ask) -> Option<&'static [NodePart]> {
        Some(&[NodePart::Rest])
    }
}

impl Filter for NodeDeclaredFeatures {
    fn test(scene: &Scene<'_>) -> Result<(), Reasons<FeatureMissing>> {
        let declared = &scene.node.info.features;
        let has = |feature: &Feature| declared.contains(feature.name());
        if scene.ask.constraints.features.iter().all(has) { Ok(()) } else { Err(smallvec![FeatureMissing]) }
    }
}

/// The node's kubelet lacks a feature that the pod needs.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, thiserror::Error)]
#[error("node(s) didn't match Pod's required features")]
pub struct FeatureMissing;

impl Rejection for FeatureMissing {
    fn name(&self) -> Cow<'static, str> {
        NodeDeclaredFeatures::NAME.into()
    }

    fn cure(&self) -> Cure {
        Cure::Nothing
    }
}
