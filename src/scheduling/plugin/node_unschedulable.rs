//! Whether a node is cordoned.

use std::borrow::Cow;

use smallvec::smallvec;

use super::{
    contract::{Cure, Filter, Reasons, Rejection, SchedulingPlugin},
    scene::Scene,
    taint_toleration::tolerates,
};
use crate::{
    object::Taint,
    scheduling::{model::pod::Ask, world::node_parts::NodePart},
};

/// The taint that stands for a cordon: a pod that tolerates it may be placed on a cordoned node.
const CORDON: &str = "node.kubernetes.io/unschedulable";

/// Rejects a cordoned node, unless the pod tolerates the cordon.
#[derive(Debug)]
pub struct NodeUnschedulable;

impl SchedulingPlugin for NodeUnschedulable {
    const NAME: &'static str = "NodeUnschedulable";

    type Reason = Cordoned;

    fn reads(_ask: &Ask) -> Option<&'static [NodePart]> {
        Some(&[NodePart::Rest])
    }
}

impl Filter for NodeUnschedulable {
    fn test(scene: &Scene<'_>) -> Result<(), Reasons<Cordoned>> {
        let taint =
            || Taint { key: CORDON.to_owned(), effect: "NoSchedule".to_owned(), value: String::new() };
        let cordoned = scene.node.info.cordoned;
        if cordoned && !tolerates(&scene.ask.constraints.tolerations, &taint()) {
            return Err(smallvec![Cordoned]);
        }
        Ok(())
    }
}

/// The node is cordoned.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, thiserror::Error)]
#[error("node(s) were unschedulable")]
pub struct Cordoned;

impl Rejection for Cordoned {
    fn name(&self) -> Cow<'static, str> {
        NodeUnschedulable::NAME.into()
    }

    fn cure(&self) -> Cure {
        Cure::Time
    }
}
