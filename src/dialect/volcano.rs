//! Volcano's dialect for vGPUs: `volcano.sh/vgpu-*` on pods and nodes.
//!
//! Source: volcano-sh/volcano ed72c7c `pkg/scheduler/api/devices/nvidia/vgpu`, Project-HAMi/volcano-vgpu-device-plugin 4fb76ba.

mod geometry;
mod mark;
pub mod names;
mod record;
mod register;
mod request;
mod withdrawal;

use std::{borrow::Cow, collections::BTreeMap};

use jiff::Timestamp;

pub use geometry::ModelGeometries;
pub use mark::Rule;

use super::{Carried, Dialect, HintKeys, LockSpec, MissingCount, Record, SharingMode, Unreadable, answer};
use crate::{
    device::{
        Answer, Assignment, Blend, CardPolicy, CoreBudget, Cores, CountedAmount, Dimension, Inventory,
        NodePolicy, PodRequest, Profile, Remains, SlicesOfCard, Tie,
    },
    object::{Node, Pod},
};

/// Volcano's settings for vGPUs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VolcanoSettings {
    /// MiB for each unit of `volcano.sh/vgpu-memory` and of a card's registered memory.
    pub memory_factor: u32,
    /// Which card first.
    pub card_policy: CardPolicy,
    /// Which node first.
    pub node_policy: NodePolicy,
    /// How cards may be cut, by model.
    pub geometries: Vec<ModelGeometries>,
    /// Pods that fall under one of these share no card with others of the same.
    pub exclusive_rules: Vec<Rule>,
    /// The node lock, where it is on.
    pub lock: Option<LockSpec>,
}

/// Volcano's dialect for vGPUs.
#[derive(Clone, Debug)]
pub struct Volcano {
    settings: VolcanoSettings,
    profile: Profile,
}

impl Volcano {
    /// The name of this dialect.
    pub const NAME: &str = "volcano-vgpu";

    const HINTS: HintKeys = HintKeys {
        use_model: Some(Cow::Borrowed(names::USE_MODEL)),
        no_use_model: Some(Cow::Borrowed(names::NO_USE_MODEL)),
        use_id: Cow::Borrowed(names::USE_ID),
        no_use_id: Cow::Borrowed(names::NO_USE_ID),
    };

    /// How its cards are shared. Volcano's scheduler passes over the second entry of a pod on a card (`vgpu/mig.go` `AddPod`), so it
    /// would give away a second slice of that pod once more.
    pub fn profile() -> Profile {
        Profile {
            name: Self::NAME.into(),
            blend: Blend::MemoryThenSlots,
            tie: Tie::Lowest,
            core_budget: CoreBudget::Fixed(Cores::WHOLE),
            slices: SlicesOfCard::One,
        }
    }

    /// Volcano's dialect with these settings.
    pub fn new(settings: VolcanoSettings) -> Self {
        Self { settings, profile: Self::profile() }
    }
}

impl Dialect for Volcano {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn mode(&self) -> &SharingMode {
        &SharingMode::Vgpu
    }

    fn resources(&self) -> Vec<&str> {
        names::RESOURCES.to_vec()
    }

    fn share_resources(&self) -> Vec<&str> {
        vec![names::MEMORY, names::MEMORY_PERCENTAGE, names::CORES]
    }

    fn counted(&self) -> Vec<CountedAmount<'_>> {
        let unit = self.settings.memory_factor;
        vec![
            CountedAmount { resource: names::COUNT, dimension: Dimension::Cards, unit: 1 },
            CountedAmount { resource: names::MEMORY, dimension: Dimension::Memory, unit },
            CountedAmount { resource: names::CORES, dimension: Dimension::Cores, unit: 1 },
        ]
    }

    fn hint_keys(&self) -> Option<&HintKeys> {
        Some(&Self::HINTS)
    }

    fn default_count(&self) -> Option<(&str, u32)> {
        Some((names::COUNT, request::DEFAULT_COUNT))
    }

    fn inventory(&self, node: &Node) -> Result<Option<Inventory>, Unreadable> {
        register::read(node, &self.settings)
    }

    fn request(&self, pod: &Pod, missing: MissingCount) -> Result<Option<PodRequest>, Vec<Unreadable>> {
        request::read(&self.settings, pod, missing)
    }

    fn assignment(&self, pod: &Pod) -> Result<Option<Carried>, Unreadable> {
        record::read(pod, &request::asks(&self.settings, pod), &self.settings)
    }

    fn record(&self, assignment: &Assignment, node: &str, now: Timestamp) -> Record {
        record::write(assignment, node, now, self.settings.memory_factor)
    }

    fn answer(&self, pod: &Pod) -> Answer {
        match answer::by_phase(pod, names::BIND_PHASE) {
            Answer::Awaited if withdrawal::is_closed(pod) => Answer::Withdrawn,
            answer => answer,
        }
    }

    fn remains(&self, pod: &Pod) -> Remains {
        withdrawal::remains(pod)
    }

    fn withdrawal(&self) -> BTreeMap<String, String> {
        withdrawal::annotations()
    }

    fn locks(&self) -> &[LockSpec] {
        self.settings.lock.as_slice()
    }
}
