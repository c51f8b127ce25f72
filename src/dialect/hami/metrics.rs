//! The metrics that HAMi's scheduler exports: names, help and labels, for dashboards and alerts that were made for it.
//!
//! Source: HAMi v2.10 `cmd/scheduler/metrics.go`, `pkg/metrics/metrics.go`. Units are the source's: bytes, percent of a card, and a part
//! of 1 for `hami_node_gpu_memory_allocated_ratio`, whatever its dashboard's axis says.

/// The label that all of them bear but `hami_build_info`, and its value.
pub const ZONE: (&str, &str) = ("zone", "vGPU");

/// The labels of a card: its node, its name, its number, its model.
pub const CARD: [&str; 4] = ["node", "device_uuid", "device_index", "device_type"];
/// What a card has of compute, as a label.
pub const CORES: &str = "device_cores";
/// What a card has of memory, in MiB, as a label.
pub const MEMORY_LIMIT: &str = "device_memory_limit";
/// The labels of what a pod holds of a card. HAMi sums up a pod's containers, so the container's number is always 0.
pub const HELD: [&str; 5] = ["namespace", "node", "pod", "container_index", "device_uuid"];
/// The labels of a quota: its namespace and the resource that it bounds, without `limits.`.
pub const QUOTA: [&str; 2] = ["namespace", "quota_name"];
/// The bound of a quota, as a label of what is used of it; 0 where there is none.
pub const LIMIT: &str = "limit";

/// The labels of `hami_build_info`.
pub const BUILD: [&str; 6] = ["version", "revision", "build_date", "go_version", "compiler", "platform"];

/// Name and help.
pub type Named = (&'static str, &'static str);

/// Memory of a card, in bytes.
pub const GPU_MEMORY_LIMIT: Named = ("hami_gpu_memory_limit_bytes", "Device memory limit for a certain GPU");
/// Compute of a card, in percent.
pub const GPU_CORE_LIMIT: Named = ("hami_gpu_core_limit_ratio", "Device core limit for a certain GPU");
/// Memory of a card that is given away, in bytes.
pub const GPU_MEMORY_ALLOCATED: Named =
    ("hami_gpu_memory_allocated_bytes", "Device memory allocated for a certain GPU");
/// Containers that share a card.
pub const GPU_SHARED_COUNT: Named = ("hami_gpu_shared_count", "Number of containers sharing this GPU");
/// Compute of a card that is given away, in percent.
pub const GPU_CORE_ALLOCATED: Named =
    ("hami_gpu_core_allocated_ratio", "Device core allocated for a certain GPU");
/// Memory of a card that is given away, in bytes, with the card's size as labels.
pub const NODE_GPU_OVERVIEW: Named = ("hami_node_gpu_overview", "GPU overview on a certain node");
/// The part of a card's memory that is given away, 0 to 1.
pub const NODE_GPU_MEMORY_ALLOCATED: Named =
    ("hami_node_gpu_memory_allocated_ratio", "GPU Memory Allocated Percentage on a certain GPU");
/// Memory of a card that a pod holds, in bytes.
pub const VGPU_MEMORY_ALLOCATED: Named =
    ("hami_vgpu_memory_allocated_bytes", "vGPU memory allocated from a container");
/// Compute of a card that a pod holds, in percent.
pub const VGPU_CORE_ALLOCATED: Named =
    ("hami_vgpu_core_allocated_ratio", "vGPU core allocated from a container");
/// What the pods of a namespace hold: MiB of memory or percent of compute.
pub const QUOTA_USED: Named = ("hami_resource_quota_used", "resourcequota usage for a certain device");
/// What a quota allows, in its own units.
pub const QUOTA_LIMIT: Named = ("hami_resource_quota_limit", "resourcequota limit for a certain device");
/// Always 1, with the build as labels.
pub const BUILD_INFO: Named =
    ("hami_build_info", "hami build metadata exposed as labels with a constant value of 1");

/// The names and labels that HAMi's scheduler exports in addition with `--legacy-metrics`, with the values of the others except that
/// compute is in a card's own units.
pub mod legacy {
    use super::Named;

    /// The labels of a card, as [`super::CARD`].
    pub const CARD: [&str; 4] = ["nodeid", "deviceuuid", "deviceidx", "devicetype"];
    /// What a card has of compute, as a label.
    pub const CORES: &str = "devicecores";
    /// What a card has of memory, in MiB, as a label.
    pub const MEMORY_LIMIT: &str = "devicememorylimit";
    /// The labels of what a pod holds of a card, as [`super::HELD`].
    pub const HELD: [&str; 5] = ["podnamespace", "nodename", "podname", "containeridx", "deviceuuid"];
    /// The labels of a quota, as [`super::QUOTA`].
    pub const QUOTA: [&str; 2] = ["quotanamespace", "quotaName"];

    /// Memory of a card, in bytes.
    pub const GPU_MEMORY_LIMIT: Named = ("GPUDeviceMemoryLimit", super::GPU_MEMORY_LIMIT.1);
    /// Compute of a card.
    pub const GPU_CORE_LIMIT: Named = ("GPUDeviceCoreLimit", "Device memory core limit for a certain GPU");
    /// Memory of a card that is given away, in bytes.
    pub const GPU_MEMORY_ALLOCATED: Named = ("GPUDeviceMemoryAllocated", super::GPU_MEMORY_ALLOCATED.1);
    /// Containers that share a card.
    pub const GPU_SHARED_COUNT: Named = ("GPUDeviceSharedNum", super::GPU_SHARED_COUNT.1);
    /// Compute of a card that is given away.
    pub const GPU_CORE_ALLOCATED: Named = ("GPUDeviceCoreAllocated", super::GPU_CORE_ALLOCATED.1);
    /// Memory of a card that is given away, in bytes, with the card's size as labels.
    pub const NODE_GPU_OVERVIEW: Named = ("nodeGPUOverview", super::NODE_GPU_OVERVIEW.1);
    /// The part of a card's memory that is given away, 0 to 1; it bears no model.
    pub const NODE_GPU_MEMORY_ALLOCATED: Named =
        ("nodeGPUMemoryPercentage", super::NODE_GPU_MEMORY_ALLOCATED.1);
    /// Memory of a card that a pod holds, in bytes.
    pub const VGPU_MEMORY_ALLOCATED: Named = ("vGPUMemoryAllocated", super::VGPU_MEMORY_ALLOCATED.1);
    /// Compute of a card that a pod holds.
    pub const VGPU_CORE_ALLOCATED: Named = ("vGPUCoreAllocated", super::VGPU_CORE_ALLOCATED.1);
    /// What the pods of a namespace hold: MiB of memory or compute.
    pub const QUOTA_USED: Named = ("QuotaUsed", super::QUOTA_USED.1);
}
