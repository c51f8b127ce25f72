//! Constraints on a pod's place that Berth does not serve. Such a pod would stay Pending.

use super::{
    findings::Findings,
    rules,
    scheduler_name::{self, Owner},
    settings::Settings,
};
use crate::object::Pod;

/// Warns of each such field of a pod that Berth places; a pod that is denied gets no warning.
pub fn judge(findings: &mut Findings, pod: &Pod, settings: &Settings) {
    if scheduler_name::owner(pod, settings) == Owner::Other || !findings.violations().is_empty() {
        return;
    }
    for field in pod.spec.unserved_constraints() {
        let message = "Berth does not serve this constraint: the pod stays Pending until it is created again without it";
        findings.warn(rules::UNSERVED, field, message);
    }
}
