//! Iluvatar's cards, a family a chip. Source: HAMi v2.10 `pkg/device/iluvatar/device.go`, `charts/hami` (`iluvatars:`).
//!
//! The plugin is not published. HAMi's own heeded no lock yet when Iluvatar's cards came (Project-HAMi/HAMi pull request 451 is later), so
//! this one is taken to serve dead pods as Hygon's does.

use super::row::{
    BesideAssignment, Cards, Containers, CoreColumn, Dead, FamilyResources, HAMI_LOCK, Keys, MemoryColumn,
    Several, Sizes, VendorRow, ids_only, name,
};
use crate::device::{CoreBudget, Percent};

/// The words of the chips that HAMi's chart lists.
pub const WORDS: [&str; 4] = ["MR-V100", "MR-V50", "BI-V150", "BI-V100"];

/// In a container's environment: its name, as Iluvatar's runtime spells the variable.
pub const NAME_VARIABLE: &str = "SOL_CONTINER_NAME";

/// The names by default of the chip of this word.
pub fn resources(word: &str) -> FamilyResources {
    FamilyResources {
        count: format!("iluvatar.ai/{word}-vgpu"),
        memory: Some(format!("iluvatar.ai/{word}.vMem")),
        cores: Some(format!("iluvatar.ai/{word}.vCore")),
    }
}

/// Chips of this word; the plugin counts memory in 256 MiB.
pub fn row(word: &str, resources: FamilyResources) -> VendorRow {
    VendorRow {
        name: name(word),
        word: word.to_owned(),
        resources,
        memory: MemoryColumn { unit: 256, sizes: Sizes::Any },
        cores: CoreColumn {
            default: Percent::NONE,
            least: Percent::NONE,
            several: Several::AllCores,
            budget: CoreBudget::Registered,
        },
        containers: Containers::Any,
        keys: Keys::of(word),
        hints: ids_only(format!("hami.io/use-{word}-uuid"), format!("hami.io/no-use-{word}-uuid")),
        cards: Cards::Registered { key: format!("hami.io/node-{word}-register"), cores: None },
        lock: HAMI_LOCK,
        dead: Dead::Taken,
        beside: BesideAssignment::Nothing,
        runtime_class: None,
        name_variable: Some(NAME_VARIABLE),
    }
}
