//! Resource names and annotations of the device plugins that do not speak HAMi's protocol; those that do are in `wire`.
//!
//! It must not act: each plugin's Allocate does.

use super::share::Names;

/// Volcano's vGPU plugin.
pub(super) const VOLCANO: Names = Names {
    count: "volcano.sh/vgpu-number",
    memory: "volcano.sh/vgpu-memory",
    percentage: Some("volcano.sh/vgpu-memory-percentage"),
    cores: "volcano.sh/vgpu-cores",
};
/// What Volcano's vGPU plugin registers its cards by.
pub(super) const VOLCANO_REGISTER: &str = "volcano.sh/node-vgpu-register";
/// What a pod was given by Volcano's vGPU plugin, for good.
pub(super) const VOLCANO_ALLOCATED: &str = "volcano.sh/vgpu-ids-new";

/// Cambricon's plugin, which knows nothing of the first: it counts cards for HAMi's scheduler alone.
pub(super) const CAMBRICON: Names = Names {
    count: "cambricon.com/vmlu",
    memory: "cambricon.com/mlu.smlu.vmemory",
    percentage: None,
    cores: "cambricon.com/mlu.smlu.vcore",
};
/// What kubelet asks Cambricon's plugin for, each by itself.
pub(super) const CAMBRICON_SERVED: [&str; 2] = [CAMBRICON.cores, CAMBRICON.memory];
/// HAMi's record, which Cambricon's plugin does not read; schedulers count by it.
pub(super) const CAMBRICON_RECORD: &str = "hami.io/cambricon-mlu-devices-allocated";
/// MiB in a unit of memory, where Cambricon's plugin runs with `min-dsmlu-unit=256`, as HAMi wants it.
pub(super) const CAMBRICON_UNIT: u64 = 256;

/// What kubelet asks MetaX' plugin for; what of a card is said by the annotation.
pub(super) const METAX: Names =
    Names { count: "metax-tech.com/sgpu", memory: "", percentage: None, cores: "" };
/// HAMi's record, which Koordinator's pods do not bear.
pub(super) const METAX_RECORD: &str = "hami.io/metax-sgpu-devices-allocated";
/// Into how many shares MetaX' plugin cuts a card at most.
pub(super) const METAX_SLOTS: u64 = 16;
