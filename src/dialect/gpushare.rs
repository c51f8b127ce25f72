//! Volcano's older dialects, in which a pod is given cards by number: gpushare (`volcano.sh/gpu-memory`, a block of one card) and
//! gpu-number (`volcano.sh/gpu-number`, whole cards).
//!
//! Source: Volcano ed72c7c `pkg/scheduler/api/devices/nvidia/gpushare`, volcano-sh/devices 95b591b `pkg/plugin/nvidia`.

mod node;
mod record;
mod request;

use jiff::Timestamp;

use super::{Carried, Dialect, HintKeys, LockSpec, Record, SharingMode, Unreadable, volcano::names};
use crate::{
    device::{
        Answer, Assignment, Blend, CoreBudget, Inventory, Percent, PodRequest, Profile, ProfileName, Tie,
    },
    object::{Node, Pod},
};

/// What a pod asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unit {
    /// Blocks of memory on one card.
    Memory,
    /// Whole cards.
    Cards,
}

/// Settings of both.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    /// What pods ask for.
    pub unit: Unit,
    /// MiB of a block (the plugin's `--gpu-memory-factor`).
    pub memory_factor: u32,
    /// The node lock, where it is on; whole cards go without.
    pub lock: Option<LockSpec>,
}

/// Volcano's gpushare or gpu-number.
#[derive(Clone, Debug)]
pub struct GpuShare {
    settings: Settings,
}

impl GpuShare {
    /// The name of gpushare.
    pub const MEMORY: ProfileName = ProfileName("volcano-gpushare");
    /// The name of gpu-number.
    pub const CARDS: ProfileName = ProfileName("volcano-gpunumber");

    const fn profile_of(name: ProfileName) -> Profile {
        Profile {
            name,
            blend: Blend::MemoryThenSlots,
            tie: Tie::Lowest,
            core_budget: CoreBudget::Fixed(Percent::WHOLE),
        }
    }

    const MEMORY_PROFILE: Profile = Self::profile_of(Self::MEMORY);
    const CARDS_PROFILE: Profile = Self::profile_of(Self::CARDS);

    /// Its cards are known by number alone, so that nothing can be chosen; the keys are those of virtual cards.
    const HINTS: HintKeys = HintKeys {
        use_model: names::USE_MODEL,
        no_use_model: names::NO_USE_MODEL,
        use_id: names::USE_ID,
        no_use_id: names::NO_USE_ID,
    };

    /// The dialect with these settings.
    pub fn new(settings: Settings) -> Self {
        Self { settings }
    }

    fn resource(&self) -> &'static str {
        match self.settings.unit {
            Unit::Memory => names::GPU_MEMORY,
            Unit::Cards => names::GPU_NUMBER,
        }
    }
}

impl Dialect for GpuShare {
    fn profile(&self) -> &Profile {
        match self.settings.unit {
            Unit::Memory => &Self::MEMORY_PROFILE,
            Unit::Cards => &Self::CARDS_PROFILE,
        }
    }

    fn mode(&self) -> SharingMode {
        match self.settings.unit {
            Unit::Memory => SharingMode::GpuShare,
            Unit::Cards => SharingMode::GpuNumber,
        }
    }

    fn resources(&self) -> Vec<&str> {
        vec![self.resource()]
    }

    fn share_resources(&self) -> Vec<&str> {
        match self.settings.unit {
            Unit::Memory => vec![names::GPU_MEMORY],
            Unit::Cards => vec![],
        }
    }

    fn hint_keys(&self) -> &HintKeys {
        &Self::HINTS
    }

    fn default_count(&self) -> Option<(&str, u32)> {
        None
    }

    fn inventory(&self, node: &Node) -> Result<Option<Inventory>, Unreadable> {
        node::read(&self.settings, node)
    }

    fn request(&self, pod: &Pod) -> Result<Option<PodRequest>, Vec<Unreadable>> {
        request::read(&self.settings, self.resource(), pod)
    }

    fn assignment(&self, pod: &Pod) -> Result<Option<Carried>, Unreadable> {
        record::read(&self.settings, self.resource(), pod)
    }

    fn record(&self, assignment: &Assignment, _node: &str, now: Timestamp) -> Record {
        record::write(assignment, now)
    }

    fn answer(&self, pod: &Pod) -> Answer {
        match pod.metadata.annotation(names::GPU_ASSIGNED) {
            None | Some("false") => Answer::Awaited,
            Some(_) => Answer::Succeeded,
        }
    }

    fn lock(&self) -> Option<&LockSpec> {
        match self.settings.unit {
            Unit::Memory => self.settings.lock.as_ref(),
            Unit::Cards => None,
        }
    }
}
