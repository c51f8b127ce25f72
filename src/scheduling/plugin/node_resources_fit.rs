//! Whether a node has room for what a pod requests of the resources that Kubernetes accounts, and for one more pod.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/noderesources/fit.go`.

use super::scene::Scene;
use crate::device::DeviceRequest;
use crate::scheduling::model::reason::{NodeReasons, Reason};

/// Fails with every resource of which too little is free. A resource of a dialect's own need not be advertised by the node, nor need one that
/// a claim serves there.
pub(super) fn test(scene: &Scene<'_>) -> Result<(), NodeReasons> {
    let (node, allocatable) = (scene.node, &scene.node.info.allocatable);
    let mut short = Vec::new();
    let pods = i64::try_from(node.pods.len()).unwrap_or(i64::MAX);
    if allocatable.names("pods") && pods >= allocatable.get("pods") {
        short.push(Reason::TooManyPods);
    }
    for (name, requested) in scene.ask.resources.iter().filter(|&(_, amount)| amount > 0) {
        let unadvertised = scene.device_resources.contains(name) && !allocatable.names(name);
        let capacity = allocatable.get(name);
        let free = capacity.saturating_sub(node.requested.get(name));
        let counts =
            |device: &&DeviceRequest| device.by_class.as_ref().is_some_and(|by| *by.resource == *name);
        let shares =
            || scene.ask.devices.iter().find(counts).is_some_and(|device| node.serves_by_claim(device));
        let by_claim = || node.class_of(name).is_some() || shares();
        if !unadvertised && requested > free && !by_claim() {
            short.push(Reason::Insufficient { resource: name.into(), requested, free, capacity });
        }
    }
    if short.is_empty() { Ok(()) } else { Err(short) }
}
