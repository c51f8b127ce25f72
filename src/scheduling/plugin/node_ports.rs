//! Whether the node's ports that a pod listens on are free.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/nodeports/node_ports.go`.

use std::borrow::Cow;

use smallvec::smallvec;

use super::{
    contract::{Filter, Reasons, Rejection, SchedulingPlugin},
    scene::Scene,
};
use crate::scheduling::{model::pod::Ask, world::node_parts::NodePart};

/// Rejects a node where another pod has one of the ports.
#[derive(Debug)]
pub struct NodePorts;

impl SchedulingPlugin for NodePorts {
    const NAME: &'static str = "NodePorts";

    type Reason = PortTaken;

    fn reads(_ask: &Ask) -> Option<&'static [NodePart]> {
        Some(&[NodePart::Rest])
    }
}

impl Filter for NodePorts {
    fn test(scene: &Scene<'_>) -> Result<(), Reasons<PortTaken>> {
        let wanted = &scene.ask.constraints.exclusive.ports;
        if wanted.is_empty() {
            return Ok(());
        }
        let mut taken = scene.node.pods.iter().flat_map(|pod| &pod.exclusive.ports);
        if taken.any(|taken| wanted.iter().any(|wanted| wanted.conflicts(taken))) {
            return Err(smallvec![PortTaken]);
        }
        Ok(())
    }
}

/// Another pod on the node has a port that the pod needs.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, thiserror::Error)]
#[error("node(s) didn't have free ports for the requested pod ports")]
pub struct PortTaken;

impl Rejection for PortTaken {
    fn name(&self) -> Cow<'static, str> {
        NodePorts::NAME.into()
    }
}
