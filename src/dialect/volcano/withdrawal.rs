//! How the assignment of a pod that died before its allocation is taken back.
//!
//! The plugin serves the pod with the smallest time on its node whose count is right, whatever the pod's phase and whether it is being
//! deleted (volcano-vgpu-device-plugin `pkg/util/util.go` `getOldestPod`). Plugins up to v1.11 do not look at the count either.

use std::collections::BTreeMap;

use super::names;
use crate::{device::Remains, object::Pod};

/// The time of a pod that the plugin is done with: the largest that it can read.
const CLOSED: u64 = u64::MAX;

/// Whether the plugin is done with the pod. A time that it can't read is the largest to it as well.
pub(super) fn is_closed(pod: &Pod) -> bool {
    let time = pod.metadata.annotation(names::TIME).map(str::parse::<u64>);
    time.is_some_and(|time| time.unwrap_or(CLOSED) == CLOSED)
}

/// Whether the plugin may serve another pod with what this one carries.
pub(super) fn remains(pod: &Pod) -> Remains {
    let named = [names::NODE, names::TIME].map(|key| pod.metadata.annotation(key));
    let waits = named.iter().all(|value| value.is_some_and(|value| !value.is_empty()));
    if waits && !is_closed(pod) { Remains::Takeable } else { Remains::Harmless }
}

/// Nothing is left to allocate, and every other pod goes first.
pub(super) fn annotations() -> BTreeMap<String, String> {
    let annotations = [(names::TO_ALLOCATE, String::new()), (names::TIME, CLOSED.to_string())];
    annotations.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(annotations: &BTreeMap<String, String>) -> Pod {
        serde_json::from_value(json!({"metadata": {"annotations": annotations}})).unwrap()
    }

    #[test]
    fn what_is_withdrawn_is_not_there_for_the_taking() {
        let carried =
            [(names::NODE, "n1"), (names::TIME, "1700000000"), (names::TO_ALLOCATE, "GPU-a,NVIDIA,1,0:")];
        let mut annotations: BTreeMap<_, _> =
            carried.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        assert_eq!(remains(&pod(&annotations)), Remains::Takeable);
        annotations.extend(super::annotations());
        assert_eq!(remains(&pod(&annotations)), Remains::Harmless);
        assert!(is_closed(&pod(&annotations)));
    }

    #[test]
    fn a_pod_without_node_or_with_an_unreadable_time_is_not_taken() {
        for (key, value) in [(names::NODE, ""), (names::TIME, "soon"), (names::TIME, "")] {
            let mut annotations = BTreeMap::from([(names::NODE.to_owned(), "n1".to_owned())]);
            annotations.insert(names::TIME.to_owned(), "1".to_owned());
            annotations.insert(key.to_owned(), value.to_owned());
            assert_eq!(remains(&pod(&annotations)), Remains::Harmless, "{key}={value}");
        }
        assert!(!is_closed(&pod(&BTreeMap::new())), "one that carries nothing is still to come");
    }
}
