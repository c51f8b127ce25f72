//! `device-allocated`: what a pod was given, as koordlet and Koordinator's own scheduler read it.
//!
//! Source: koordinator `apis/extension/device_share.go` (`DeviceAllocations`). An object from device type to a list of devices; quantities are strings.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    dimension::{amounts, quantity},
    hints, names,
};
use crate::{
    device::{DeviceAllocation, DeviceAllocations, DeviceType, Minor, SriovFunction},
    dialect::{Problem, Unreadable},
    object::{Metadata, Pod, container::ResourceMap},
};

/// A device, as it is written.
#[derive(Serialize)]
struct WrittenDevice<'a> {
    minor: Minor,
    resources: BTreeMap<&'a str, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extension: Option<WrittenExtension<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenExtension<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    vfs: Vec<WrittenFunction<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_shared_resource_template: Option<&'a str>,
}

#[derive(Serialize)]
struct WrittenFunction<'a> {
    minor: i32,
    #[serde(rename = "busID")]
    bus: &'a str,
}

/// A device, as it is read.
#[derive(Deserialize)]
struct Read {
    #[serde(default)]
    minor: Minor,
    #[serde(default)]
    resources: Option<ResourceMap>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    extension: Option<ReadExtension>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ReadExtension {
    vfs: Option<Vec<crate::object::device::VirtualFunction>>,
    gpu_shared_resource_template: Option<String>,
}

/// The annotation's value.
pub fn encode(allocations: &DeviceAllocations) -> String {
    let written: BTreeMap<_, Vec<_>> = allocations
        .iter()
        .map(|(kind, devices)| (kind.name(), devices.iter().map(written).collect()))
        .collect();
    serde_json::to_string(&written).expect("names and numbers are JSON")
}

fn written(device: &DeviceAllocation) -> WrittenDevice<'_> {
    let vfs: Vec<_> =
        device.functions.iter().map(|vf| WrittenFunction { minor: vf.minor, bus: &vf.bus }).collect();
    let template = device.template.as_deref();
    let extends = !vfs.is_empty() || template.is_some();
    let resources = device.amounts.iter().map(|(of, amount)| (of.name(), quantity(of, amount)));
    WrittenDevice {
        minor: device.minor,
        resources: resources.collect(),
        id: device.id.as_deref(),
        extension: extends.then_some(WrittenExtension { vfs, gpu_shared_resource_template: template }),
    }
}

/// What a pod was given; `None`: it carries no such annotation. Types that pods can't ask for are left out. Policies of exclusive use are
/// read from the pod's hints.
pub fn carried(pod: &Pod) -> Result<Option<DeviceAllocations>, Unreadable> {
    let Some(text) = pod.metadata.annotation(names::ALLOCATED) else { return Ok(None) };
    let mut allocations =
        decode(text).map_err(|reason| Unreadable::annotation(Problem::Card, names::ALLOCATED, reason))?;
    mark_exclusive(&mut allocations, &pod.metadata);
    Ok(Some(allocations))
}

/// Hints that can't be read say nothing: the devices are held all the same.
fn mark_exclusive(allocations: &mut DeviceAllocations, pod: &Metadata) {
    let Ok(hints) = hints::hints(pod) else { return };
    for (kind, devices) in allocations {
        let exclusive = hints.get(kind).and_then(|hint| hint.exclusive);
        for device in devices {
            device.exclusive = exclusive;
        }
    }
}

/// The allocations of the annotation's value; an error gives the reason.
pub fn decode(text: &str) -> Result<DeviceAllocations, String> {
    let read: Option<BTreeMap<String, Option<Vec<Read>>>> =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut allocations = DeviceAllocations::new();
    for (name, devices) in read.unwrap_or_default() {
        if let (Some(kind), Some(devices)) = (DeviceType::named(&name), devices) {
            let read: Result<_, _> = devices.into_iter().map(|device| allocation(kind, device)).collect();
            allocations.insert(kind, read?);
        }
    }
    Ok(allocations)
}

fn allocation(kind: DeviceType, read: Read) -> Result<DeviceAllocation, String> {
    let amounts = amounts(&read.resources.unwrap_or_default())
        .map_err(|(name, reason)| format!("{kind} {}: {name}: {reason}", read.minor))?;
    let extension = read.extension.unwrap_or_default();
    let functions = extension.vfs.unwrap_or_default().into_iter();
    Ok(DeviceAllocation {
        minor: read.minor,
        id: read.id.filter(|id| !id.is_empty()),
        amounts,
        functions: functions.map(|vf| SriovFunction { bus: vf.bus, minor: vf.minor }).collect(),
        template: extension.gpu_shared_resource_template.filter(|name| !name.is_empty()),
        exclusive: None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::device::Exclusive;

    #[test]
    fn what_is_written_reads_as_the_same() {
        let text = concat!(
            r#"{"gpu":[{"minor":1,"resources":{"koordinator.sh/gpu-core":"50","koordinator.sh/gpu-memory":"16Gi"},"id":"GPU-1","#,
            r#""extension":{"gpuSharedResourceTemplate":"vir01"}}],"#,
            r#""rdma":[{"minor":2,"resources":{"koordinator.sh/rdma":"1"},"extension":{"vfs":[{"minor":-1,"busID":"0000:1f:00.2"}]}}]}"#
        );
        assert_eq!(encode(&decode(text).unwrap()), text);
    }

    #[test]
    fn numbers_and_nulls_are_read_as_go_reads_them() {
        let read = decode(
            r#"{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":100},"id":""}],"rdma":null,"xpu":[{}]}"#,
        );
        let read = read.unwrap();
        assert_eq!(read.len(), 1);
        assert_eq!(read[&DeviceType::Gpu][0].id, None);
        assert_eq!(decode("null").unwrap(), DeviceAllocations::new());
        for broken in [
            "",
            "[]",
            r#"{"gpu":[{"minor":-1}]}"#,
            r#"{"gpu":[{"resources":{"koordinator.sh/gpu-core":"x"}}]}"#,
        ] {
            assert!(decode(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_pod_holds_its_devices_by_the_policy_of_its_hints() {
        let annotations = json!({
            names::ALLOCATED: r#"{"rdma":[{"minor":2,"resources":{"koordinator.sh/rdma":"1"}}]}"#,
            names::HINT: r#"{"rdma":{"exclusivePolicy":"PCIeLevel"}}"#,
        });
        let pod: Pod = serde_json::from_value(json!({"metadata": {"annotations": annotations}})).unwrap();
        let carried = carried(&pod).unwrap().unwrap();
        assert_eq!(carried[&DeviceType::Rdma][0].exclusive, Some(Exclusive::Pcie));
    }
}
