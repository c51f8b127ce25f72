//! What a card in MIG mode can be cut into.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How a card may be cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cut {
    /// Not at all.
    #[default]
    Whole,
    /// Slice by slice, as NVML tells HAMi's plugin.
    Placed(Vec<Profile>),
    /// All at once: the number of slices of each group in the configuration of Volcano's plugin.
    Grouped(BTreeMap<String, u32>),
}

/// One kind of slice, as HAMi's plugin registers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Profile {
    /// As `1g.5gb`.
    pub name: String,
    /// MiB.
    #[serde(rename = "memoryMB")]
    pub memory: u64,
    /// Percent of the card, rounded up.
    pub core: u64,
    /// Compute slices.
    pub slice_count: u32,
    /// Where it may lie.
    pub placements: Vec<Place>,
}

/// Where a slice lies, in memory slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The first one.
    #[serde(default)]
    pub start: u32,
    /// How many.
    pub size: u32,
}

impl Place {
    /// Whether the two have a memory slice in common.
    pub(super) fn overlaps(self, other: Place) -> bool {
        self.start < other.start + other.size && other.start < self.start + self.size
    }
}

impl Cut {
    /// What HAMi's plugin registers of an A100 of 40 GB, its media extensions left out: memory and places as NVML has them, compute as the
    /// slice's part of 98 multiprocessors, of which each of the 7 compute slices has 14, rounded up (v2.10
    /// `nvinternal/plugin/register.go` `discoverMigProfiles`).
    pub fn a100_40gb() -> Self {
        let profile = |name: &str, memory, core, slice_count, size, starts: &[u32]| Profile {
            name: name.to_owned(),
            memory,
            core,
            slice_count,
            placements: starts.iter().map(|&start| Place { start, size }).collect(),
        };
        Cut::Placed(vec![
            profile("1g.5gb", 4864, 15, 1, 1, &[0, 1, 2, 3, 4, 5, 6]),
            profile("2g.10gb", 9856, 29, 2, 2, &[0, 2, 4]),
            profile("3g.20gb", 19_968, 43, 3, 4, &[0, 4]),
            profile("4g.20gb", 19_968, 58, 4, 4, &[0]),
            profile("7g.40gb", 40_192, 100, 7, 8, &[0]),
        ])
    }
}
