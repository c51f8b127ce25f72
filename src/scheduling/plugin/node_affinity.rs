//! Node selector and node affinity, as `k8s.io/component-helpers/scheduling/corev1/nodeaffinity` matches them.

use std::borrow::Cow;

use smallvec::smallvec;

use super::{
    contract::{Cure, Filter, Normalisation, Placement, Reasons, Rejection, SchedulingPlugin, Score},
    scene::Scene,
    score::range::float,
};
use crate::scheduling::{
    model::{node_affinity::NodeAffinityTerms, pod::Ask},
    world::{node_parts::NodePart, nodes::Nodes},
};

/// Rejects a node that the pod's node selector or required node affinity does not match, and prefers nodes by the weights of the preferred terms
/// that match.
#[derive(Debug)]
pub struct NodeAffinity;

impl SchedulingPlugin for NodeAffinity {
    const NAME: &'static str = "NodeAffinity";
    const WEIGHT: Option<u32> = Some(2);

    type Reason = AffinityMismatch;

    fn reads(ask: &Ask) -> Option<&'static [NodePart]> {
        match &ask.constraints.affinity {
            affinity if *affinity == NodeAffinityTerms::default() => Some(&[]),
            affinity if affinity.tells_nodes_apart() => None,
            _ => Some(&[NodePart::Labels]),
        }
    }
}

impl Filter for NodeAffinity {
    fn test(scene: &Scene<'_>) -> Result<(), Reasons<AffinityMismatch>> {
        let info = &scene.node.info;
        let matched = scene.ask.constraints.affinity.admits(&info.name, &info.labels);
        if matched { Ok(()) } else { Err(smallvec![AffinityMismatch]) }
    }
}

impl Score for NodeAffinity {
    const NORMALISATION: Normalisation = Normalisation::OfHighest;

    fn score(placement: &Placement<'_>) -> Option<f64> {
        let (affinity, info) = (&placement.ask.constraints.affinity, &placement.node.info);
        let prefers = !affinity.preferred.is_empty();
        prefers.then(|| float(affinity.preference(&info.name, &info.labels)))
    }

    fn is_even(ask: &Ask, _nodes: &Nodes) -> bool {
        ask.constraints.affinity.preferred.is_empty()
    }
}

/// The pod's node selector or node affinity does not match the node.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, thiserror::Error)]
#[error("node(s) didn't match Pod's node affinity/selector")]
pub struct AffinityMismatch;

impl Rejection for AffinityMismatch {
    fn name(&self) -> Cow<'static, str> {
        NodeAffinity::NAME.into()
    }

    fn cure(&self) -> Cure {
        Cure::Nothing
    }
}
