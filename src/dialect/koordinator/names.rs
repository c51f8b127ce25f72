//! The names of Koordinator's resources, annotations and labels.
//!
//! Source: koordinator `apis/extension/device_share.go`, `apis/extension/resource.go`.

/// The group of the kind Device.
pub const DEVICE_GROUP: &str = "scheduling.koordinator.sh";

/// Percent of GPUs, compute and memory alike: 100 is one card.
pub const GPU: &str = "koordinator.sh/gpu";
/// Percent of compute.
pub const GPU_CORE: &str = "koordinator.sh/gpu-core";
/// Bytes of device memory.
pub const GPU_MEMORY: &str = "koordinator.sh/gpu-memory";
/// Percent of device memory.
pub const GPU_MEMORY_RATIO: &str = "koordinator.sh/gpu-memory-ratio";
/// Over how many cards the rest of the request is spread.
pub const GPU_SHARED: &str = "koordinator.sh/gpu.shared";
/// Percent of NICs, or a number of them.
pub const RDMA: &str = "koordinator.sh/rdma";
/// Percent of FPGAs.
pub const FPGA: &str = "koordinator.sh/fpga";
/// Whole cards, by the vendors' own names.
pub const WHOLE_CARDS: [&str; 3] = ["nvidia.com/gpu", "amd.com/gpu", "dcu.com/gpu"];
/// AI cores of an Ascend card.
pub const NPU_CORE: &str = "huawei.com/npu-core";
/// AI CPUs of an Ascend card.
pub const NPU_CPU: &str = "huawei.com/npu-cpu";
/// Percent of an Ascend card's video units.
pub const NPU_DVPP: &str = "huawei.com/npu-dvpp";

/// Resources that ask for GPUs, or that a GPU publishes.
pub const GPU_RESOURCES: [&str; 11] = [
    WHOLE_CARDS[0],
    WHOLE_CARDS[1],
    WHOLE_CARDS[2],
    GPU,
    GPU_SHARED,
    GPU_CORE,
    GPU_MEMORY,
    GPU_MEMORY_RATIO,
    NPU_CORE,
    NPU_CPU,
    NPU_DVPP,
];

/// The name itself, if it is that of a resource that asks for devices.
pub fn known(resource: &str) -> Option<&'static str> {
    GPU_RESOURCES.into_iter().chain([RDMA, FPGA]).find(|known| *known == resource)
}

/// Whether it is the name of a resource that asks for devices.
pub fn is_device(resource: &str) -> bool {
    known(resource).is_some()
}

/// On a pod: what it was given, as JSON.
pub const ALLOCATED: &str = "scheduling.koordinator.sh/device-allocated";
/// On a pod: how the devices of each type are to be chosen, as JSON.
pub const HINT: &str = "scheduling.koordinator.sh/device-allocate-hint";
/// On a pod: which types are chosen together, as JSON.
pub const JOINT: &str = "scheduling.koordinator.sh/device-joint-allocate";
/// On a pod: which partitions will do, as JSON.
pub const PARTITION_SPEC: &str = "scheduling.koordinator.sh/gpu-partition-spec";
/// On a pod: the Reservation that it uses, as JSON.
pub const RESERVATION_ALLOCATED: &str = "scheduling.koordinator.sh/reservation-allocated";
/// On a pod: the Reservations of which it must use one, as JSON.
pub const RESERVATION_AFFINITY: &str = "scheduling.koordinator.sh/reservation-affinity";
/// On a Reservation: a number; of several the one with the lowest is used first.
pub const RESERVATION_ORDER: &str = "scheduling.koordinator.sh/reservation-order";
/// On a pod, Berth's own: `true` if each container is to have devices of its own.
pub const BY_CONTAINER: &str = "berth.dev/devices-per-container";
/// On a pod, Berth's own: which devices each container has, as JSON, in the form of [`ALLOCATED`] below the container's name.
pub const ALLOCATED_BY_CONTAINER: &str = "berth.dev/device-allocated";
/// What the annotation of Berth's own begins with that holds the uuids of a container's GPUs, before the container's name.
pub const VISIBLE_DEVICES: &str = "berth.dev/visible-devices.";
/// On a pod, Berth's own: `true` if settings of NCCL are to be written for it.
pub const NCCL: &str = "berth.dev/nccl";
/// On a pod, Berth's own: settings of NCCL, in the form of `/etc/nccl.conf`.
pub const NCCL_CONF: &str = "berth.dev/nccl-conf";
/// On a Device: the table of partitions, as JSON.
pub const PARTITIONS: &str = "scheduling.koordinator.sh/gpu-partitions";
/// On a Node or a Device: `Honor`, or anything else for `Prefer`.
pub const PARTITION_POLICY: &str = "node.koordinator.sh/gpu-partition-policy";
/// On a Node or a Device: the vendor of the GPUs.
pub const GPU_VENDOR: &str = "node.koordinator.sh/gpu-vendor";
/// On a Node or a Device: the model of the GPUs.
pub const GPU_MODEL: &str = "node.koordinator.sh/gpu-model";
/// On a Pod and a Node: what keeps pods on one card apart.
pub const ISOLATION: &str = "koordinator.sh/gpu-isolation-provider";
