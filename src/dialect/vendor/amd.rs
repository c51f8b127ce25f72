//! AMD's cards. Source: HAMi v2.10 `pkg/device/amd/device.go`.
//!
//! HAMi writes the product name where other vendors' shares have their word; its decoder takes any, and ours is the word. The plugin takes
//! a pod for served after one Allocate (Project-HAMi/amd-device-plugin `internal/pkg/utils/utils.go` `PodAllocationTrySuccess`).

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
        count: "amd.com/gpu".to_owned(),
        memory: Some("amd.com/gpumem".to_owned()),
        cores: Some("amd.com/gpucores".to_owned()),
    }
}

/// AMD's cards, asked for by these names; compute is asked for in percent and counted in compute units.
pub fn row(resources: FamilyResources) -> VendorRow {
    VendorRow {
        name: name("AMD"),
        word: "AMD".to_owned(),
        resources,
        memory: MemoryColumn { unit: 1, sizes: Sizes::Any },
        cores: CoreColumn {
            default: Percent::WHOLE,
            least: Percent::new(1),
            several: Several::Alike,
            budget: CoreBudget::Units,
        },
        containers: Containers::One,
        keys: Keys::of("amd"),
        hints: HintKeys {
            use_model: Some("amd.com/use-gputype".into()),
            no_use_model: Some("amd.com/nouse-gputype".into()),
            use_id: "amd.com/use-gpu-uuid".into(),
            no_use_id: "amd.com/nouse-gpu-uuid".into(),
        },
        cards: Cards::Registered { key: "hami.io/node-amd-register".to_owned(), cores: None },
        lock: HAMI_LOCK,
        dead: Dead::PassedOver,
        beside: BesideAssignment::Nothing,
        runtime_class: None,
        name_variable: None,
    }
}
