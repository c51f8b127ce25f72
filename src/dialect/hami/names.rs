//! HAMi's names on the wire (v2.10.0 `pkg/util/types.go`, `pkg/device/nvidia/device.go`).

/// Counts shares.
pub const COUNT: &str = "nvidia.com/gpu";
/// MiB of each share.
pub const MEMORY: &str = "nvidia.com/gpumem";
/// Percent of a card's memory.
pub const MEMORY_PERCENTAGE: &str = "nvidia.com/gpumem-percentage";
/// Percent of a card's compute.
pub const CORES: &str = "nvidia.com/gpucores";
/// 0 high, 1 low; ends up in an environment variable.
pub const PRIORITY: &str = "nvidia.com/priority";
/// Every resource, by its default name.
pub const RESOURCES: [&str; 5] = [COUNT, MEMORY, MEMORY_PERCENTAGE, CORES, PRIORITY];

/// Wanted models.
pub const USE_MODEL: &str = "nvidia.com/use-gputype";
/// Unwanted models.
pub const NO_USE_MODEL: &str = "nvidia.com/nouse-gputype";
/// Wanted cards.
pub const USE_ID: &str = "nvidia.com/use-gpuuuid";
/// Unwanted cards.
pub const NO_USE_ID: &str = "nvidia.com/nouse-gpuuuid";
/// How the card must be sliced.
pub const MODE: &str = "nvidia.com/vgpu-mode";
/// All shares of a container on one NUMA node.
pub const NUMA_BIND: &str = "nvidia.com/numa-bind";
/// Which card first.
pub const CARD_POLICY: &str = "hami.io/gpu-scheduler-policy";
/// What counts how much when cards are compared by how full they are.
pub const WEIGHTS: &str = "hami.io/device-scoring-weights";
/// Which node first.
pub const NODE_POLICY: &str = "hami.io/node-scheduler-policy";

/// On a pod or namespace: `ignore` keeps it from being changed.
pub const OPT_OUT: &str = "hami.io/webhook";

/// On a pod: its node; annotation and label.
pub const NODE: &str = "hami.io/vgpu-node";
/// On a pod: when it was assigned, Unix seconds.
pub const TIME: &str = "hami.io/vgpu-time";
/// On a pod: the assignment that the plugin consumes.
pub const TO_ALLOCATE: &str = "hami.io/vgpu-devices-to-allocate";
/// On a pod: the assignment that stays.
pub const ALLOCATED: &str = "hami.io/vgpu-devices-allocated";
/// On a pod: which MIG slices it was given.
pub const MIG: &str = "hami.io/vgpu-mig-allocations";
/// On a pod: `allocating`, `success` or `failed`.
pub const BIND_PHASE: &str = "hami.io/bind-phase";
/// On a pod: when it was bound, Unix seconds.
pub const BIND_TIME: &str = "hami.io/bind-time";

/// On a node: its cards.
pub const REGISTER: &str = "hami.io/node-nvidia-register";
/// On a node: the last sign of life of a plugin up to v2.7.
pub const HANDSHAKE: &str = "hami.io/node-handshake";
/// On a node: how well its cards are linked.
pub const LINKS: &str = "hami.io/node-nvidia-score";
/// On a node: uuids that an operator keeps new pods off.
pub const CORDON: &str = "hami.io/device-cordon";
/// On a node: the lock.
pub const LOCK: &str = "hami.io/mutex.lock";
