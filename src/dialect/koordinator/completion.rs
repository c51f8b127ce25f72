//! What a container's request by Koordinator's names is in full: percent of cards as compute and memory, and the number of cards.
//!
//! Source: koordinator `pkg/webhook/pod/mutating/device_resource_spec.go`. It judges no request: a shape that is none stays as it is.

use std::{collections::BTreeMap, sync::Arc};

use super::{dimension::whole, names};
use crate::object::{Container, Pod, container::ResourceMap};

/// What is changed in one list of resources.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Completion {
    /// The resource that the others stand for.
    pub removed: Option<&'static str>,
    /// What is added, in percent or as a number of cards.
    pub added: BTreeMap<&'static str, u64>,
}

impl Completion {
    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.removed.is_none() && self.added.is_empty()
    }
}

/// What completes this list of resources. An amount that can't be read completes nothing, and what is stated is kept, be it 0.
pub fn of(resources: &ResourceMap) -> Completion {
    let amount =
        |name: &str| resources.get(name).and_then(|quantity| whole(quantity).ok()).filter(|&of| of > 0);
    let mut completion = Completion::default();
    if let Some(percent) = amount(names::GPU) {
        if [names::GPU_CORE, names::GPU_MEMORY_RATIO].iter().any(|name| resources.contains_key(*name)) {
            return completion;
        }
        completion.removed = Some(names::GPU);
        completion.added = [(names::GPU_CORE, percent), (names::GPU_MEMORY_RATIO, percent)].into();
    }
    let percent = |name: &str| completion.added.get(name).copied().or_else(|| amount(name));
    let (ratio, core) = (percent(names::GPU_MEMORY_RATIO), percent(names::GPU_CORE));
    let asks = ratio.or(core).or_else(|| amount(names::GPU_MEMORY)).is_some();
    if asks && !resources.contains_key(names::GPU_SHARED) {
        completion.added.insert(names::GPU_SHARED, cards(ratio.or(core)));
    }
    completion
}

/// The number of whole cards of this percentage; anything else is a share of one card.
fn cards(percent: Option<u64>) -> u64 {
    percent.filter(|percent| *percent > 100 && percent.is_multiple_of(100)).map_or(1, |percent| percent / 100)
}

/// Whether any container of the pod has a request that can be completed.
pub fn is_due(pod: &Pod) -> bool {
    let completes = |container: &Arc<Container>| {
        let resources = &container.resources;
        [&resources.limits, &resources.requests].into_iter().flatten().any(|section| !of(section).is_empty())
    };
    pod.spec.init_containers.iter().chain(&pod.spec.containers).any(completes)
}

/// Whether any container asks for units of Ascend's cards.
pub fn asks_for_units(pod: &Pod) -> bool {
    let asks = |container: &Arc<Container>| container.resources.names().any(|name| name == names::NPU_CORE);
    pod.spec.init_containers.iter().chain(&pod.spec.containers).any(asks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Quantity;

    fn completed(of_resources: &[(&str, &str)]) -> Completion {
        let resources =
            of_resources.iter().map(|(name, amount)| ((*name).to_owned(), Quantity::from(*amount)));
        of(&resources.collect())
    }

    #[test]
    fn a_percentage_of_cards_is_compute_memory_and_a_number_of_cards() {
        let full = |percent, cards| Completion {
            removed: Some(names::GPU),
            added: [
                (names::GPU_CORE, percent),
                (names::GPU_MEMORY_RATIO, percent),
                (names::GPU_SHARED, cards),
            ]
            .into(),
        };
        assert_eq!(completed(&[(names::GPU, "50")]), full(50, 1));
        assert_eq!(completed(&[(names::GPU, "100")]), full(100, 1));
        assert_eq!(completed(&[(names::GPU, "300"), ("cpu", "1")]), full(300, 3));
    }

    #[test]
    fn a_number_of_cards_that_is_stated_is_kept() {
        let stated = [(names::GPU_SHARED, "4"), (names::GPU_MEMORY_RATIO, "200")];
        assert!(completed(&stated).is_empty());
        assert_eq!(completed(&stated[1..]).added, [(names::GPU_SHARED, 2)].into());
        assert_eq!(completed(&[(names::GPU_MEMORY, "8Gi")]).added, [(names::GPU_SHARED, 1)].into());
    }

    #[test]
    fn nothing_is_made_of_nothing_of_what_is_no_number_and_of_what_is_stated_twice() {
        for none in [
            &[(names::GPU, "50"), (names::GPU_MEMORY_RATIO, "0")][..],
            &[(names::GPU, "0")],
            &[(names::GPU, "many")],
            &[(names::RDMA, "100")],
            &[("cpu", "2")],
        ] {
            assert!(completed(none).is_empty(), "{none:?}");
        }
    }
}
