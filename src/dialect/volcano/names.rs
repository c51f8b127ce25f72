//! Volcano's names on the wire (`pkg/scheduler/api/devices/config/vgpu.go`, `pkg/scheduler/api/devices/nvidia`).

/// What the vGPU resources begin with.
pub const VGPU_PREFIX: &str = "volcano.sh/vgpu-";
/// Counts virtual cards.
pub const COUNT: &str = "volcano.sh/vgpu-number";
/// MiB of each virtual card, divided by the memory factor.
pub const MEMORY: &str = "volcano.sh/vgpu-memory";
/// Percent of a card's memory.
pub const MEMORY_PERCENTAGE: &str = "volcano.sh/vgpu-memory-percentage";
/// Percent of a card's compute.
pub const CORES: &str = "volcano.sh/vgpu-cores";
/// Every vGPU resource.
pub const RESOURCES: [&str; 4] = [COUNT, MEMORY, MEMORY_PERCENTAGE, CORES];
/// Blocks of memory on one card: gpushare.
pub const GPU_MEMORY: &str = "volcano.sh/gpu-memory";
/// Whole cards: gpu-number.
pub const GPU_NUMBER: &str = "volcano.sh/gpu-number";

/// Wanted models.
pub const USE_MODEL: &str = "nvidia.com/use-gputype";
/// Unwanted models.
pub const NO_USE_MODEL: &str = "nvidia.com/nouse-gputype";
/// Wanted cards.
pub const USE_ID: &str = "volcano.sh/vgpu-use-gpuuuid";
/// Unwanted cards.
pub const NO_USE_ID: &str = "volcano.sh/vgpu-nouse-gpuuuid";
/// How the node's cards must be sliced.
pub const MODE: &str = "volcano.sh/vgpu-mode";
/// Whether pods of one group may share a card.
pub const PODGROUP_POLICY: &str = "volcano.sh/vgpu-podgroup-policy";

/// The name of the pod's group, the first of these that is there.
pub const GROUPS: [&str; 2] = ["scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"];

/// gpushare, on a pod: the numbers of its cards.
pub const GPU_INDEX: &str = "volcano.sh/gpu-index";
/// gpushare, on a pod: when it was assigned, Unix nanoseconds.
pub const PREDICATE_TIME: &str = "volcano.sh/predicate-time";
/// gpushare, on a pod: whether the plugin has served it.
pub const GPU_ASSIGNED: &str = "volcano.sh/gpu-assigned";
/// gpushare, on a node: the numbers of cards that don't work.
pub const GPU_UNHEALTHY: &str = "volcano.sh/gpu-unhealthy-ids";
/// gpushare, on a node: the lock.
pub const GPU_LOCK: &str = "gpu";

/// On a pod: its node.
pub const NODE: &str = "volcano.sh/vgpu-node";
/// On a pod: when it was assigned, Unix seconds; the plugin serves the smallest first, and Berth dates backwards.
pub const TIME: &str = "volcano.sh/vgpu-time";
/// On a pod: the assignment that stays.
pub const IDS: &str = "volcano.sh/vgpu-ids-new";
/// On a pod: the assignment that the plugin consumes.
pub const TO_ALLOCATE: &str = "volcano.sh/devices-to-allocate";
/// On a pod: `allocating`, `success` or `failed`.
pub const BIND_PHASE: &str = "volcano.sh/bind-phase";
/// On a pod: when it was bound, Unix seconds.
pub const BIND_TIME: &str = "volcano.sh/bind-time";

/// On a node: its cards.
pub const REGISTER: &str = "volcano.sh/node-vgpu-register";
/// On a node: the lock.
pub const LOCK: &str = "hamivgpu";
