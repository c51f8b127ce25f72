//! What can't be read exactly is denied: the dialects' own parser, which scheduling uses too, says so.
//!
//! A limit and a request that differ are two answers to one question.

use super::{facts::Facts, findings::Findings, rules, shares::Shares};
use crate::object::Pod;

/// Judges the quantities of a pod.
pub fn judge(findings: &mut Findings, pod: &Pod, shares: &Shares<'_>, facts: &Facts) {
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

/// What can't be read is another rule's.
fn differ(request: &crate::object::Quantity, limit: &crate::object::Quantity) -> bool {
    matches!((request.amount(), limit.amount()), (Ok(request), Ok(limit)) if request != limit)
}
