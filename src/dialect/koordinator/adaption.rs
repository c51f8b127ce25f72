//! What device plugins read of a pod that was given devices by Koordinator's names: general annotations, and those of each vendor's own plugin.
//!
//! Source: koordinator `pkg/scheduler/plugins/deviceshare/device_plugin_adapter.go`. Its own node agents need none of it.

use jiff::Timestamp;
use serde_json::json;

use super::{
    dimension::dimension,
    names,
    plugin::{
        CAMBRICON, CAMBRICON_ASSIGNED, CAMBRICON_PROFILE, CAMBRICON_UNIT, METAX, METAX_ALLOCATED, METAX_UNIT,
    },
};
use crate::{
    device::{DeviceAllocation, DeviceAllocations, DeviceType, NodeDevices},
    dialect::Record,
};

/// When the pod was bound, in nanoseconds.
const BIND_TIMESTAMP: &str = "scheduling.koordinator.sh/bind-timestamp";
/// The numbers of its GPUs, for a variable of the pod's own.
const GPU_MINORS: &str = "scheduling.koordinator.sh/gpu-minors";
/// The node, where HAMi's library keeps pods apart: its monitor finds the pod by it.
const HAMI_NODE: &str = "hami.io/vgpu-node";
const HAMI_CORE: &str = "HAMi-core";

const HUAWEI: &str = "huawei";
const HUAWEI_TIME: &str = "predicate-time";
/// Ascend 310P cards of this model are called by another name.
const DUO: &str = "Ascend-310P3-300I-DUO";
const ASCEND_310P: &str = "huawei.com/Ascend310P";

/// The annotations and labels for the plugins of a node with these devices; an error says what the vendor's plugin can't serve. `isolation` is what
/// keeps pods on one card apart, by the pod's own label.
pub fn record(
    allocations: &DeviceAllocations,
    node: (&str, &NodeDevices),
    isolation: Option<&str>,
    now: Timestamp,
) -> Result<Record, String> {
    let nanoseconds = now.as_nanosecond().to_string();
    let mut record = Record::default();
    record.annotations.insert(BIND_TIMESTAMP.to_owned(), nanoseconds.clone());
    let Some(gpus) = allocations.get(&DeviceType::Gpu).filter(|gpus| !gpus.is_empty()) else {
        return Ok(record);
    };
    record.annotations.insert(GPU_MINORS.to_owned(), minors(gpus, ""));
    if isolation == Some(HAMI_CORE) {
        record.labels.insert(HAMI_NODE.to_owned(), node.0.to_owned());
    }
    let of_vendor = match node.1.vendor.as_deref() {
        Some(HUAWEI) => huawei(gpus, node.1.model.as_deref(), nanoseconds),
        Some(CAMBRICON) => cambricon(gpus)?,
        Some(METAX) => metax(gpus)?,
        _ => Vec::new(),
    };
    record.annotations.extend(of_vendor.into_iter().map(|(key, value)| (key.to_owned(), value)));
    Ok(record)
}

/// The numbers of the devices, each after the prefix.
fn minors(devices: &[DeviceAllocation], prefix: &str) -> String {
    let minors: Vec<_> = devices.iter().map(|device| format!("{prefix}{}", device.minor)).collect();
    minors.join(",")
}

fn huawei(
    gpus: &[DeviceAllocation],
    model: Option<&str>,
    nanoseconds: String,
) -> Vec<(&'static str, String)> {
    let template = gpus[0].template.as_ref();
    let cards = match (model, template) {
        (Some(DUO), _) => (ASCEND_310P, minors(gpus, "Ascend310P-")),
        (_, Some(template)) => (names::NPU_CORE, format!("{}-{template}", gpus[0].minor)),
        _ => (names::NPU_CORE, minors(gpus, "")),
    };
    vec![(HUAWEI_TIME, nanoseconds), cards]
}

fn cambricon(gpus: &[DeviceAllocation]) -> Result<Vec<(&'static str, String)>, String> {
    let [gpu] = gpus else {
        return Err("Cambricon's device plugin serves a share of one card only".to_owned());
    };
    let (core, units) = share(gpu, CAMBRICON_UNIT)?;
    let profile = format!("{}_{core}_{units}", gpu.minor);
    Ok(vec![(CAMBRICON_ASSIGNED, "false".to_owned()), (CAMBRICON_PROFILE, profile)])
}

fn metax(gpus: &[DeviceAllocation]) -> Result<Vec<(&'static str, String)>, String> {
    let card = |gpu: &DeviceAllocation| {
        let (core, mib) = share(gpu, METAX_UNIT)?;
        Ok(json!({"uuid": gpu.id.as_deref().unwrap_or_default(), "compute": core, "vRam": mib}))
    };
    let cards: Result<Vec<_>, String> = gpus.iter().map(card).collect();
    Ok(vec![(METAX_ALLOCATED, json!([cards?]).to_string())])
}

/// Compute in percent, and memory in units of so many bytes; the plugin needs both.
fn share(gpu: &DeviceAllocation, unit: u64) -> Result<(u64, u64), String> {
    let of = |name| gpu.amounts.get(&dimension(name));
    let core = of(names::GPU_CORE);
    let core = core.ok_or_else(|| format!("the device plugin needs `{}`", names::GPU_CORE))?;
    let memory = of(names::GPU_MEMORY).unwrap_or(0);
    if memory < unit {
        return Err(format!("{memory} bytes of memory are fewer than the device plugin's {unit}"));
    }
    Ok((core, memory / unit))
}
