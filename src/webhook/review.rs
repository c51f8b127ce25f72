//! AdmissionReview v1: parses the request about a pod and writes the response.
//!
//! A pure function without socket, clock and rules. The types are Berth's own, and the object stays raw JSON until it is parsed as a pod.
//! Source: `k8s.io/api/admission/v1/types.go`, checked by `k8s.io/apiserver/pkg/admission/plugin/webhook/request/admissionreview.go`.

pub(super) mod asked;
pub(super) mod audit;
pub(super) mod bad_review;
pub mod onward;
pub(super) mod parse;
pub(super) mod record;
pub(super) mod words;
pub(super) mod workload;

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    admission::{self, AdmissionStage, Operation, Rule, Verdict, Violation},
    excerpt::{FIELD, MESSAGE, excerpt},
    object::{
        Pod,
        workload::{WorkloadKind, Workloads},
    },
};
use asked::{API_VERSION, Asks, Envelope, KIND, ReviewRequest, Subject, must_be_object, read};
use bad_review::BadReview;
use parse::{Fault, parse};
use words::{message, presentable, sentence};

/// The function that judges a pod by the admission rules.
pub type Judge = Arc<dyn Fn(&admission::Request<'_>) -> Verdict + Send + Sync>;

/// The outcome of a review.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ReviewOutcome {
    /// Allowed without a change, since the pod does not concern Berth, or no pod is denied at this stage.
    Ignored,
    /// Allowed, with or without a patch.
    Admitted,
    /// Denied by a rule.
    Denied,
    /// Denied, since the object can't be parsed as a pod.
    Unreadable,
}

/// The answer to one review, with the values for the metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct ReviewAnswer {
    /// The outcome.
    pub outcome: ReviewOutcome,
    /// The rule of each violation.
    pub rules: Vec<Rule>,
    /// The new pod, if the validating stage admitted it; its namespace is set.
    pub entrant: Option<Entrant>,
    /// The AdmissionReview to send.
    pub review: AdmissionReview,
}

/// A new pod that is admitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Entrant {
    /// The pod as the API server will store it.
    pub pod: Box<Pod>,
    /// Whether the API server will store it.
    pub dry_run: DryRun,
}

/// Whether a request is a dry run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DryRun {
    /// The API server stores nothing, and the request must have no effect.
    Yes,
    /// An ordinary request.
    No,
}

impl DryRun {
    /// From the field `dryRun`; a missing field means an ordinary request.
    fn of(stated: Option<bool>) -> Self {
        if stated == Some(true) { Self::Yes } else { Self::No }
    }
}

/// The AdmissionReview of the answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionReview {
    /// `admission.k8s.io/v1`.
    pub api_version: &'static str,
    /// `AdmissionReview`.
    pub kind: &'static str,
    /// The answer.
    pub response: Response,
}

/// `response` of an AdmissionReview.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    /// The uid of the request.
    pub uid: String,
    /// Whether the object may be stored.
    pub allowed: bool,
    /// The reason for a denial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ReviewStatus>,
    /// `JSONPatch` if there is a `patch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch_type: Option<&'static str>,
    /// The JSON patch (RFC 6902) in Base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// The message for the user who submitted the object.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Annotations for the audit log, without the webhook's name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub audit_annotations: BTreeMap<&'static str, String>,
}

/// The part of `metav1.ReviewStatus` that shapes a client's error.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct ReviewStatus {
    /// An HTTP status code, 400 or above.
    pub code: u16,
    /// The machine-readable reason, such as `Forbidden`.
    pub reason: &'static str,
    /// The message for the user.
    pub message: String,
}

/// Answers the review in `body` exactly as the server does on the path of `stage`.
///
/// Of workloads, those of these kinds are judged. An envelope that can't be read is an error; a pod that can't be read is a refusal
/// that names the field.
pub fn answer(
    body: &[u8],
    stage: AdmissionStage,
    judge: &Judge,
    workloads: &Workloads,
) -> Result<ReviewAnswer, BadReview> {
    let text = std::str::from_utf8(body).map_err(|error| BadReview::NotJson { reason: error.to_string() })?;
    must_be_object(text)?;
    // Nearly every body holds a valid pod, which takes one pass; only other bodies take a second.
    if let Some(pod) = AskedPod::read(text, workloads) {
        return Ok(pod.answer(stage, judge));
    }
    let asked: ReviewRequest<&RawValue> = read(text)?;
    let asks = asked.operation()?;
    let uid = asked.uid()?.to_owned();
    let subject = asked.subject(workloads)?;
    if subject == Subject::Other || matches!(asks, Asks::Delete | Asks::Connect) {
        return Ok(ReviewAnswer::to(uid, stage, Verdict::Ignored));
    }
    let object = asked.object.ok_or(BadReview::Missing { field: "request.object" })?.get();
    let namespace = asked.namespace.unwrap_or_default();
    if let Subject::Workload(kind) = subject {
        return Ok(of_workload(uid, stage, (kind, object), &namespace, judge));
    }
    let pod = match parse::pod(object) {
        Ok(pod) => pod,
        Err(_) if stage == AdmissionStage::Adopt => {
            return Ok(ReviewAnswer::to(uid, stage, Verdict::Ignored));
        }
        Err(fault) => return Ok(ReviewAnswer::unreadable(uid, &fault)),
    };
    let old = if asks == Asks::Update {
        let stored = asked.old_object.ok_or(BadReview::Missing { field: "request.oldObject" })?;
        // If the stored pod can't be parsed, the whole new pod counts as a change.
        Some(parse::<Pod>(stored.get()).unwrap_or_default())
    } else {
        None
    };
    let dry_run = DryRun::of(asked.dry_run);
    Ok(AskedPod { uid, namespace, pod, old, dry_run }.answer(stage, judge))
}

/// A pod to create, or to change from its old version.
struct AskedPod {
    uid: String,
    namespace: String,
    pod: Pod,
    old: Option<Pod>,
    dry_run: DryRun,
}

impl AskedPod {
    /// Parses envelope and pod in one pass; `None` if either of them is invalid.
    fn read(text: &str, workloads: &Workloads) -> Option<Self> {
        let asked = serde_json::from_str::<Envelope<Pod>>(text).ok()?.request().ok()?;
        let uid = asked.uid().ok()?.to_owned();
        let (Subject::Pod, asks) = (asked.subject(workloads).ok()?, asked.operation().ok()?) else {
            return None;
        };
        let old = match asks {
            Asks::Create => None,
            Asks::Update => Some(asked.old_object?),
            Asks::Delete | Asks::Connect => return None,
        };
        let pod = asked.object.filter(parse::is_named)?;
        let (namespace, dry_run) = (asked.namespace.unwrap_or_default(), DryRun::of(asked.dry_run));
        Some(Self { uid, namespace, pod, old, dry_run })
    }

    fn answer(self, stage: AdmissionStage, judge: &Judge) -> ReviewAnswer {
        let Self { uid, namespace, mut pod, old, dry_run } = self;
        if !namespace.is_empty() {
            pod.metadata.namespace = namespace;
        }
        let operation = old.as_ref().map_or(Operation::Create, Operation::Update);
        let request = admission::Request { stage, operation, namespace: &pod.metadata.namespace, pod: &pod };
        let answer = ReviewAnswer::to(uid, stage, judge(&request));
        let enters =
            (answer.outcome, stage) == (ReviewOutcome::Admitted, AdmissionStage::Validate) && old.is_none();
        let entrant = enters.then(|| Entrant { pod: Box::new(pod), dry_run });
        ReviewAnswer { entrant, ..answer }
    }
}

/// Admits a workload whatever its template says, also one that can't be parsed, since its pods are judged later.
fn of_workload(
    uid: String,
    stage: AdmissionStage,
    (kind, object): (&WorkloadKind, &str),
    namespace: &str,
    judge: &Judge,
) -> ReviewAnswer {
    let object = parse::<serde_json::Value>(object).unwrap_or_default();
    let warnings = workload::warnings(judge.as_ref(), kind, &object, namespace);
    if warnings.is_empty() {
        return ReviewAnswer::to(uid, stage, Verdict::Ignored);
    }
    ReviewAnswer::to(uid, stage, Verdict::Admitted { patch: Vec::new(), warnings })
}

impl ReviewAnswer {
    /// The answer with this verdict to the request `uid`. Only the mutating stage sends a patch: the API server refuses the whole
    /// response of a validating webhook that has one.
    fn to(uid: String, stage: AdmissionStage, verdict: Verdict) -> Self {
        let warnings = verdict.warnings();
        let audit_annotations = audit::warned(warnings);
        let warnings = presentable(&warnings.iter().map(ToString::to_string).collect::<Vec<_>>(), &[]);
        let response = Response { uid, allowed: true, warnings, audit_annotations, ..Response::default() };
        match verdict {
            Verdict::Ignored => Self::with(ReviewOutcome::Ignored, response),
            Verdict::Admitted { patch, .. } if patch.is_empty() || stage == AdmissionStage::Validate => {
                Self::with(ReviewOutcome::Admitted, response)
            }
            Verdict::Admitted { patch, .. } => {
                let json = serde_json::to_vec(&patch).expect("patch operations have string keys only");
                let patched = Response {
                    patch_type: Some("JSONPatch"),
                    patch: Some(STANDARD.encode(json)),
                    ..response
                };
                Self::with(ReviewOutcome::Admitted, patched)
            }
            Verdict::Denied { violations, .. } => Self::denied(response, &violations),
        }
    }

    fn denied(mut response: Response, violations: &[Violation]) -> Self {
        let rules: Vec<Rule> = violations.iter().map(|violation| violation.rule).collect();
        response.audit_annotations.insert("violations", audit::names(rules.iter().map(|rule| rule.0)));
        let refused = Response {
            allowed: false,
            status: Some(ReviewStatus { code: 403, reason: "Forbidden", message: message(violations) }),
            ..response
        };
        Self { rules, ..Self::with(ReviewOutcome::Denied, refused) }
    }

    fn unreadable(uid: String, fault: &Fault) -> Self {
        let message = format!("{}: {}", excerpt(&fault.field, FIELD), fault.reason);
        let status =
            ReviewStatus { code: 422, reason: "Invalid", message: sentence(&message, FIELD + MESSAGE) };
        let refused = Response { uid, status: Some(status), ..Response::default() };
        Self::with(ReviewOutcome::Unreadable, refused)
    }

    fn with(outcome: ReviewOutcome, response: Response) -> Self {
        let review = AdmissionReview { api_version: API_VERSION, kind: KIND, response };
        Self { outcome, rules: Vec::new(), entrant: None, review }
    }

    /// Adds warnings, as many as the API server passes on.
    pub(super) fn warn(&mut self, more: &[String]) {
        let response = &mut self.review.response;
        let more = presentable(more, &response.warnings);
        response.warnings.extend(more);
    }
}

#[cfg(test)]
mod tests;
