//! HAMi's dialect for NVIDIA cards: `nvidia.com/gpu*` on pods, `hami.io/*` on pods and nodes.
//!
//! Source: Project-HAMi/HAMi v2.10.0 and the plugins back to v2.4, as each file names them.

pub(super) mod choice;
pub mod cordon;
mod handshake;
mod links;
pub mod metrics;
mod mig;
pub mod names;
pub(super) mod record;
pub(super) mod register;
pub(super) mod request;

use std::borrow::Cow;

use jiff::Timestamp;

use super::{
    Carried, Dialect, HintKeys, LockSpec, MissingCount, Record, SharingMode, Unreadable, answer, segments,
};
use crate::{
    device::{
        Answer, Assignment, Blend, CardPolicy, CoreBudget, Cores, CountedAmount, Dimension, Inventory, MiB,
        NodePolicy, PodRequest, Profile, SlicesOfCard, Tie,
    },
    object::{Node, Pod},
};

/// HAMi's settings, as its `nvidia:` section and its scheduler's flags have them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HamiSettings {
    /// The resource that counts shares.
    pub count: String,
    /// MiB of each share, times `memory_factor`.
    pub memory: String,
    /// Percent of a card's memory.
    pub memory_percentage: String,
    /// Percent of a card's compute.
    pub cores: String,
    /// The priority that is passed to the container's limiter.
    pub priority: String,
    /// Memory where none is asked for; 0: a whole card's.
    pub default_memory: MiB,
    /// Compute where none is asked for.
    pub default_cores: Cores,
    /// The count of a container that asks for memory or compute without one; 0: it is denied.
    pub default_count: u32,
    /// MiB for each unit of the memory resource.
    pub memory_factor: u32,
    /// Which node first, where the pod does not say.
    pub node_policy: NodePolicy,
    /// Which card first, where the pod does not say: of several, the first in which two cards differ.
    pub card_policies: Vec<CardPolicy>,
    /// The node lock.
    pub lock: LockSpec,
}

#[cfg(test)]
impl HamiSettings {
    /// Those that HAMi has where nothing is set.
    pub(crate) fn upstream() -> Self {
        use crate::dialect::LockForm;
        let expiry = jiff::SignedDuration::from_mins(5);
        Self {
            count: names::COUNT.to_owned(),
            memory: names::MEMORY.to_owned(),
            memory_percentage: names::MEMORY_PERCENTAGE.to_owned(),
            cores: names::CORES.to_owned(),
            priority: names::PRIORITY.to_owned(),
            default_memory: MiB::default(),
            default_cores: Cores::NONE,
            default_count: 1,
            memory_factor: 1,
            node_policy: NodePolicy::Binpack,
            card_policies: vec![CardPolicy::Spread],
            lock: LockSpec {
                key: names::LOCK.to_owned(),
                form: LockForm::Comma,
                expiry,
                need: crate::device::LockNeed::Always,
            },
        }
    }
}

/// HAMi's dialect.
#[derive(Clone, Debug)]
pub struct Hami {
    settings: HamiSettings,
    profile: Profile,
}

impl Hami {
    /// The name of this dialect.
    pub const NAME: &str = "hami-nvidia";

    const HINTS: HintKeys = HintKeys {
        use_model: Some(Cow::Borrowed(names::USE_MODEL)),
        no_use_model: Some(Cow::Borrowed(names::NO_USE_MODEL)),
        use_id: Cow::Borrowed(names::USE_ID),
        no_use_id: Cow::Borrowed(names::NO_USE_ID),
    };

    /// How its cards are shared.
    pub fn profile() -> Profile {
        Profile {
            name: Self::NAME.into(),
            blend: Blend::Even,
            tie: Tie::Highest,
            core_budget: CoreBudget::Registered,
            slices: SlicesOfCard::Several,
        }
    }

    /// HAMi's dialect with these settings.
    pub fn new(settings: HamiSettings) -> Self {
        Self { settings, profile: Self::profile() }
    }
}

impl Dialect for Hami {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn mode(&self) -> &SharingMode {
        &SharingMode::Hami
    }

    fn resources(&self) -> Vec<&str> {
        let HamiSettings { count, memory, memory_percentage, cores, priority, .. } = &self.settings;
        vec![count, memory, memory_percentage, cores, priority]
    }

    fn share_resources(&self) -> Vec<&str> {
        let HamiSettings { memory, memory_percentage, cores, .. } = &self.settings;
        vec![memory, memory_percentage, cores]
    }

    fn qualifies(&self, resource: &str) -> bool {
        resource == self.settings.priority
    }

    fn counted(&self) -> Vec<CountedAmount<'_>> {
        let HamiSettings { count, memory, cores, memory_factor, .. } = &self.settings;
        vec![
            CountedAmount { resource: count, dimension: Dimension::Cards, unit: 1 },
            CountedAmount { resource: memory, dimension: Dimension::Memory, unit: *memory_factor },
            CountedAmount { resource: cores, dimension: Dimension::Cores, unit: 1 },
        ]
    }

    fn hint_keys(&self) -> Option<&HintKeys> {
        Some(&Self::HINTS)
    }

    fn default_count(&self) -> Option<(&str, u32)> {
        (self.settings.default_count > 0)
            .then_some((self.settings.count.as_str(), self.settings.default_count))
    }

    fn inventory(&self, node: &Node) -> Result<Option<Inventory>, Unreadable> {
        register::read_linked(node)
    }

    fn expiry(&self, node: &Node) -> Option<Timestamp> {
        handshake::expiry(node)
    }

    fn request(&self, pod: &Pod, missing: MissingCount) -> Result<Option<PodRequest>, Vec<Unreadable>> {
        request::read(&self.settings, pod, missing)
    }

    fn assignment(&self, pod: &Pod) -> Result<Option<Carried>, Unreadable> {
        record::read(pod, &request::asks(&self.settings, pod))
    }

    fn record(&self, assignment: &Assignment, node: &str, now: Timestamp) -> Record {
        record::write(assignment, node, now, segments::NVIDIA)
    }

    fn answer(&self, pod: &Pod) -> Answer {
        answer::by_phase(pod, names::BIND_PHASE)
    }

    fn locks(&self) -> &[LockSpec] {
        std::slice::from_ref(&self.settings.lock)
    }
}
