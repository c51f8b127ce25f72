//! Deployments, Jobs, RayClusters and their like: what the rules say of the pods that they would make.
//!
//! No workload is denied: the client that creates it gets warnings.

use serde_json::Value;

use crate::{
    admission::{self, AdmissionStage, Operation, Verdict, Violation},
    object::{self, Pod, metadata::Controller, workload::WorkloadKind},
};

/// What the rules would say of the pods of a workload, as warnings whose paths are the workload's. One that can't be read is warned of
/// nothing.
pub(super) fn warnings(
    judge: &dyn Fn(&admission::Request<'_>) -> Verdict,
    kind: &WorkloadKind,
    object: &Value,
    namespace: &str,
) -> Vec<Violation> {
    let mut warnings = Vec::new();
    for kept in kind.pods(object).unwrap_or_default() {
        let Ok(mut pod) = object::read::<Pod>(&kept.pod) else { continue };
        // The workload's own pods, not one alone.
        pod.metadata.controller = Some(Controller::new("", &kind.kind, "", ""));
        let said = said(judge, &pod, namespace);
        warnings.extend(said.iter().map(|warning| warning.at(&kept.places)));
    }
    warnings
}

/// What the rules would say of a pod, as warnings.
fn said(judge: &dyn Fn(&admission::Request<'_>) -> Verdict, pod: &Pod, namespace: &str) -> Vec<Violation> {
    let request =
        admission::Request { stage: AdmissionStage::Mutate, operation: Operation::Create, namespace, pod };
    let (violations, warnings) = match judge(&request) {
        Verdict::Ignored => (Vec::new(), Vec::new()),
        Verdict::Admitted { warnings, .. } => (Vec::new(), warnings),
        Verdict::Denied { violations, warnings } => (violations, warnings),
    };
    let refusals = violations.into_iter().map(|violation| Violation {
        message: format!("its pods would be refused: {}", violation.message),
        ..violation
    });
    refusals.chain(warnings).collect()
}
