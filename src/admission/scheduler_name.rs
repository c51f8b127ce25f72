//! A pod that asks for a share is Berth's to place, unless it names another scheduler.

use super::{
    draft::Draft,
    findings::ReviewFindings,
    rules,
    settings::{AdmissionSettings, DefaultScheduler},
};
use crate::{
    excerpt::{FIELD, excerpt},
    object::{Pod, pod::DEFAULT_SCHEDULER},
};

/// The scheduler that places a pod.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PlacingScheduler {
    /// Berth, since the pod names it.
    Berth,
    /// Berth, since the pod names no scheduler, or one whose pods Berth adopts.
    Adopted,
    /// Another scheduler.
    Other,
}

/// The scheduler that places the pod.
pub fn owner(pod: &Pod, settings: &AdmissionSettings) -> PlacingScheduler {
    let named = pod.spec.scheduler_name.as_deref().unwrap_or_default();
    let keeps_default = named == DEFAULT_SCHEDULER && settings.default_scheduler == DefaultScheduler::Leave;
    if named == settings.scheduler_name {
        PlacingScheduler::Berth
    } else if named.is_empty()
        || settings.adopt_schedulers.contains(named)
        || (named == DEFAULT_SCHEDULER && !keeps_default)
    {
        PlacingScheduler::Adopted
    } else {
        PlacingScheduler::Other
    }
}

/// Whether the pod names no scheduler, or the one that the API server fills in.
pub fn is_default(pod: &Pod) -> bool {
    matches!(pod.spec.scheduler_name.as_deref(), None | Some("" | DEFAULT_SCHEDULER))
}

/// Names Berth as the scheduler of an adopted pod.
pub fn set(draft: &mut Draft, settings: &AdmissionSettings) {
    if owner(draft.pod(), settings) == PlacingScheduler::Adopted {
        draft.set_scheduler_name(&settings.scheduler_name);
    }
}

/// Warns that another scheduler places the share.
pub fn judge(findings: &mut ReviewFindings, pod: &Pod, settings: &AdmissionSettings) {
    if owner(pod, settings) == PlacingScheduler::Other {
        let message = format!(
            "is {}: the pod's GPU share is not placed by {}; remove schedulerName to have it placed",
            excerpt(pod.spec.scheduler_name.as_deref().unwrap_or_default(), FIELD),
            settings.scheduler_name
        );
        findings.warn(rules::OTHER_SCHEDULER, "spec.schedulerName", message);
    }
}
