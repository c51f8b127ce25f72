//! Quantities that can't be read exactly are denied. The parser is that of the dialects, which scheduling uses too.
//!
//! A limit and a request of a share must be equal.

use super::{facts::Facts, findings::ReviewFindings, rules, shares::PodShares};
use crate::object::Pod;

/// Judges the quantities of a pod.
pub fn judge(findings: &mut ReviewFindings, pod: &Pod, shares: &PodShares<'_>, facts: &Facts) {
    for trouble in shares.unread() {
        findings.deny(rules::of_problem(trouble.problem), &trouble.field, &trouble.message);
    }
    for (path, container) in pod.containers() {
        let (Some(limits), Some(requests)) = (&container.resources.limits, &container.resources.requests)
        else {
            continue;
        };
        for (resource, limit) in limits.iter().filter(|(name, _)| name.contains('/')) {
            let Some(request) = requests.get(resource).filter(|request| differ(request, limit)) else {
                continue;
            };
            if facts.dialects.mode_of(resource).is_none() {
                continue;
            }
            let message = format!(
                "the request is `{request}` and the limit `{limit}`: a share has one size; remove the request"
            );
            findings.deny(rules::REQUEST_DIFFERS, format!("{path}.resources.requests[{resource}]"), message);
        }
    }
}

/// Quantities that can't be read are reported by another rule.
fn differ(request: &crate::object::Quantity, limit: &crate::object::Quantity) -> bool {
    request != limit
        && matches!((request.amount(), limit.amount()), (Ok(request), Ok(limit)) if request != limit)
}
