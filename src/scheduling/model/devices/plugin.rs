//! Whether the device plugin of the node's GPUs serves the pod, where it serves one pod at a time.

use super::Shortfall;
use crate::device::{DeviceCount, DeviceType, JointRequest, NodeDevices, TypedRequest};

/// Fails where the plugin would not be asked for the pod, or could not give what is asked. Devices of other types are no business of it.
pub(super) fn test(node: &NodeDevices, request: &JointRequest) -> Result<(), Shortfall> {
    let Some(gpus) = request.types.get(&DeviceType::Gpu) else { return Ok(()) };
    let vendor = node.plugin.as_ref().map(|plugin| plugin.vendor);
    if vendor != request.plugin {
        return Err(Shortfall::PluginNotAsked);
    }
    let Some(plugin) = &node.plugin else { return Ok(()) };
    let count = match gpus.count {
        DeviceCount::Exactly(count) => count,
        DeviceCount::All => u32::try_from(node.of(DeviceType::Gpu).count()).unwrap_or(u32::MAX),
    };
    if plugin.most.is_some_and(|most| count > most) {
        return Err(Shortfall::PluginCards);
    }
    if is_less(node, gpus) { Err(Shortfall::PluginShare) } else { Ok(()) }
}

/// Whether less would be given of a GPU than the plugin needs.
fn is_less(node: &NodeDevices, gpus: &TypedRequest) -> bool {
    let Some(plugin) = &node.plugin else { return false };
    node.of(DeviceType::Gpu).any(|(_, device)| {
        let mut given = gpus.each.clone();
        if let Some(proportion) = gpus.proportion() {
            proportion.complete(&mut given, &device.total);
        }
        plugin.least.iter().any(|(dimension, least)| given.get(dimension).unwrap_or(0) < least)
    })
}
