//! Cambricon's MLU, shared by its own plugin in the mode `dynamic-smlu`. Source: HAMi v2.10 `pkg/device/cambricon/device.go`;
//! Cambricon/cambricon-k8s-device-plugin `device-plugin/pkg/mlu/const.go`, `server.go`, `podutils.go`.
//!
//! Kubelet asks the plugin for compute and for memory, each by itself; at the second call the pod is served. A pod that asks for one of
//! them alone would never be, and of an init container, or a second container, the plugin knows nothing.

use super::row::{
    BesideAssignment, Cards, Containers, CoreColumn, Dead, FamilyResources, Keys, MemoryColumn, Several,
    Sizes, VendorLock, VendorRow, ids_only, name,
};
use crate::{
    device::{CoreBudget, Percent},
    dialect::LockForm,
};

/// On a pod: `false` until the plugin has served it; as the plugin and HAMi v2.10 spell it.
pub const ASSIGNED: &str = "CAMBRICON_DSMLU_ASSIGNED";
/// The same as earlier releases of both spell it; each release of the plugin reads and writes one of the two.
pub const ASSIGNED_AS_OLDER_PLUGINS_SPELL_IT: &str = "CAMBRICON_DSMLU_ASSIGHED";
/// On a pod: `<card's number>_<percent>_<units of memory>`, of one share.
pub const PROFILE: &str = "CAMBRICON_DSMLU_PROFILE";
/// On a node: the lock, a bare time; the plugin takes it away.
pub const LOCK: &str = "cambricon.com/dsmlu.lock";

/// The names by default.
pub fn resources() -> FamilyResources {
    FamilyResources {
        count: "cambricon.com/vmlu".to_owned(),
        memory: Some("cambricon.com/mlu.smlu.vmemory".to_owned()),
        cores: Some("cambricon.com/mlu.smlu.vcore".to_owned()),
    }
}

/// MLUs asked for by these names; the plugin counts memory in 256 MiB.
pub fn row(resources: FamilyResources) -> VendorRow {
    VendorRow {
        name: name("MLU"),
        word: "MLU".to_owned(),
        resources,
        memory: MemoryColumn { unit: 256, sizes: Sizes::Any },
        cores: CoreColumn {
            default: Percent::WHOLE,
            least: Percent::NONE,
            several: Several::Alike,
            budget: CoreBudget::Registered,
        },
        containers: Containers::OneStatingBoth,
        keys: Keys::of("cambricon-mlu"),
        hints: ids_only("cambricon.com/use-gpuuuid", "cambricon.com/nouse-gpuuuid"),
        cards: Cards::Capacity { cores_of_a_card: 100, infix: "-cambricon-mlu-" },
        lock: VendorLock { key: LOCK, form: LockForm::Bare },
        dead: Dead::PassedOver,
        beside: BesideAssignment::Cambricon,
        runtime_class: None,
        name_variable: None,
    }
}
