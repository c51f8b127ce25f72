//! Settings of NCCL for a pod, out of the GPUs and NICs that it was given: a file for the downward API.
//!
//! Names and values: NCCL's user guide, "Environment Variables" (`NCCL_IB_HCA`, `NCCL_NET_GDR_LEVEL`, `/etc/nccl.conf`). A file, since a variable
//! whose annotation is missing would be empty, and NCCL reads an empty level as one.

use super::{hints, names};
use crate::{
    device::{DeviceAllocation, DeviceAllocations, DeviceLocation, DeviceType, NodeDevices},
    dialect::Unreadable,
    object::Metadata,
};

/// How far a GPU is from a NIC.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Distance {
    /// Below one PCIe switch, or several.
    Switches,
    /// On one NUMA node, by way of the processor.
    NumaNode,
    /// On two NUMA nodes.
    System,
}

/// Whether the pod asks for settings of NCCL; an error: the annotation is neither true nor false.
pub fn is_asked(pod: &Metadata) -> Result<bool, Unreadable> {
    hints::flag(pod, names::NCCL)
}

/// The settings, in the form of `/etc/nccl.conf`; `None`: the pod has no NIC, or nothing of its devices decides a setting.
pub fn settings(given: &DeviceAllocations, node: &NodeDevices) -> Option<String> {
    let of = |kind| given.get(&kind).map(Vec::as_slice).unwrap_or_default();
    let (gpus, nics) = (of(DeviceType::Gpu), of(DeviceType::Rdma));
    let adapters = adapters(nics).map(|names| format!("NCCL_IB_HCA=={}\n", names.join(",")));
    let level = level(gpus, nics, node).map(|level| format!("NCCL_NET_GDR_LEVEL={level}\n"));
    let text: String = adapters.into_iter().chain(level).collect();
    Some(text).filter(|text| !text.is_empty())
}

/// The names of the NICs in the kernel. koordlet lists NICs called `mlx5_<number>` alone, and their number is the device's (koordinator a7a1b76
/// `pkg/koordlet/util/system/rdma.go`). The name of a virtual function is known to the node alone.
fn adapters(nics: &[DeviceAllocation]) -> Option<Vec<String>> {
    let named = !nics.is_empty() && nics.iter().all(|nic| nic.functions.is_empty());
    named.then(|| nics.iter().map(|nic| format!("mlx5_{}", nic.minor)).collect())
}

/// Up to which distance GPUs and NICs exchange data directly, so that each GPU does with the nearest NIC. `None`: a place is not known, or the nearest is on
/// another NUMA node, where the copy by way of memory may be faster; NCCL then decides.
fn level(gpus: &[DeviceAllocation], nics: &[DeviceAllocation], node: &NodeDevices) -> Option<&'static str> {
    let place = |kind, device: &DeviceAllocation| node.device(kind, device.minor)?.topology.as_ref();
    let nics: Option<Vec<_>> = nics.iter().map(|nic| place(DeviceType::Rdma, nic)).collect();
    let gpus: Option<Vec<_>> = gpus.iter().map(|gpu| place(DeviceType::Gpu, gpu)).collect();
    let (nics, gpus) = (nics?, gpus?);
    let nearest = |gpu: &&DeviceLocation| nics.iter().map(|nic| distance(gpu, nic)).min();
    let nearest: Option<Vec<_>> = gpus.iter().map(nearest).collect();
    match nearest?.into_iter().max()? {
        Distance::Switches => Some("PXB"),
        Distance::NumaNode => Some("PHB"),
        Distance::System => None,
    }
}

/// koordlet names the root complex (`pci0000:3a`) in place of a switch; the way between two of its ports leads by the processor.
fn distance(gpu: &DeviceLocation, nic: &DeviceLocation) -> Distance {
    let together = !gpu.pcie.is_empty() && gpu.pcie == nic.pcie;
    let same_node = gpu.numa.is_some() && gpu.numa == nic.numa;
    match (together, gpu.pcie.starts_with("pci")) {
        (true, false) => Distance::Switches,
        (true, true) => Distance::NumaNode,
        (false, _) if same_node => Distance::NumaNode,
        (false, _) => Distance::System,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{super::record, *};
    use crate::dialect::koordinator::node;

    /// A node with a GPU and a NIC at each of these places: PCIe switch or root complex, and NUMA node.
    fn machine(places: &[(&str, i32)]) -> NodeDevices {
        let device = |kind: &str, minor: usize, (pcie, numa): (&str, i32)| {
            let topology = json!({"socketID": -1, "nodeID": numa, "pcieID": pcie, "busID": ""});
            json!({"type": kind, "minor": minor, "health": true, "topology": topology})
        };
        let of =
            |kind: &'static str| places.iter().enumerate().map(move |(at, place)| device(kind, at, *place));
        let devices: Vec<_> = of("gpu").chain(of("rdma")).collect();
        node::devices(&serde_json::from_value(json!({"spec": {"devices": devices}})).unwrap()).unwrap()
    }

    fn given(gpus: &[u32], nics: &[u32]) -> DeviceAllocations {
        let devices = |minors: &[u32]| minors.iter().map(|minor| json!({"minor": minor})).collect::<Vec<_>>();
        record::decode(&json!({"gpu": devices(gpus), "rdma": devices(nics)}).to_string()).unwrap()
    }

    #[test]
    fn the_level_is_how_far_each_gpu_is_from_its_nearest_nic() {
        let node = machine(&[("switch-a", 0), ("switch-b", 0), ("switch-c", 1)]);
        let level = |gpus: &[u32], nics: &[u32]| {
            let text = settings(&given(gpus, nics), &node).unwrap();
            text.split_once("NCCL_NET_GDR_LEVEL=").map(|(_, level)| level.trim_end().to_owned())
        };
        assert_eq!(level(&[0, 1], &[0, 1]).as_deref(), Some("PXB"));
        assert_eq!(level(&[0, 1], &[0]).as_deref(), Some("PHB"));
        assert_eq!(level(&[0, 2], &[0]), None);
        assert_eq!(level(&[], &[0]), None);
        let by_root = machine(&[("pci0000:3a", 0)]);
        let text = settings(&given(&[0], &[0]), &by_root).unwrap();
        assert_eq!(text, "NCCL_IB_HCA==mlx5_0\nNCCL_NET_GDR_LEVEL=PHB\n");
        let unknown = machine(&[("", -1)]);
        assert_eq!(settings(&given(&[0], &[0]), &unknown).unwrap(), "NCCL_IB_HCA==mlx5_0\n");
    }

    #[test]
    fn nics_are_named_by_their_number_unless_they_are_virtual_functions() {
        let node = machine(&[("a", 0), ("a", 0), ("a", 0)]);
        assert_eq!(settings(&given(&[], &[1, 2]), &node).unwrap(), "NCCL_IB_HCA==mlx5_1,mlx5_2\n");
        assert_eq!(settings(&given(&[0], &[]), &node), None);
        let function = json!({"rdma": [{"minor": 0, "extension": {"vfs": [{"minor": -1, "busID": "0000:01:00.2"}]}}], "gpu": [{"minor": 0}]});
        let function = record::decode(&function.to_string()).unwrap();
        assert_eq!(settings(&function, &node).unwrap(), "NCCL_NET_GDR_LEVEL=PXB\n");
    }

    #[test]
    fn a_word_that_is_neither_true_nor_false_is_refused() {
        let asked = |value: Value| {
            is_asked(&serde_json::from_value(json!({"annotations": {names::NCCL: value}})).unwrap())
        };
        assert_eq!((asked(json!("true")), asked(json!("0"))), (Ok(true), Ok(false)));
        let told = asked(json!("on")).unwrap_err().to_string();
        assert_eq!(
            told,
            "metadata.annotations[berth.dev/nccl]: `on` is neither true nor false; write `true` or `false`"
        );
    }
}
