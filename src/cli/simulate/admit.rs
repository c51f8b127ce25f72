//! Whether an incoming pod is Berth's to place: by the admission rules, or by its own words where those are skipped.

use serde_json::Value;

use crate::{
    admission::{
        Facts, Violation, findings::ReviewFindings, modes::Ways, quantities, rules, shares::PodShares,
    },
    cli::{
        documents::{Document, DocumentError},
        review::{self, ReviewVerdict, violation_row},
        simulate::input::Incoming,
    },
    dialect::MissingCount,
    dra::ExtendedResources,
    object::{Pod, workload::Places},
    scheduling::model::extended_resources::ExtendedRequests,
    simulation::ViolationRow,
};

/// Whether pods meet the admission rules.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Entrance {
    /// They do.
    Guarded,
    /// Only what can't be read is refused.
    Open,
}

/// What comes of a pod at the entrance.
#[derive(Debug)]
pub(super) enum Entered {
    /// It wants a place.
    Ours(Box<Pod>, Vec<String>),
    /// It is not Berth's to place.
    Ignored(Vec<String>),
    /// It may not come in.
    Denied(Vec<ViolationRow>, Vec<String>),
}

/// What the API server fills in where no scheduler was named.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// Leads a pod through the entrance.
pub(super) fn enter(
    incoming: &Incoming,
    entrance: Entrance,
    facts: &Facts,
) -> Result<Entered, DocumentError> {
    match entrance {
        Entrance::Guarded => guarded(incoming, facts),
        Entrance::Open => open(incoming, facts),
    }
}

/// A pod without a share that names Berth, or has claims of devices, or asks for extended resources that a class stands for: the rules of
/// admission are about shares. `None`: it is another, or asks for a share too.
pub(super) fn without_share(
    Incoming { document, places, .. }: &Incoming,
    facts: &Facts,
    classes: &ExtendedResources,
) -> Result<Option<Entered>, DocumentError> {
    let mut pod: Pod = document.read_part(&document.value, places)?;
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
    if matches!(pod.spec.scheduler_name.as_deref(), None | Some("" | DEFAULT_SCHEDULER)) {
        pod.spec.scheduler_name = Some(ours.to_owned());
    }
    if let Some(other) = pod.spec.scheduler_name.as_deref().filter(|named| *named != ours) {
        let warning = format!("spec.schedulerName is {other}: the pod's claims are not allocated by {ours}");
        return Ok(Some(Entered::Ignored(vec![warning])));
    }
    Ok(Some(Entered::Ours(Box::new(pod), Vec::new())))
}

fn guarded(Incoming { document, places, .. }: &Incoming, facts: &Facts) -> Result<Entered, DocumentError> {
    let judged = review::judge(document, places, facts)?;
    let warnings = judged.warnings.iter().map(|warning| warning.at(places).to_string()).collect();
    match judged.outcome {
        ReviewVerdict::Denied => Ok(Entered::Denied(rows(&judged.violations, places), warnings)),
        ReviewVerdict::Ignored => Ok(Entered::Ignored(warnings)),
        ReviewVerdict::Admitted => Ok(ours(document.read_part(&judged.object, places)?, warnings, facts)),
    }
}

fn rows(violations: &[Violation], places: &Places) -> Vec<ViolationRow> {
    violations.iter().map(|violation| violation_row(violation, places)).collect()
}

fn open(Incoming { document, places, .. }: &Incoming, facts: &Facts) -> Result<Entered, DocumentError> {
    let mut pod: Pod = document.read_part(&document.value, places)?;
    if !Ways::of(&pod, facts).ask_for_a_share() {
        return Ok(Entered::Ignored(Vec::new()));
    }
    let mut findings = ReviewFindings::default();
    quantities::judge(&mut findings, &pod, &PodShares::read(&pod, facts, MissingCount::Refuse), facts);
    let (mut violations, _) = findings.into_parts();
    // The binder reads this pod and says what is missing in its condition.
    violations.retain(|violation| violation.rule != rules::COUNT_MISSING);
    if !violations.is_empty() {
        return Ok(Entered::Denied(rows(&violations, places), Vec::new()));
    }
    if matches!(pod.spec.scheduler_name.as_deref(), None | Some("" | DEFAULT_SCHEDULER)) {
        pod.spec.scheduler_name = Some(facts.settings.scheduler_name.clone());
    }
    Ok(ours(pod, Vec::new(), facts))
}

/// Only pods that name Berth are placed; a pod that names another scheduler gets a warning.
fn ours(pod: Pod, mut warnings: Vec<String>, facts: &Facts) -> Entered {
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

/// Whether gates hold the pod back, as the API server shows them.
pub(super) fn is_gated(document: &Document) -> bool {
    let gates = document.value.pointer("/spec/schedulingGates").and_then(Value::as_array);
    gates.is_some_and(|gates| !gates.is_empty())
}
