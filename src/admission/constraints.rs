//! Constraints on a pod's place that Berth does not serve: the pod would wait as long as it has them.

use super::{
    findings::Findings,
    rules,
    scheduler_name::{self, Owner},
    settings::Settings,
};
use crate::object::Pod;

/// Warns of each such field of a pod that is Berth's to place; one that is refused is not placed anyway.
pub fn judge(findings: &mut Findings, pod: &Pod, settings: &Settings) {
    if scheduler_name::owner(pod, settings) == Owner::Other || !findings.violations().is_empty() {
        return;
    }
    for field in pod.spec.unserved_constraints() {
        let message = "Berth does not serve this constraint: the pod stays Pending until it is created again without it";
        findings.warn(rules::UNSERVED, field, message);
    }
}
