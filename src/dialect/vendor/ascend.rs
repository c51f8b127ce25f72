//! Huawei's Ascend, a family a chip. Source: HAMi v2.10 `pkg/device/ascend/device.go`, `charts/hami` (`vnpus:`);
//! Project-HAMi/ascend-device-plugin.
//!
//! 910C, whose chips are given in pairs, chooses in its own way and is not here.

use super::row::{
    BesideAssignment, Cards, Containers, CoreColumn, Dead, FamilyResources, HAMI_LOCK, Keys, MemoryColumn,
    Several, Sizes, SliceTemplate, Templates, VendorRow, ids_only, name,
};
use crate::device::{CoreBudget, MiB, Percent};

/// The word of the chip that is given in pairs.
pub const IN_PAIRS: &str = "Ascend910C";

/// On a pod: [`SOFTWARE`] asks for a share in software, of any size.
pub const MODE: &str = "huawei.com/vnpu-mode";
/// The value of [`MODE`].
pub const SOFTWARE: &str = "hami-core";
/// On a node: `true` where the plugin shares in software, `false` where it cuts by templates.
pub const NODE_SPLITS_IN_SOFTWARE: &str = "hami-vnpu-core";
/// On a pod: when it was assigned, Unix seconds.
pub const TIME: &str = "predicate-time";

/// The chip of this word and what its driver cuts it into, as HAMi's chart lists it.
pub fn known(word: &str) -> Option<Templates> {
    let (allocatable, capacity, sizes): (u64, u64, &[(&str, u64)]) = match word {
        "Ascend910A" => {
            (32768, 32768, &[("vir02", 2184), ("vir04", 4369), ("vir08", 8738), ("vir16", 17476)])
        }
        "Ascend910B2" => {
            (65536, 65536, &[("vir03_1c_8g", 8192), ("vir06_1c_16g", 16384), ("vir12_3c_32g", 32768)])
        }
        "Ascend910B3" | "Ascend910B4-1" => {
            (65536, 65536, &[("vir05_1c_16g", 16384), ("vir10_3c_32g", 32768)])
        }
        "Ascend910B4" => (32768, 32768, &[("vir05_1c_8g", 8192), ("vir10_3c_16g", 16384)]),
        "Ascend310P" => (21527, 24576, &[("vir01", 3072), ("vir02", 6144), ("vir04", 12288)]),
        _ => return None,
    };
    let template =
        |&(name, memory): &(&str, u64)| SliceTemplate { name: name.to_owned(), memory: MiB::new(memory) };
    Some(Templates {
        sizes: sizes.iter().map(template).collect(),
        allocatable: MiB::new(allocatable),
        capacity: MiB::new(capacity),
        ..Templates::default()
    })
}

/// The words of the chips that HAMi's chart lists and whose cards are chosen by the common walk.
pub const WORDS: [&str; 6] =
    ["Ascend910A", "Ascend910B2", "Ascend910B3", "Ascend910B4-1", "Ascend910B4", "Ascend310P"];

/// The names by default of the chip of this word.
pub fn resources(word: &str) -> FamilyResources {
    FamilyResources {
        count: format!("huawei.com/{word}"),
        memory: Some(format!("huawei.com/{word}-memory")),
        cores: Some(format!("huawei.com/{word}-core")),
    }
}

/// Chips of this word, `factor` MiB a unit of memory.
pub fn row(word: &str, resources: FamilyResources, factor: u32, templates: Templates) -> VendorRow {
    VendorRow {
        name: name(word),
        word: word.to_owned(),
        resources,
        memory: MemoryColumn { unit: factor, sizes: Sizes::Templates(templates) },
        cores: CoreColumn {
            default: Percent::NONE,
            least: Percent::NONE,
            several: Several::WholeOnly,
            budget: CoreBudget::Registered,
        },
        containers: Containers::Any,
        keys: Keys::of(word),
        hints: ids_only(format!("hami.io/use-{word}-uuid"), format!("hami.io/no-use-{word}-uuid")),
        cards: Cards::Registered { key: format!("hami.io/node-register-{word}"), cores: None },
        lock: HAMI_LOCK,
        dead: Dead::PassedOver,
        beside: BesideAssignment::Ascend { key: format!("huawei.com/{word}") },
        runtime_class: None,
        name_variable: None,
    }
}
