//! A pod that asks for a share is Berth's to place, unless it names another scheduler.

use super::{
    draft::Draft,
    facts::{DefaultScheduler, Facts},
};

/// What the API server fills in where nothing was named.
const DEFAULT: &str = "default-scheduler";

/// Names Berth as the scheduler, or says why not.
pub fn set(draft: &mut Draft, facts: &Facts) -> Option<String> {
    let settings = &facts.settings;
    let named = draft.pod().spec.scheduler_name.clone().unwrap_or_default();
    if named == settings.scheduler_name {
        return None;
    }
    let keeps_default = named == DEFAULT && settings.default_scheduler == DefaultScheduler::Leave;
    let ours = named.is_empty() || named == DEFAULT || settings.adopt_schedulers.contains(&named);
    if ours && !keeps_default {
        draft.set_scheduler_name(&settings.scheduler_name);
        return None;
    }
    Some(format!(
        "spec.schedulerName is {named}: the pod's GPU share is not placed by {}; leave schedulerName out to have it placed",
        settings.scheduler_name
    ))
}
