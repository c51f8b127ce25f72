//! Node selector and node affinity, as `k8s.io/component-helpers/scheduling/corev1/nodeaffinity` matches them.

use super::scene::Scene;
use crate::scheduling::model::reason::{NodeReasons, Reason};

/// Fails on a node that the pod's node selector or required node affinity does not match.
pub(super) fn test(scene: &Scene<'_>) -> Result<(), NodeReasons> {
    let info = &scene.node.info;
    let matched = scene.ask.constraints.affinity.admits(&info.name, &info.labels);
    if matched { Ok(()) } else { Err(vec![Reason::AffinityMismatch]) }
}
