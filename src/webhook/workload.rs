//! Deployments, Jobs and their like: the pod that they would make, read out of their template.
//!
//! No workload is denied: the client that creates it gets warnings.

use serde::Deserialize;

use crate::{
    admission::{self, Operation, Stage, Verdict, Violation},
    object::Pod,
};

/// What keeps a pod template, by group and plural.
const KINDS: [(&str, &str); 8] = [
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("batch", "cronjobs"),
    ("batch", "jobs"),
    ("", "replicationcontrollers"),
    ("", "podtemplates"),
];

/// Whether objects of this kind keep a pod template.
pub(super) fn is_workload(group: &str, plural: &str) -> bool {
    KINDS.contains(&(group, plural))
}

/// An object that keeps a pod template, in whichever place.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Workload {
    spec: Option<Spec>,
    template: Option<Pod>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    template: Option<Pod>,
    job_template: Option<Box<Workload>>,
}

impl Workload {
    /// The pod that it would make, and the template's path.
    pub(super) fn pod(self) -> Option<(&'static str, Pod)> {
        if let Some(pod) = self.template {
            return Some(("template", pod));
        }
        let spec = self.spec?;
        if let Some(pod) = spec.template {
            return Some(("spec.template", pod));
        }
        let (_, pod) = spec.job_template?.pod()?;
        Some(("spec.jobTemplate.spec.template", pod))
    }
}

/// What the rules would say of the pod that the template makes, as warnings whose fields are the workload's.
pub(super) fn warnings(
    judge: &dyn Fn(&admission::Request<'_>) -> Verdict,
    (path, pod): &(&'static str, Pod),
    namespace: &str,
) -> Vec<Violation> {
    let request = admission::Request { stage: Stage::Mutate, operation: Operation::Create, namespace, pod };
    let (violations, warnings) = match judge(&request) {
        Verdict::Ignored => return Vec::new(),
        Verdict::Admitted { warnings, .. } => (Vec::new(), warnings),
        Verdict::Denied { violations, warnings } => (violations, warnings),
    };
    let refusals = violations.into_iter().map(|violation| Violation {
        message: format!("its pods would be refused: {}", violation.message),
        ..violation
    });
    let below = |violation: Violation| {
        let point = if violation.field.is_empty() { "" } else { "." };
        Violation { field: format!("{path}{point}{}", violation.field), ..violation }
    };
    refusals.chain(warnings).map(below).collect()
}
