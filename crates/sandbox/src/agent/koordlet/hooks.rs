//! What koordlet's hooks give a container that is created: the GPUs, the limits of HAMi's library, the files of RDMA NICs.
//!
//! Source: koordinator a7a1b76 `pkg/koordlet/runtimehooks/hooks/{gpu,rdma}`. They read the pod alone, and leave to the container runtime
//! and to the kernel whether a device exists. Mounts are left out.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{CORE, MEMORY, RATIO};
use crate::agent::view::milli;

/// On a pod: what it was given.
pub const ALLOCATED: &str = "scheduling.koordinator.sh/device-allocated";
/// On a pod: what limits it on a shared card.
pub const ISOLATION: &str = "koordinator.sh/gpu-isolation-provider";
const HAMI_CORE: &str = "HAMi-core";
const LIBRARY: &str = "/usr/local/vgpu/libvgpu.so";

/// What a pod was given, by the type of device.
pub type Given = BTreeMap<String, Option<Vec<Device>>>;

/// One device, or a part of it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Device {
    /// Its number.
    pub minor: i64,
    /// Its uuid or its PCI address.
    pub id: String,
    /// How much of it.
    pub resources: Option<BTreeMap<String, Value>>,
    /// More about it.
    pub extension: Option<Extension>,
}

/// What only some types of devices have.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Extension {
    /// Virtual functions.
    pub vfs: Option<Vec<Function>>,
    /// The template that the share is.
    #[serde(rename = "gpuSharedResourceTemplate")]
    pub template: Option<String>,
}

/// A virtual function.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Function {
    /// Its PCI address.
    #[serde(rename = "busID")]
    pub bus: String,
}

impl Device {
    /// How much of this resource.
    pub fn amount(&self, resource: &str) -> Option<i128> {
        self.resources.as_ref()?.get(resource).and_then(milli).map(|amount| amount / 1000)
    }

    /// The PCI addresses by which a container gets it: its functions', or its own.
    pub fn addresses(&self) -> Vec<&str> {
        let functions = self.extension.iter().filter_map(|extension| extension.vfs.as_ref()).flatten();
        let functions: Vec<&str> = functions.map(|function| function.bus.as_str()).collect();
        if functions.is_empty() { vec![&self.id] } else { functions }
    }
}

/// The value of the pod's annotation that Ascend's device plugin reads: a share as number and template, whole cards as numbers.
///
/// Source: koordinator `pkg/scheduler/plugins/deviceshare/device_plugin_adapter.go`, for the reader's side.
pub fn ascend(given: &Given) -> String {
    let name = |npu: &Device| match npu.extension.as_ref().and_then(|extension| extension.template.as_ref()) {
        Some(template) => format!("{}-{template}", npu.minor),
        None => npu.minor.to_string(),
    };
    of(given, "gpu").iter().map(name).collect::<Vec<_>>().join(",")
}

/// The value of the pod's annotation that Cambricon's plugin cuts a card by, whose memory it counts in so many bytes; `None`: it can't be told.
///
/// Source: koordinator `pkg/scheduler/plugins/deviceshare/device_plugin_adapter.go`, for the reader's side.
pub fn cambricon(given: &Given, unit: i128) -> Option<String> {
    let [mlu] = of(given, "gpu") else { return None };
    let (core, memory) = (mlu.amount(CORE)?, mlu.amount(MEMORY)?);
    Some(format!("{}_{core}_{}", mlu.minor, memory / unit))
}

/// The GPUs that CUDA shows in a container with this variable, which has access to those given: it takes uuids, up to the first that there is
/// not. `None`: the text names a GPU that the pod was not given, or none at all.
pub fn shown(given: &Given, variable: &str) -> Option<Vec<String>> {
    let gpus = of(given, "gpu");
    let known = |uuid: &str| gpus.iter().any(|gpu| gpu.id == uuid).then(|| uuid.to_owned());
    if variable == "-1" { Some(Vec::new()) } else { variable.split(',').map(known).collect() }
}

/// What a pod with these annotations was given; `None`: the annotation is missing.
pub fn given(annotations: &BTreeMap<String, String>) -> Result<Option<Given>, String> {
    let Some(text) = annotations.get(ALLOCATED) else { return Ok(None) };
    serde_json::from_str(text).map_err(|error| format!("{ALLOCATED}: {error}"))
}

/// The devices of this type.
pub fn of<'a>(given: &'a Given, kind: &str) -> &'a [Device] {
    given.get(kind).and_then(Option::as_deref).unwrap_or_default()
}

/// The environment that every container of a pod with these annotations and labels gets.
pub fn environment(
    annotations: &BTreeMap<String, String>,
    labels: &BTreeMap<String, String>,
) -> Result<BTreeMap<&'static str, String>, String> {
    let given = given(annotations)?.unwrap_or_default();
    let gpus = of(&given, "gpu");
    let Some(first) = gpus.first() else { return Ok(BTreeMap::new()) };
    let minors: Vec<String> = gpus.iter().map(|gpu| gpu.minor.to_string()).collect();
    let mut environment = BTreeMap::from([("NVIDIA_VISIBLE_DEVICES", minors.join(","))]);
    if labels.get(ISOLATION).map(String::as_str) != Some(HAMI_CORE) {
        return Ok(environment);
    }
    // The first card's share is every card's limit.
    if first.amount(RATIO).ok_or("gpu memory ratio not found in gpu resource")? < 100 {
        let memory = first.amount(MEMORY).ok_or("gpu memory not found in gpu resource")?;
        environment.insert("CUDA_DEVICE_MEMORY_LIMIT", memory.to_string());
        environment.extend(first.amount(CORE).map(|core| ("CUDA_DEVICE_SM_LIMIT", core.to_string())));
        environment.insert("LD_PRELOAD", LIBRARY.to_owned());
    }
    Ok(environment)
}
