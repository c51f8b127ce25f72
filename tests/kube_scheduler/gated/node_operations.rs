//! Devices for which kubelet need not ask their driver (KEP-5945), on nodes whose kubelet knows of that and on others.

use serde_json::{Value, json};

use crate::kube_scheduler::{
    dice::Dice,
    gated::{held, of_kind, use_held},
    world::Case,
};

/// What need not be done.
const SKIPPED: &[&[&str]] =
    &[&["*"], &["NodeUnprepareResources"], &["NodePrepareResources", "NodeUnprepareResources"]];

/// Puts all of it into the cluster.
pub(super) fn put_into(case: &mut Case) {
    let mut dice = Dice::new(case.seed ^ 0x6f70_7469_6f6e);
    for slice in of_kind(case, "ResourceSlice").filter(|slice| !slice["spec"]["devices"].is_null()) {
        if dice.in_thousand(500) {
            slice["spec"]["skipNodeOperations"] = json!(dice.one_of(SKIPPED));
        }
    }
    for node in of_kind(case, "Node") {
        if dice.in_thousand(500) {
            node["status"]["declaredFeatures"] = json!(["DRAOptionalNodeOperations"]);
        }
    }
    for claim in of_kind(case, "ResourceClaim") {
        let results = &mut claim["status"]["allocation"]["devices"]["results"];
        if let Some(results) = results.as_array_mut().filter(|_| dice.in_thousand(500)) {
            for result in results.iter_mut() {
                result["skipNodeOperations"] = json!(["*"]);
            }
        }
    }
    let held = held(case, &mut dice);
    let waiting: Vec<String> = case.waiting.keys().cloned().collect();
    for pod in of_kind(case, "Pod") {
        let is_waiting =
            |name: &Value| name.as_str().is_some_and(|name| waiting.iter().any(|one| one == name));
        if is_waiting(&pod["metadata"]["name"]) {
            use_held(pod, &held, &mut dice);
        }
    }
}
