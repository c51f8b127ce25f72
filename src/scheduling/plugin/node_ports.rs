//! Whether the node's ports that a pod listens on are free.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/nodeports/node_ports.go`.

use super::scene::Scene;
use crate::scheduling::model::reason::{NodeReasons, Reason};

/// Fails on a node where another pod has one of the ports.
pub(super) fn test(scene: &Scene<'_>) -> Result<(), NodeReasons> {
    let wanted = &scene.ask.constraints.exclusive.ports;
    if wanted.is_empty() {
        return Ok(());
    }
    let mut taken = scene.node.pods.iter().flat_map(|pod| &pod.exclusive.ports);
    if taken.any(|taken| wanted.iter().any(|wanted| wanted.conflicts(taken))) {
        return Err(vec![Reason::HostPortTaken]);
    }
    Ok(())
}
