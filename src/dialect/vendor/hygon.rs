//! Hygon's DCU. Source: HAMi v2.10 `pkg/device/hygon/device.go`.
//!
//! The plugin heeds no lock: it serves the first pod of the cluster that names its node, says `allocating` and has a time of binding, be it
//! dead (Project-HAMi/dcu-vgpu-device-plugin 10dd197 `internal/pkg/util/util.go` `GetPendingPod`).

use super::row::{
    BesideAssignment, Cards, Containers, CoreColumn, Dead, FamilyResources, HAMI_LOCK, Keys, MemoryColumn,
    Several, Sizes, VendorRow, name,
};
use crate::{
    device::{CoreBudget, Percent},
    dialect::HintKeys,
};

/// The names by default.
pub fn resources() -> FamilyResources {
    FamilyResources {
        count: "hygon.com/dcunum".to_owned(),
        memory: Some("hygon.com/dcumem".to_owned()),
        cores: Some("hygon.com/dcucores".to_owned()),
    }
}

/// DCUs asked for by these names, `factor` MiB a unit of memory.
pub fn row(resources: FamilyResources, factor: u32) -> VendorRow {
    VendorRow {
        name: name("DCU"),
        word: "DCU".to_owned(),
        resources,
        memory: MemoryColumn { unit: factor, sizes: Sizes::Any },
        cores: CoreColumn {
            default: Percent::WHOLE,
            least: Percent::NONE,
            several: Several::Alike,
            budget: CoreBudget::Registered,
        },
        containers: Containers::Any,
        keys: Keys::of("dcu"),
        hints: HintKeys {
            use_model: Some("hygon.com/use-dcutype".into()),
            no_use_model: Some("hygon.com/nouse-dcutype".into()),
            use_id: "hygon.com/use-gpuuuid".into(),
            no_use_id: "hygon.com/nouse-gpuuuid".into(),
        },
        cards: Cards::Registered { key: "hami.io/node-dcu-register".to_owned(), cores: None },
        lock: HAMI_LOCK,
        dead: Dead::Taken,
        beside: BesideAssignment::Nothing,
        runtime_class: None,
        name_variable: None,
    }
}
