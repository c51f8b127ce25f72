//! How the assignment of a pod that died before its allocation is taken back, where the plugin would take it for the next pod's.
//!
//! Such a plugin looks neither at the pod's phase nor whether it is being deleted (dcu-vgpu-device-plugin 10dd197
//! `internal/pkg/util/util.go` `GetPendingPod`). This file must not know which plugins do so; the row does.

use std::collections::BTreeMap;

use super::row::{Dead, VendorRow};
use crate::{device::Remains, dialect::hami::names, object::Pod};

const FAILED: &str = "failed";

/// Whether the plugin may serve another pod with what this one carries of this family.
pub(super) fn remains(row: &VendorRow, pod: &Pod) -> Remains {
    let annotation = |key: &str| pod.metadata.annotation(key);
    let own = [&row.keys.to_allocate, &row.keys.allocated].into_iter().any(|key| annotation(key).is_some());
    let waits = annotation(names::BIND_PHASE) == Some("allocating")
        && annotation(names::BIND_TIME).is_some()
        && annotation(names::NODE).is_some_and(|node| !node.is_empty());
    if row.dead == Dead::Taken && own && waits { Remains::Takeable } else { Remains::Harmless }
}

/// Nothing is left to allocate, and the phase is one that the plugin passes over.
pub(super) fn annotations(row: &VendorRow) -> BTreeMap<String, String> {
    if row.dead == Dead::PassedOver {
        return BTreeMap::new();
    }
    let annotations = [(row.keys.to_allocate.as_str(), ""), (names::BIND_PHASE, FAILED)];
    annotations.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// Whether a pod that says `failed` was withdrawn. A plugin that fails one leaves a separator at least (`EncodePodSingleDevice`).
pub(super) fn is_withdrawn(row: &VendorRow, pod: &Pod) -> bool {
    row.dead == Dead::Taken
        && pod.metadata.annotation(names::BIND_PHASE) == Some(FAILED)
        && pod.metadata.annotation(&row.keys.to_allocate) == Some("")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::dialect::vendor::{amd, ascend, biren, cambricon, hygon, iluvatar};

    fn carried(row: &VendorRow) -> BTreeMap<String, String> {
        let devices = format!("card-0,{},1000,10:;", row.word);
        let carried = [
            (names::NODE, "n1"),
            (names::BIND_TIME, "1700000000"),
            (names::BIND_PHASE, "allocating"),
            (&row.keys.to_allocate, &devices),
            (&row.keys.allocated, &devices),
        ];
        carried.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    fn pod(annotations: &BTreeMap<String, String>) -> Pod {
        serde_json::from_value(json!({"metadata": {"annotations": annotations}})).unwrap()
    }

    fn dcu() -> VendorRow {
        hygon::row(hygon::resources(), 1)
    }

    #[test]
    fn what_is_withdrawn_is_not_there_for_the_taking() {
        for row in [dcu(), iluvatar::row("MR-V100", iluvatar::resources("MR-V100"))] {
            let mut carried = carried(&row);
            assert_eq!(remains(&row, &pod(&carried)), Remains::Takeable, "{}", row.word);
            assert!(!is_withdrawn(&row, &pod(&carried)), "{}", row.word);
            carried.extend(annotations(&row));
            assert_eq!(remains(&row, &pod(&carried)), Remains::Harmless, "{}", row.word);
            assert!(is_withdrawn(&row, &pod(&carried)), "{}", row.word);
        }
    }

    #[test]
    fn a_pod_that_the_plugin_passes_over_is_left_alone() {
        for (key, value) in [
            (names::BIND_PHASE, Some("success")),
            (names::BIND_PHASE, Some("failed")),
            (names::BIND_PHASE, None),
            (names::BIND_TIME, None),
            (names::NODE, Some("")),
            (names::NODE, None),
        ] {
            let mut carried = carried(&dcu());
            carried.remove(key);
            carried.extend(value.map(|value| (key.to_owned(), value.to_owned())));
            assert_eq!(remains(&dcu(), &pod(&carried)), Remains::Harmless, "{key}={value:?}");
        }
    }

    #[test]
    fn a_pod_that_the_plugin_failed_is_not_withdrawn() {
        for left in ["card-0,DCU,1000,10:;", ";"] {
            let mut carried = carried(&dcu());
            carried.insert(names::BIND_PHASE.to_owned(), FAILED.to_owned());
            carried.insert(dcu().keys.to_allocate, left.to_owned());
            assert!(!is_withdrawn(&dcu(), &pod(&carried)), "{left}");
        }
    }

    #[test]
    fn pods_of_other_vendors_and_of_plugins_that_heed_the_lock_are_left_alone() {
        let chip = "Ascend910B3";
        let rows = [
            amd::row(amd::resources()),
            biren::row(biren::resources()),
            cambricon::row(cambricon::resources()),
            ascend::row(chip, ascend::resources(chip), 1, ascend::known(chip).unwrap()),
        ];
        for row in rows {
            let carried = pod(&carried(&row));
            assert_eq!(remains(&row, &carried), Remains::Harmless, "{}", row.word);
            assert_eq!(remains(&dcu(), &carried), Remains::Harmless, "{}", row.word);
            assert!(annotations(&row).is_empty(), "{}", row.word);
        }
    }
}
