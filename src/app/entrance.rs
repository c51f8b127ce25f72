//! Whether a pod that comes is Berth's to place: by the rules of admission, and by what it asks of claims, of which these know nothing.

use serde_json::Value;

use crate::{
    admission::{
        Facts, Violation,
        passage::{self, ReviewVerdict},
        scheduler_name,
    },
    object::{self, Pod, UnreadableField, pod::DEFAULT_SCHEDULER, workload::Places},
    scheduling::model::extended_resources::{ExtendedRequests, ExtendedResources},
    simulation::{Entered, ViolationRow},
};

/// What comes of a pod of this namespace, whose fields stand at these places of a document. Classes of devices may stand for extended resources.
///
/// # Errors
///
/// A field of the pod can't be read.
pub fn entered(
    (object, namespace, places): (&Value, &str, &Places),
    facts: &Facts,
    classes: &ExtendedResources,
) -> Result<Entered, UnreadableField> {
    if let Some(entered) = without_share(object, facts, classes)? {
        return Ok(entered);
    }
    let led = passage::lead(object.clone(), (namespace, None), facts)?;
    let warnings = led.warnings.iter().map(|warning| warning.at(places).to_string()).collect();
    match led.outcome {
        ReviewVerdict::Denied => Ok(Entered::Denied(rows(&led.violations, places), warnings)),
        ReviewVerdict::Ignored => Ok(Entered::Ignored(warnings)),
        ReviewVerdict::Admitted => Ok(ours(object::read(&led.object)?, warnings, facts)),
    }
}

/// A pod without a share that names Berth, or has claims of devices, or asks for extended resources that a class stands for: the rules of
/// admission are about shares. `None`: it is another, or asks for a share too.
pub fn without_share(
    object: &Value,
    facts: &Facts,
    classes: &ExtendedResources,
) -> Result<Option<Entered>, UnreadableField> {
    let mut pod: Pod = object::read(object)?;
    let ours = facts.settings.scheduler_name.as_str();
    let extended = ExtendedRequests::of_pod(&pod);
    let by_class = |extended: ExtendedRequests| {
        extended.resources().into_iter().any(|name| classes.class(name).is_some())
    };
    let has_claims = !pod.spec.resource_claims.is_empty() || extended.is_some_and(by_class);
    let is_named = pod.spec.scheduler_name.as_deref() == Some(ours);
    if !(is_named || has_claims) || !facts.dialects.asked(&pod).is_empty() {
        return Ok(None);
    }
    if scheduler_name::is_default(&pod) {
        pod.spec.scheduler_name = Some(ours.to_owned());
    }
    if let Some(other) = pod.spec.scheduler_name.as_deref().filter(|named| *named != ours) {
        let warning = format!("spec.schedulerName is {other}: the pod's claims are not allocated by {ours}");
        return Ok(Some(Entered::Ignored(vec![warning])));
    }
    Ok(Some(Entered::Ours(Box::new(pod), Vec::new())))
}

/// Violations of a pod whose fields stand at these places.
pub fn rows(violations: &[Violation], places: &Places) -> Vec<ViolationRow> {
    violations.iter().map(|violation| violation_row(violation, places)).collect()
}

/// A violation of a pod whose fields stand at these places.
pub fn violation_row(violation: &Violation, places: &Places) -> ViolationRow {
    let Violation { rule, field, message } = violation.at(places);
    ViolationRow { rule: rule.0.into(), field, message }
}

/// Only pods that name Berth are placed; a pod that names another scheduler gets a warning.
pub fn ours(pod: Pod, mut warnings: Vec<String>, facts: &Facts) -> Entered {
    let ours = facts.settings.scheduler_name.as_str();
    let named = pod.spec.scheduler_name.as_deref().filter(|name| !name.is_empty());
    if named == Some(ours) {
        return Entered::Ours(Box::new(pod), warnings);
    }
    if warnings.is_empty() {
        let named = named.unwrap_or(DEFAULT_SCHEDULER);
        warnings.push(format!("spec.schedulerName is {named}: the pod's GPU share is not placed by {ours}"));
    }
    Entered::Ignored(warnings)
}
