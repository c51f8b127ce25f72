//! One pod through both stages of admission, as the API server leads it: mutation first, then validation of what came of it.

use std::collections::BTreeSet;

use json_patch::PatchOperation;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{AdmissionStage, Facts, Operation, Request, Verdict, Violation, namespace_pods, review};
use crate::object::{self, Pod, UnreadableField, metadata::Controller};

/// What came of a review.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub enum ReviewVerdict {
    /// It may come in, perhaps changed.
    Admitted,
    /// It may not.
    Denied,
    /// None of Berth's business.
    Ignored,
}

/// Whether a pod concerns Berth, and why.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Concerned {
    /// It does not.
    No,
    /// It does, by what it asks for or names.
    ByItself,
    /// It does, since its namespace gives Berth all its pods.
    ByItsNamespace,
}

/// A reviewed pod.
#[derive(Clone, Debug, PartialEq)]
pub struct ReviewedPod {
    /// What came of it.
    pub outcome: ReviewVerdict,
    /// Whether it concerns Berth.
    pub concerned: Concerned,
    /// What was changed.
    pub patch: Vec<PatchOperation>,
    /// What the pod's author is warned of; fields are below the pod.
    pub warnings: Vec<Violation>,
    /// Why it was refused; fields are below the pod.
    pub violations: Vec<Violation>,
    /// The pod as it would be stored.
    pub object: Value,
}

/// Leads a pod of this namespace through. `controller`: the workload that would make it, where one of documents is asked about.
///
/// # Errors
///
/// A field of the pod can't be read.
pub fn lead(
    mut object: Value,
    (namespace, controller): (&str, Option<&Controller>),
    facts: &Facts,
) -> Result<ReviewedPod, UnreadableField> {
    if let Value::Object(fields) = &mut object {
        let metadata = fields.entry("metadata").or_insert(Value::Null);
        if metadata.is_null() {
            *metadata = Value::Object(Map::new());
        }
    }
    let ask = |object: &Value, stage| -> Result<Verdict, UnreadableField> {
        let mut pod: Pod = object::read(object)?;
        if let (AdmissionStage::Adopt, Some(controller)) = (stage, controller) {
            pod.metadata.controller = Some(controller.clone());
        }
        let request = Request { stage, operation: Operation::Create, namespace, pod: &pod };
        Ok(review(&request, facts))
    };
    let apply = |object: &mut Value, patch: &[PatchOperation]| {
        json_patch::patch(object, patch).map_err(|error| UnreadableField {
            field: String::new(),
            reason: format!("the patch does not apply: {error}"),
        })
    };
    let verdict = ask(&object, AdmissionStage::Mutate)?;
    let warnings = verdict.warnings().to_vec();
    let (concerned, mut patch) = match verdict {
        Verdict::Ignored => (Concerned::No, Vec::new()),
        Verdict::Denied { violations, .. } => {
            return Ok(ReviewedPod { violations, ..judged(ReviewVerdict::Denied, warnings, object) });
        }
        Verdict::Admitted { patch, .. } => (Concerned::ByItself, patch),
    };
    apply(&mut object, &patch)?;
    let gives_all = facts.namespace(namespace).is_some_and(namespace_pods::are_given);
    let adopted = if gives_all { ask(&object, AdmissionStage::Adopt)? } else { Verdict::Ignored };
    let concerned = match adopted {
        Verdict::Admitted { patch: more, .. } => {
            apply(&mut object, &more)?;
            patch.extend(more);
            Concerned::ByItsNamespace
        }
        Verdict::Ignored | Verdict::Denied { .. } => concerned,
    };
    if concerned == Concerned::No {
        return Ok(judged(ReviewVerdict::Ignored, warnings, object));
    }
    let outcome = match ask(&object, AdmissionStage::Validate)? {
        Verdict::Denied { violations, warnings: more } => {
            ReviewedPod { violations, ..judged(ReviewVerdict::Denied, united(warnings, more), object) }
        }
        Verdict::Ignored => ReviewedPod { patch, ..judged(ReviewVerdict::Admitted, warnings, object) },
        Verdict::Admitted { warnings: more, .. } => {
            ReviewedPod { patch, ..judged(ReviewVerdict::Admitted, united(warnings, more), object) }
        }
    };
    Ok(ReviewedPod { concerned, ..outcome })
}

/// Both stages' warnings; what both say is said once, as kubectl shows it.
fn united(mut warnings: Vec<Violation>, more: Vec<Violation>) -> Vec<Violation> {
    warnings.extend(more);
    let mut said = BTreeSet::new();
    warnings.retain(|warning| said.insert(warning.clone()));
    warnings
}

fn judged(outcome: ReviewVerdict, warnings: Vec<Violation>, object: Value) -> ReviewedPod {
    let concerned = if outcome == ReviewVerdict::Ignored { Concerned::No } else { Concerned::ByItself };
    ReviewedPod { outcome, concerned, patch: Vec::new(), warnings, violations: Vec::new(), object }
}
