//! A node's devices, out of its Device, and what the Node's own labels say of them.
//!
//! What can't be read names the field and the reason, and leaves this one node without devices.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    dimension::{amounts, card},
    names, partitions, plugin,
};
use crate::{
    device::{
        DeviceLocation, DeviceTraits, DeviceType, Health, Minor, NodeDevice, NodeDevices, SriovFunction,
        VirtualFunctions,
    },
    dialect::{Problem, Unreadable},
    object::{Device, Metadata, device as wire},
};

/// The devices of the types that pods can ask for; other types are left out. They are complete together with the Node's [`traits`].
pub fn devices(device: &Device) -> Result<NodeDevices, Unreadable> {
    let mut devices: BTreeMap<DeviceType, BTreeMap<Minor, NodeDevice>> = BTreeMap::new();
    for (at, info) in device.spec.devices.iter().enumerate() {
        let path = format!("spec.devices[{at}]");
        let Some(kind) = DeviceType::named(&info.kind) else { continue };
        let minor = Minor::try_from(info.minor)
            .map_err(|_| unreadable(format!("{path}.minor"), format!("{} is negative", info.minor)))?;
        let of_type = devices.entry(kind).or_default();
        if of_type.insert(minor, one(info, &path)?).is_some() {
            return Err(unreadable(format!("{path}.minor"), format!("{kind} {minor} is there twice")));
        }
    }
    let said = traits(&device.metadata);
    let partitions = partitions::annotated(&device.metadata)?;
    // Without a table of its own, the label of a Device says nothing (koordinator `pkg/scheduler/plugins/deviceshare/allocator_gpu.go`).
    let partition_policy = partitions.as_ref().map(|_| said.partition_policy).unwrap_or_default();
    Ok(NodeDevices {
        devices,
        partitions,
        partition_policy,
        vendor: said.vendor,
        model: said.model,
        card: Some(card()),
        isolation: None,
        plugin: said.plugin,
        templates: Arc::default(),
    })
}

/// What the labels of a Node, or of its Device, say of all its devices.
pub fn traits(of: &Metadata) -> DeviceTraits {
    let label = |key| of.label(key).filter(|text| !text.is_empty());
    let (vendor, model) = (label(names::GPU_VENDOR), label(names::GPU_MODEL));
    DeviceTraits {
        vendor: vendor.map(str::to_owned),
        model: model.map(str::to_owned),
        isolation: of.label(names::ISOLATION).map(str::to_owned),
        partition_policy: partitions::policy(of),
        partitions: partitions::built_in(vendor, model),
        plugin: vendor.and_then(plugin::of_vendor),
    }
}

fn one(info: &wire::DeviceInfo, path: &str) -> Result<NodeDevice, Unreadable> {
    let total = amounts(&info.resources)
        .map_err(|(name, reason)| unreadable(format!("{path}.resources[{name}]"), reason))?;
    let functions: Result<_, _> =
        info.vf_groups.iter().enumerate().map(|(at, group)| functions(group, path, at)).collect();
    Ok(NodeDevice {
        id: info.id.clone(),
        health: if info.health { Health::Healthy } else { Health::Unhealthy },
        labels: info.labels.clone(),
        total,
        topology: info.topology.as_ref().map(topology),
        functions: functions?,
    })
}

fn topology(wire: &wire::DeviceTopology) -> DeviceLocation {
    let known = |number: i32| u32::try_from(number).ok();
    DeviceLocation {
        socket: known(wire.socket),
        numa: known(wire.numa),
        pcie: Arc::from(wire.pcie.as_str()),
        bus: wire.bus.clone(),
    }
}

fn functions(
    group: &wire::VirtualFunctionGroup,
    path: &str,
    at: usize,
) -> Result<VirtualFunctions, Unreadable> {
    let mut functions = Vec::new();
    for (number, function) in group.vfs.iter().enumerate() {
        if function.bus.is_empty() {
            let field = format!("{path}.vfGroups[{at}].vfs[{number}].busID");
            return Err(unreadable(
                field,
                "a virtual function without a PCI address can't be told from others",
            ));
        }
        functions.push(SriovFunction { bus: function.bus.clone(), minor: function.minor });
    }
    Ok(VirtualFunctions { labels: group.labels.clone(), functions })
}

fn unreadable(field: String, message: impl Into<String>) -> Unreadable {
    Unreadable::new(Problem::Registration, field, message)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::device::PartitionPolicy;

    fn read(device: Value, node: Value) -> Result<NodeDevices, Unreadable> {
        let device: Device = serde_json::from_value(device).unwrap();
        let node: Metadata = serde_json::from_value(node).unwrap();
        Ok(devices(&device)?.on(&traits(&node)))
    }

    fn gpu(minor: i64) -> Value {
        json!({"type": "gpu", "minor": minor, "health": true, "resources": {"koordinator.sh/gpu-core": "100"}})
    }

    #[test]
    fn what_is_malformed_is_named_by_field_and_reason() {
        let mut share = gpu(0);
        share["resources"] = json!({"koordinator.sh/gpu-core": "half"});
        let mut nic = gpu(0);
        nic["vfGroups"] = json!([{"vfs": [{"minor": 1}]}]);
        for (devices, expected) in [
            (json!([gpu(0), gpu(0)]), "spec.devices[1].minor: gpu 0 is there twice"),
            (json!([gpu(-1)]), "spec.devices[0].minor: -1 is negative"),
            (json!([share]), "spec.devices[0].resources[koordinator.sh/gpu-core]: `half` is not a quantity"),
            (
                json!([nic]),
                "spec.devices[0].vfGroups[0].vfs[0].busID: a virtual function without a PCI address can't be told from others",
            ),
        ] {
            let error = read(json!({"spec": {"devices": devices}}), json!({})).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
        let broken =
            json!({"metadata": {"annotations": {names::PARTITIONS: "{\"2\":[{\"minors\":[0,-1]}]}"}}});
        let error = read(broken, json!({})).unwrap_err().to_string();
        assert!(
            error.starts_with("metadata.annotations[scheduling.koordinator.sh/gpu-partitions]: "),
            "{error}"
        );
    }

    #[test]
    fn the_same_minor_of_two_types_is_two_devices_and_unknown_types_are_left_out() {
        let rdma = json!({"type": "rdma", "health": false, "topology": {"nodeID": -1, "pcieID": "a"}});
        let node = read(json!({"spec": {"devices": [gpu(0), rdma, {"type": "xpu"}]}}), json!({})).unwrap();
        assert_eq!(node.devices.len(), 2);
        let nic = node.device(DeviceType::Rdma, 0).unwrap();
        assert!(!nic.serves());
        assert_eq!(nic.topology.as_ref().unwrap().numa, None);
    }

    #[test]
    fn partitions_come_from_the_device_or_else_from_the_nodes_model_and_the_policy_comes_with_them() {
        let labels = |labels: Value| json!({"labels": labels});
        let hopper = labels(json!({names::GPU_MODEL: "H800", names::PARTITION_POLICY: "Honor"}));
        let node = read(json!({}), hopper.clone()).unwrap();
        assert_eq!(node.partitions.unwrap().of(4).unwrap().next().unwrap().len(), 2);
        assert_eq!(node.partition_policy, PartitionPolicy::Honor);
        let other = labels(json!({names::GPU_MODEL: "H800", names::GPU_VENDOR: "metax"}));
        assert_eq!(read(json!({}), other).unwrap().partitions, None);
        let table = r#"{"2":[{"minors":[0,1],"allocationScore":1},{"minors":[2,3],"allocationScore":9}]}"#;
        let device = json!({"metadata": {"annotations": {names::PARTITIONS: table}}});
        let best: Vec<_> =
            read(device, hopper).unwrap().partitions.unwrap().of(2).unwrap().map(|g| g[0].score).collect();
        assert_eq!(best, [9, 1]);
    }

    #[test]
    fn the_label_of_the_object_whose_table_counts_alone_decides_whether_partitions_bind() {
        use PartitionPolicy::{Honor, Prefer};
        let table = json!({names::PARTITIONS: r#"{"2":[{"minors":[0,1]}]}"#});
        let (honor, none) = (json!({names::PARTITION_POLICY: "Honor"}), json!({}));
        let hopper = json!({names::GPU_MODEL: "H20"});
        for (annotations, device, node, expected) in [
            (&table, &honor, &none, Honor),
            (&table, &none, &honor, Prefer),
            (&none, &honor, &none, Prefer),
            (&none, &honor, &hopper, Prefer),
            (&none, &none, &honor, Honor),
        ] {
            let device = json!({"metadata": {"annotations": annotations, "labels": device}});
            let read = read(device.clone(), json!({"labels": node})).unwrap();
            assert_eq!(read.partition_policy, expected, "{device} on a node with {node}");
        }
    }
}
