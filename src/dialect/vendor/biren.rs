//! Biren's cards, given whole or as the instances that their plugin registers. Source: HAMi v2.10 `pkg/device/biren/device.go`.

use super::row::{
    BesideAssignment, Cards, Containers, CoreColumn, Dead, FamilyResources, HAMI_LOCK, Keys, MemoryColumn,
    Several, Sizes, VendorRow, ids_only, name,
};
use crate::device::{CoreBudget, Cores, Percent};

/// The name by default.
pub fn resources() -> FamilyResources {
    FamilyResources { count: "birentech.com/gpu".to_owned(), memory: None, cores: None }
}

/// Biren's cards, asked for by this name.
pub fn row(resources: FamilyResources) -> VendorRow {
    VendorRow {
        name: name("Biren"),
        word: "Biren".to_owned(),
        resources,
        memory: MemoryColumn { unit: 1, sizes: Sizes::Uncounted },
        cores: CoreColumn {
            default: Percent::NONE,
            least: Percent::NONE,
            several: Several::Alike,
            budget: CoreBudget::Registered,
        },
        containers: Containers::Any,
        keys: Keys::of("Biren"),
        hints: ids_only("birentech.com/use-gpuuuid", "birentech.com/nouse-gpuuuid"),
        cards: Cards::Registered { key: "hami.io/node-biren-register".to_owned(), cores: Some(Cores::WHOLE) },
        lock: HAMI_LOCK,
        dead: Dead::PassedOver,
        beside: BesideAssignment::Nothing,
        runtime_class: None,
        name_variable: None,
    }
}
