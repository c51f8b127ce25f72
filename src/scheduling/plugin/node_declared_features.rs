//! Whether a node's kubelet has the features that a pod needs (KEP-5328).
//!
//! Source: v1.36 `k8s.io/component-helpers/nodedeclaredfeatures/features`; only these two decide where a pod may go.

use super::scene::Scene;
use crate::scheduling::model::{
    feature::Feature,
    reason::{NodeReasons, Reason},
};

/// Fails on a node that does not declare one of the features.
pub(super) fn test(scene: &Scene<'_>) -> Result<(), NodeReasons> {
    let declared = &scene.node.info.features;
    let has = |feature: &Feature| declared.contains(feature.name());
    if scene.ask.constraints.features.iter().all(has) { Ok(()) } else { Err(vec![Reason::FeatureMissing]) }
}
