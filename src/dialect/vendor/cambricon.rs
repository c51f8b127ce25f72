//! Cambricon's MLU, shared by its own plugin in the mode `dynamic-smlu`. Source: HAMi v2.10 `pkg/device/cambricon/device.go`;
//! Cambricon/cambricon-k8s-device-plugin `device-plugin/pkg/mlu/const.go`.

use super::row::{
    Beside, Cards, CoreColumn, Keys, Lock, MemoryColumn, Resources, Row, Several, Sizes, ids_only, name,
};
use crate::{
    device::{CoreBudget, Percent},
    dialect::LockForm,
};

/// On a pod: `false` until the plugin has served it; as HAMi v2.10 spells it.
pub const ASSIGNED: &str = "CAMBRICON_DSMLU_ASSIGNED";
/// The same as the plugin spells it, which reads and writes no other.
pub const ASSIGNED_AS_THE_PLUGIN_SPELLS_IT: &str = "CAMBRICON_DSMLU_ASSIGHED";
/// On a pod: `<card's number>_<percent>_<units of memory>`, of one share.
pub const PROFILE: &str = "CAMBRICON_DSMLU_PROFILE";
/// On a node: the lock, a bare time; the plugin takes it away.
pub const LOCK: &str = "cambricon.com/dsmlu.lock";

/// The names by default.
pub fn resources() -> Resources {
    Resources {
        count: "cambricon.com/vmlu".to_owned(),
        memory: Some("cambricon.com/mlu.smlu.vmemory".to_owned()),
        cores: Some("cambricon.com/mlu.smlu.vcore".to_owned()),
    }
}

/// MLUs asked for by these names; the plugin counts memory in 256 MiB.
pub fn row(resources: Resources) -> Row {
    Row {
        name: name("MLU"),
        word: "MLU".to_owned(),
        resources,
        memory: MemoryColumn { unit: 256, sizes: Sizes::Any },
        cores: CoreColumn {
            default: Percent::WHOLE,
            least: Percent::NONE,
            several: Several::Unserved,
            budget: CoreBudget::Registered,
        },
        keys: Keys::of("cambricon-mlu"),
        hints: ids_only("cambricon.com/use-gpuuuid", "cambricon.com/nouse-gpuuuid"),
        cards: Cards::Capacity { cores_of_a_card: 100, infix: "-cambricon-mlu-" },
        lock: Lock { key: LOCK, form: LockForm::Bare },
        beside: Beside::Cambricon,
        runtime_class: None,
        name_variable: None,
    }
}
