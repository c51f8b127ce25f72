//! Whether an incoming pod is Berth's to place: by the admission rules, or by its own words where those are skipped.

use serde_json::Value;

use crate::{
    admission::{
        Facts, findings::ReviewFindings, modes::Ways, quantities, rules, scheduler_name, shares::PodShares,
    },
    app::entrance,
    cli::{
        documents::{Document, DocumentError},
        simulate::input::Incoming,
    },
    dialect::MissingCount,
    dra::ExtendedResources,
    object::{self, Pod, UnreadableField, workload::Places},
    simulation::Entered,
};

/// Whether pods meet the admission rules.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Entrance {
    /// They do.
    Guarded,
    /// Only what can't be read is refused.
    Open,
}

/// Leads a pod through the entrance. Classes of devices may stand for extended resources.
pub(super) fn enter(
    Incoming { document, places, .. }: &Incoming,
    entrance: Entrance,
    facts: &Facts,
    classes: &ExtendedResources,
) -> Result<Entered, DocumentError> {
    let pod = (&document.value, document.namespace_or_default(), places);
    let entered = match entrance {
        Entrance::Guarded => entrance::entered(pod, facts, classes),
        Entrance::Open => match entrance::without_share(pod.0, facts, classes) {
            Ok(None) => open(pod.0, places, facts),
            Ok(Some(entered)) => Ok(entered),
            Err(error) => Err(error),
        },
    };
    entered.map_err(|UnreadableField { field, reason }| document.error(&places.of(&field), reason))
}

fn open(object: &Value, places: &Places, facts: &Facts) -> Result<Entered, UnreadableField> {
    let mut pod: Pod = object::read(object)?;
    if !Ways::of(&pod, facts).ask_for_a_share() {
        return Ok(Entered::Ignored(Vec::new()));
    }
    let mut findings = ReviewFindings::default();
    quantities::judge(&mut findings, &pod, &PodShares::read(&pod, facts, MissingCount::Refuse), facts);
    let (mut violations, _) = findings.into_parts();
    // The binder reads this pod and says what is missing in its condition.
    violations.retain(|violation| violation.rule != rules::COUNT_MISSING);
    if !violations.is_empty() {
        return Ok(Entered::Denied(entrance::rows(&violations, places), Vec::new()));
    }
    if scheduler_name::is_default(&pod) {
        pod.spec.scheduler_name = Some(facts.settings.scheduler_name.clone());
    }
    Ok(entrance::ours(pod, Vec::new(), facts))
}

/// Whether gates hold the pod back, as the API server shows them.
pub(super) fn is_gated(document: &Document) -> bool {
    let gates = document.value.pointer("/spec/schedulingGates").and_then(Value::as_array);
    gates.is_some_and(|gates| !gates.is_empty())
}
