//! Volcano's older dialects, in which a pod is given cards by number: gpushare (`volcano.sh/gpu-memory`, a block of one card) and
//! gpu-number (`volcano.sh/gpu-number`, whole cards).
//!
//! Source: Volcano ed72c7c `pkg/scheduler/api/devices/nvidia/gpushare`, volcano-sh/devices 95b591b `pkg/plugin/nvidia`.

mod node;
mod record;
mod request;

use std::borrow::Cow;

use jiff::Timestamp;

use super::{
    CardNaming, Carried, Dialect, HintKeys, LockSpec, MissingCount, Record, SharingMode, Unreadable,
    volcano::names,
};
use crate::{
    device::{
        Answer, Assignment, Blend, CoreBudget, Cores, CountedAmount, Dimension, Inventory, PodRequest,
        Profile, SlicesOfCard, Tie,
    },
    object::{Node, Pod},
};

/// What a pod asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ShareUnit {
    /// Blocks of memory on one card.
    Memory,
    /// Whole cards.
    Cards,
}

/// Settings of both.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GpuShareSettings {
    /// What pods ask for.
    pub unit: ShareUnit,
    /// MiB of a block (the plugin's `--gpu-memory-factor`).
    pub memory_factor: u32,
    /// The node lock, where it is on; whole cards go without.
    pub lock: Option<LockSpec>,
}

/// Volcano's gpushare or gpu-number.
#[derive(Clone, Debug)]
pub struct GpuShare {
    settings: GpuShareSettings,
    profile: Profile,
}

impl GpuShare {
    /// The name of gpushare.
    pub const MEMORY: &str = "volcano-gpushare";
    /// The name of gpu-number.
    pub const CARDS: &str = "volcano-gpunumber";

    /// How the cards of a unit are shared.
    pub fn profile_of(unit: ShareUnit) -> Profile {
        let name = match unit {
            ShareUnit::Memory => Self::MEMORY,
            ShareUnit::Cards => Self::CARDS,
        };
        Profile {
            name: name.into(),
            blend: Blend::MemoryThenSlots,
            tie: Tie::Lowest,
            core_budget: CoreBudget::Fixed(Cores::WHOLE),
            slices: SlicesOfCard::One,
        }
    }

    /// Its cards are known by number alone, so that nothing can be chosen; the keys are those of virtual cards.
    const HINTS: HintKeys = HintKeys {
        use_model: Some(Cow::Borrowed(names::USE_MODEL)),
        no_use_model: Some(Cow::Borrowed(names::NO_USE_MODEL)),
        use_id: Cow::Borrowed(names::USE_ID),
        no_use_id: Cow::Borrowed(names::NO_USE_ID),
    };

    /// The dialect with these settings.
    pub fn new(settings: GpuShareSettings) -> Self {
        Self { profile: Self::profile_of(settings.unit), settings }
    }

    fn resource(&self) -> &'static str {
        match self.settings.unit {
            ShareUnit::Memory => names::GPU_MEMORY,
            ShareUnit::Cards => names::GPU_NUMBER,
        }
    }
}

impl Dialect for GpuShare {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn mode(&self) -> &SharingMode {
        match self.settings.unit {
            ShareUnit::Memory => &SharingMode::GpuShare,
            ShareUnit::Cards => &SharingMode::GpuNumber,
        }
    }

    fn resources(&self) -> Vec<&str> {
        vec![self.resource()]
    }

    fn share_resources(&self) -> Vec<&str> {
        match self.settings.unit {
            ShareUnit::Memory => vec![names::GPU_MEMORY],
            ShareUnit::Cards => vec![],
        }
    }

    fn counted(&self) -> Vec<CountedAmount<'_>> {
        let (dimension, unit) = match self.settings.unit {
            ShareUnit::Memory => (Dimension::Memory, self.settings.memory_factor),
            ShareUnit::Cards => (Dimension::Cards, 1),
        };
        vec![CountedAmount { resource: self.resource(), dimension, unit }]
    }

    fn hint_keys(&self) -> Option<&HintKeys> {
        Some(&Self::HINTS)
    }

    fn default_count(&self) -> Option<(&str, u32)> {
        None
    }

    fn inventory(&self, node: &Node) -> Result<Option<Inventory>, Unreadable> {
        node::read(&self.settings, node)
    }

    fn request(&self, pod: &Pod, _missing: MissingCount) -> Result<Option<PodRequest>, Vec<Unreadable>> {
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

    fn naming(&self) -> CardNaming {
        CardNaming::Number
    }

    fn locks(&self) -> &[LockSpec] {
        match self.settings.unit {
            ShareUnit::Memory => self.settings.lock.as_slice(),
            ShareUnit::Cards => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::device::Health;

    fn dialect(unit: ShareUnit) -> GpuShare {
        GpuShare::new(GpuShareSettings { unit, memory_factor: 2, lock: None })
    }

    fn node(capacity: &Value) -> Node {
        let annotations = json!({names::GPU_UNHEALTHY: "1"});
        serde_json::from_value(
            json!({"metadata": {"annotations": annotations}, "status": {"capacity": capacity}}),
        )
        .unwrap()
    }

    fn pod(limits: &[Value]) -> Pod {
        let containers: Vec<_> =
            limits.iter().map(|limits| json!({"resources": {"limits": limits}})).collect();
        serde_json::from_value(json!({"spec": {"containers": containers}})).unwrap()
    }

    #[test]
    fn cards_are_known_by_number_and_of_one_size() {
        let node = node(&json!({"volcano.sh/gpu-memory": "20000", "volcano.sh/gpu-number": "2"}));
        let inventory = dialect(ShareUnit::Memory).inventory(&node).unwrap().unwrap();
        let cards: Vec<_> =
            inventory.cards().iter().map(|card| (card.id.as_str(), card.memory.get(), card.health)).collect();
        assert_eq!(cards, [("0", 20_000, Health::Healthy), ("1", 20_000, Health::Unhealthy)]);
    }

    #[test]
    fn whole_cards_need_no_memory_on_the_node() {
        let capacity = json!({"volcano.sh/gpu-number": "4"});
        let inventory = dialect(ShareUnit::Cards).inventory(&node(&capacity)).unwrap().unwrap();
        assert!(inventory.cards().iter().all(|card| card.slots == 1));
        assert_eq!(dialect(ShareUnit::Memory).inventory(&node(&capacity)), Ok(None));
    }

    #[test]
    fn a_number_that_no_node_has_is_no_list_of_cards() {
        let capacity = json!({"volcano.sh/gpu-number": "4294967295", "volcano.sh/gpu-memory": "1"});
        let error = dialect(ShareUnit::Cards).inventory(&node(&capacity)).unwrap_err();
        let expected = "status.capacity[volcano.sh/gpu-number]: `4294967295` cards are more than the 1024 that a node may have";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_pod_that_the_plugin_would_fail_is_refused() {
        let one = json!({"volcano.sh/gpu-memory": "1000"});
        assert!(
            dialect(ShareUnit::Memory)
                .request(&pod(&[json!({}), one.clone()]), MissingCount::Refuse)
                .unwrap()
                .is_some()
        );
        assert!(
            dialect(ShareUnit::Memory)
                .request(&pod(&[one.clone(), one.clone()]), MissingCount::Refuse)
                .is_err()
        );
        assert!(
            dialect(ShareUnit::Cards)
                .request(&pod(std::slice::from_ref(&one)), MissingCount::Refuse)
                .unwrap()
                .is_none()
        );
        let init = json!({"spec": {"initContainers": [{"resources": {"limits": one}}], "containers": [{}]}});
        let refused = dialect(ShareUnit::Memory)
            .request(&serde_json::from_value(init).unwrap(), MissingCount::Refuse)
            .unwrap_err();
        assert_eq!(refused[0].field, "spec.initContainers[0]");
    }

    #[test]
    fn the_plugin_answers_by_one_mark() {
        let mut pod = pod(&[]);
        assert_eq!(dialect(ShareUnit::Memory).answer(&pod), Answer::Awaited);
        pod.metadata.annotations.get_or_insert_default().insert(names::GPU_ASSIGNED.into(), "true".into());
        assert_eq!(dialect(ShareUnit::Memory).answer(&pod), Answer::Succeeded);
    }
}
