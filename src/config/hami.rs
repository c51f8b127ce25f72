//! Settings of HAMi's dialect: the keys of its `nvidia:` section and of its scheduler's flags.
//!
//! Source: HAMi v2.10 `pkg/device/nvidia/device.go` (`NvidiaConfig`), `cmd/scheduler/main.go`. A flag may be written as a key
//! or as the flag itself.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use serde::Serialize;

use super::{
    duration,
    error::Notice,
    section::{Field, Section},
    trouble::Trouble,
    vendors::{self, VendorsConfig},
};
use crate::dialect::hami::names;

/// Settings of HAMi's dialect.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HamiConfig {
    /// Whether Berth serves the dialect.
    pub enabled: bool,
    /// The resource that counts shares.
    pub resource_count_name: String,
    /// MiB of each share.
    pub resource_memory_name: String,
    /// Percent of a card's memory.
    pub resource_memory_percentage_name: String,
    /// Percent of a card's compute.
    pub resource_core_name: String,
    /// The resource whose value is the priority for the container's limiter.
    pub resource_priority_name: String,
    /// MiB where no memory is asked for; 0: a whole card's.
    pub default_memory: u32,
    /// Percent of compute where none is asked for.
    pub default_cores: u32,
    /// The count of a container that asks for memory or compute without one; 0: it is denied.
    #[serde(rename = "defaultGPUNum")]
    pub default_gpu_num: u32,
    /// MiB for each unit of the memory resource.
    pub memory_factor: u32,
    /// How the container's limiter treats compute.
    pub gpu_core_policy: GpuCorePolicy,
    /// Whether containers that ask for no share are shown no card.
    pub overwrite_env: bool,
    /// The runtime class of share pods that name none; empty: theirs stays.
    pub runtime_class_name: String,
    /// The preference between nodes, if the pod states none.
    pub node_scheduler_policy: SchedulerPolicy,
    /// Which card first, where the pod does not say: of several, the first that tells two cards apart.
    #[serde(serialize_with = "listed")]
    pub gpu_scheduler_policy: Vec<SchedulerPolicy>,
    /// The node lock.
    #[serde(flatten)]
    pub node_locks: NodeLockConfig,
    /// Whether a share pod that names `default-scheduler` becomes Berth's.
    pub force_overwrite_default_scheduler: bool,
    /// The other vendors.
    #[serde(flatten)]
    pub vendors: VendorsConfig,
}

/// How the container's limiter treats compute.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GpuCorePolicy {
    /// Limit only where a card is shared.
    Default,
    /// Always limit.
    Force,
    /// Never limit.
    Disable,
}

/// Settings of the node lock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NodeLockConfig {
    /// How long the lock of another scheduler's pod is respected.
    #[serde(rename = "nodeLockExpire", serialize_with = "duration::serialize")]
    pub expire: SignedDuration,
    /// When it is taken for a pod with a share of an NVIDIA card.
    #[serde(rename = "nodeLock")]
    pub policy: NodeLockPolicy,
}

/// When the node lock is taken.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeLockPolicy {
    /// For each pod.
    #[default]
    Always,
    /// While another scheduler may take it, and where the device plugin would find another pod without it.
    Auto,
}

impl NodeLockPolicy {
    /// The values of the setting.
    pub(super) const CHOICES: [(&str, Self); 2] = [("always", Self::Always), ("auto", Self::Auto)];
}

/// Which node or card first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SchedulerPolicy {
    /// The fullest that fits.
    Binpack,
    /// The emptiest.
    Spread,
    /// Only a card that no pod uses.
    Mutex,
    /// Cards on the higher NUMA node.
    Numa,
    /// Cards with the best links between them.
    TopologyAware,
    /// The one where the pod leaves least of no use for the pods that may come.
    LeastWaste,
}

const NO_USE: &str = "has no effect: Berth does not use this setting of HAMi";

/// Settings of the node plugin and of what Berth does not have, in the `nvidia:` section.
pub(super) const UNUSED_KEYS: [&str; 10] = [
    "deviceSplitCount",
    "deviceMemoryScaling",
    "deviceCoreScaling",
    "preConfiguredDeviceMemory",
    "enableNumaTopology",
    "disableCoreLimit",
    "libCudaLogLevel",
    "migProfileAllowlist",
    "knownMigGeometries",
    "migStrategy",
];

/// Keys of the `nvidia:` section that Berth has a use for.
pub(super) const NVIDIA_KEYS: [&str; 12] = [
    "resourceCountName",
    "resourceMemoryName",
    "resourceMemoryPercentageName",
    "resourceCoreName",
    "resourcePriorityName",
    "defaultMemory",
    "defaultCores",
    "defaultGPUNum",
    "memoryFactor",
    "gpuCorePolicy",
    "overwriteEnv",
    "runtimeClassName",
];

/// The sections of HAMi's `device-config.yaml`.
pub(super) const SECTIONS: [&str; 13] = [
    "nvidia",
    "hygon",
    "cambricon",
    "amd",
    "biren",
    "iluvatars",
    "vnpus",
    "metax",
    "enflame",
    "mthreads",
    "kunlun",
    "awsneuron",
    "vastai",
];

/// Flags of HAMi's scheduler that Berth has no use for.
pub(super) const UNUSED_FLAGS: [&str; 20] = [
    "http_bind",
    "cert_file",
    "key_file",
    "scheduler-name",
    "metrics-bind-address",
    "node-label-selector",
    "kube-qps",
    "kube-burst",
    "kube-timeout",
    "profiling",
    "node-lock-retry-timeout",
    "leader-elect",
    "leader-elect-resource-name",
    "leader-elect-resource-namespace",
    "legacy-metrics",
    "device-config-file",
    "debug",
    "nodeLabelSelector",
    "leaderElect",
    "legacyMetrics",
];

const I32_MAX: i64 = i32::MAX as i64;

pub(super) fn read(mut section: Section, notices: &mut Vec<Notice>) -> Result<HamiConfig, Trouble> {
    let enabled = section.on_unless_off("enabled")?;
    let vendors = vendors::read(&mut section, notices)?;
    let node_scheduler_policy = node_policy(&mut section)?;
    let gpu_scheduler_policy = card_policy(&mut section)?;
    let node_lock_expire = section.take_either("nodeLockExpire", "node-lock-timeout")?;
    let node_lock_expire =
        node_lock_expire.map_or(Ok(SignedDuration::from_mins(5)), |field| field.duration())?;
    let policy = section.choice("nodeLock", NodeLockPolicy::Always, &NodeLockPolicy::CHOICES)?;
    let overwrite_scheduler =
        section.take_either("forceOverwriteDefaultScheduler", "force-overwrite-default-scheduler")?;
    let force_overwrite_default_scheduler = overwrite_scheduler.map_or(Ok(true), |field| field.bool())?;
    section.unused(&UNUSED_FLAGS, NO_USE, notices);
    let mut nvidia = nvidia(section)?;
    let [count, memory, percentage, cores, priority] = resources(&mut nvidia)?;
    let config = HamiConfig {
        enabled,
        resource_count_name: count,
        resource_memory_name: memory,
        resource_memory_percentage_name: percentage,
        resource_core_name: cores,
        resource_priority_name: priority,
        default_memory: nvidia.int("defaultMemory", 0, 0..=I32_MAX)?,
        default_cores: nvidia.int("defaultCores", 0, 0..=100)?,
        default_gpu_num: nvidia.int("defaultGPUNum", 1, 0..=I32_MAX)?,
        memory_factor: nvidia.int("memoryFactor", 1, 1..=I32_MAX)?,
        gpu_core_policy: core_policy(&mut nvidia)?,
        overwrite_env: overwrite_env(&mut nvidia)?,
        runtime_class_name: runtime_class_name(&mut nvidia)?,
        node_scheduler_policy,
        gpu_scheduler_policy,
        node_locks: NodeLockConfig { expire: node_lock_expire, policy },
        force_overwrite_default_scheduler,
        vendors,
    };
    nvidia.unused(&UNUSED_KEYS, NO_USE, notices);
    nvidia.finish()?;
    Ok(config)
}

/// Where NVIDIA's keys stand: beside the others, or in a section of their own, as in a pasted `device-config.yaml`.
fn nvidia(mut section: Section) -> Result<Section, Trouble> {
    let Some(field) = section.take("nvidia") else { return Ok(section) };
    section.none_of(&NVIDIA_KEYS, "is set beside the section `nvidia:`; move it into that section")?;
    section.finish()?;
    Section::of(&field)
}

/// The names of the resources, each different from the others.
fn resources(section: &mut Section) -> Result<[String; 5], Trouble> {
    let keys = [
        ("resourceCountName", names::COUNT),
        ("resourceMemoryName", names::MEMORY),
        ("resourceMemoryPercentageName", names::MEMORY_PERCENTAGE),
        ("resourceCoreName", names::CORES),
        ("resourcePriorityName", names::PRIORITY),
    ];
    let fields = keys.map(|(key, default)| (section.take(key), default));
    let mut seen = BTreeSet::new();
    let stated = fields.iter().filter(|(field, _)| field.is_none()).map(|(_, default)| *default);
    seen.extend(stated.map(str::to_owned));
    let mut read = |(field, default): (Option<Field>, &str)| -> Result<String, Trouble> {
        let Some(field) = field else { return Ok(default.to_owned()) };
        let name = field.resource_name(default)?;
        if !seen.insert(name.clone()) {
            return Err(field.trouble(format!("`{name}` is already the name of another resource")));
        }
        Ok(name)
    };
    let [count, memory, percentage, cores, priority] = fields;
    Ok([read(count)?, read(memory)?, read(percentage)?, read(cores)?, read(priority)?])
}

fn overwrite_env(section: &mut Section) -> Result<bool, Trouble> {
    section.take("overwriteEnv").map_or(Ok(false), |field| field.bool())
}

fn runtime_class_name(section: &mut Section) -> Result<String, Trouble> {
    section.take("runtimeClassName").map_or(Ok(String::new()), |field| field.text())
}

fn core_policy(section: &mut Section) -> Result<GpuCorePolicy, Trouble> {
    let choices = [
        ("default", GpuCorePolicy::Default),
        ("force", GpuCorePolicy::Force),
        ("disable", GpuCorePolicy::Disable),
    ];
    section.choice("gpuCorePolicy", GpuCorePolicy::Default, &choices)
}

fn node_policy(section: &mut Section) -> Result<SchedulerPolicy, Trouble> {
    let field = section.take_either("nodeSchedulerPolicy", "node-scheduler-policy")?;
    let choices = [
        ("least-waste", SchedulerPolicy::LeastWaste),
        ("binpack", SchedulerPolicy::Binpack),
        ("spread", SchedulerPolicy::Spread),
    ];
    field.map_or(Ok(SchedulerPolicy::LeastWaste), |field| field.choice(&choices))
}

fn card_policy(section: &mut Section) -> Result<Vec<SchedulerPolicy>, Trouble> {
    let field = section.take_either("gpuSchedulerPolicy", "gpu-scheduler-policy")?;
    let Some(field) = field else { return Ok(vec![SchedulerPolicy::LeastWaste]) };
    let text = field.text()?;
    let mut policies = Vec::new();
    for word in text.split(',').map(str::trim) {
        let Some(policy) = CARD_POLICIES.iter().find(|policy| policy.name() == word) else {
            let known: Vec<_> = CARD_POLICIES.iter().map(|policy| format!("`{}`", policy.name())).collect();
            return Err(
                field.must_be(&format!("{}, or several of them separated by commas", known.join(", ")))
            );
        };
        if policies.contains(policy) {
            return Err(field.trouble(format!("`{word}` is given twice")));
        }
        policies.push(*policy);
    }
    Ok(policies)
}

/// Every policy that a card may be chosen by.
const CARD_POLICIES: [SchedulerPolicy; 6] = [
    SchedulerPolicy::LeastWaste,
    SchedulerPolicy::Binpack,
    SchedulerPolicy::Spread,
    SchedulerPolicy::Mutex,
    SchedulerPolicy::Numa,
    SchedulerPolicy::TopologyAware,
];

impl SchedulerPolicy {
    fn name(self) -> &'static str {
        match self {
            Self::Binpack => "binpack",
            Self::Spread => "spread",
            Self::Mutex => "mutex",
            Self::Numa => "numa",
            Self::TopologyAware => "topology-aware",
            Self::LeastWaste => "least-waste",
        }
    }
}

impl Serialize for SchedulerPolicy {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// As it is written: parted by commas.
fn listed<S: serde::Serializer>(policies: &[SchedulerPolicy], serializer: S) -> Result<S::Ok, S::Error> {
    let names: Vec<_> = policies.iter().map(|policy| policy.name()).collect();
    serializer.serialize_str(&names.join(","))
}

#[cfg(test)]
mod tests;
