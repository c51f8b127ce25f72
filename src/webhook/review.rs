//! AdmissionReview v1: reads what the API server asks about a pod and writes what it is answered.
//!
//! A pure function: no socket, no clock, no rule. Types are our own, and the object stays raw JSON until it is read once as a pod.
//! Source: `k8s.io/api/admission/v1/types.go`, checked by `k8s.io/apiserver/pkg/admission/plugin/webhook/request/admissionreview.go`.

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    asked::{Asked, Asks, Envelope, Subject, must_be_object, read},
    audit,
    parse::{self, Fault, parse},
    words::{message, presentable, sentence},
    workload,
};
use crate::{
    admission::{self, Operation, Rule, Stage, Verdict, Violation},
    excerpt::{FIELD, MESSAGE, excerpt},
    object::{
        Pod,
        workload::{Kind, Workloads},
    },
};

pub(super) const API_VERSION: &str = "admission.k8s.io/v1";
pub(super) const KIND: &str = "AdmissionReview";

/// What decides about a pod.
pub type Judge = Arc<dyn Fn(&admission::Request<'_>) -> Verdict + Send + Sync>;

/// Why a body is no review that could be answered. The API server's `failurePolicy` decides then.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BadReview {
    /// The body is not JSON.
    #[error("the body is not JSON: {reason}")]
    NotJson {
        /// What the parser met, and where.
        reason: String,
    },
    /// The body is JSON, but no object.
    #[error("the body is {found}; an AdmissionReview object is expected")]
    NotAnObject {
        /// What it is.
        found: &'static str,
    },
    /// A field that must be there is not, or is empty.
    #[error("`{field}` is missing")]
    Missing {
        /// The path of the field.
        field: &'static str,
    },
    /// A field holds what it can't hold.
    #[error("`{field}`: {reason}")]
    Unreadable {
        /// The path of the field.
        field: String,
        /// What was met, and what was expected.
        reason: String,
    },
}

impl BadReview {
    /// The path of the field that is wrong, where it is one field.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::NotJson { .. } | Self::NotAnObject { .. } => None,
            Self::Missing { field } => Some(field),
            Self::Unreadable { field, .. } => Some(field),
        }
    }
}

/// What came of a review, in one word.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Outcome {
    /// None of Berth's business.
    Ignored,
    /// Allowed, perhaps with a patch.
    Admitted,
    /// Refused by a rule.
    Denied,
    /// Refused since the object can't be read as a pod.
    Unreadable,
}

/// The answer to one review, and what to count of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReviewAnswer {
    /// What came of the review.
    pub outcome: Outcome,
    /// The rules that were broken, one for each violation.
    pub rules: Vec<Rule>,
    /// The new pod that is let in, once all have judged it; its namespace is there.
    pub entrant: Option<Entrant>,
    /// What goes over the wire.
    pub review: AdmissionReview,
}

/// A new pod that is let in.
#[derive(Clone, Debug, PartialEq)]
pub struct Entrant {
    /// The pod as it is to be stored.
    pub pod: Box<Pod>,
    /// Whether it is to be stored at all.
    pub dry_run: DryRun,
}

/// Whether a request is only tried.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DryRun {
    /// Nothing is stored and nothing may follow from it.
    Yes,
    /// It is meant.
    No,
}

impl DryRun {
    /// As the request states it; what it leaves out is meant.
    fn of(stated: Option<bool>) -> Self {
        if stated == Some(true) { Self::Yes } else { Self::No }
    }
}

/// The AdmissionReview that is sent back.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionReview {
    /// Always `admission.k8s.io/v1`.
    pub api_version: &'static str,
    /// Always `AdmissionReview`.
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
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// `JSONPatch`, together with `patch` or not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch_type: Option<&'static str>,
    /// Base64 of an RFC 6902 array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// Words for the person who submitted the object.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What the audit log keeps beside the request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub audit_annotations: BTreeMap<&'static str, String>,
}

/// The part of `metav1.Status` that shapes a client's error.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Status {
    /// An HTTP status code, 400 or above.
    pub code: u16,
    /// The machine's word for it.
    pub reason: &'static str,
    /// The person's words for it.
    pub message: String,
}

/// Answers the review in `body`: exactly what the server sends on the path of `stage`.
///
/// Of workloads, those of these kinds are judged. An envelope that can't be read is an error; a pod that can't be read is a refusal
/// that names the field.
pub fn answer(
    body: &[u8],
    stage: Stage,
    judge: &Judge,
    workloads: &Workloads,
) -> Result<ReviewAnswer, BadReview> {
    let text = std::str::from_utf8(body).map_err(|error| BadReview::NotJson { reason: error.to_string() })?;
    must_be_object(text)?;
    // Nearly every body holds a pod that can be read, which takes one pass; whatever else it holds, a second finds out.
    if let Some(pod) = AskedPod::read(text, workloads) {
        return Ok(pod.answer(stage, judge));
    }
    let asked: Asked<&RawValue> = read(text)?;
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
        Err(fault) => return Ok(ReviewAnswer::unreadable(uid, &fault)),
    };
    let old = if asks == Asks::Update {
        let stored = asked.old_object.ok_or(BadReview::Missing { field: "request.oldObject" })?;
        // Should what is stored be unreadable, all of the new is judged as a change.
        Some(parse(stored.get()).unwrap_or_default())
    } else {
        None
    };
    let dry_run = DryRun::of(asked.dry_run);
    Ok(AskedPod { uid, namespace, pod, old, dry_run }.answer(stage, judge))
}

/// A pod that is to be created, or changed from what it was.
struct AskedPod {
    uid: String,
    namespace: String,
    pod: Pod,
    old: Option<Pod>,
    dry_run: DryRun,
}

impl AskedPod {
    /// Reads envelope and pod in one pass; `None` where there is anything to say about either.
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

    fn answer(self, stage: Stage, judge: &Judge) -> ReviewAnswer {
        let Self { uid, namespace, mut pod, old, dry_run } = self;
        if !namespace.is_empty() {
            pod.metadata.namespace = namespace;
        }
        let operation = old.as_ref().map_or(Operation::Create, Operation::Update);
        let request = admission::Request { stage, operation, namespace: &pod.metadata.namespace, pod: &pod };
        let answer = ReviewAnswer::to(uid, stage, judge(&request));
        let enters = (answer.outcome, stage) == (Outcome::Admitted, Stage::Validate) && old.is_none();
        let entrant = enters.then(|| Entrant { pod: Box::new(pod), dry_run });
        ReviewAnswer { entrant, ..answer }
    }
}

/// A workload is let in whatever its template says, and so is one that can't be read: its pods will be judged.
fn of_workload(
    uid: String,
    stage: Stage,
    (kind, object): (&Kind, &str),
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
    /// Writes a verdict down for the request `uid`. Only the mutating stage may carry a patch: the API server refuses
    /// the whole response where a validating webhook sends one.
    fn to(uid: String, stage: Stage, verdict: Verdict) -> Self {
        let warnings = verdict.warnings();
        let audit_annotations = audit::warned(warnings);
        let warnings = presentable(&warnings.iter().map(ToString::to_string).collect::<Vec<_>>(), &[]);
        let response = Response { uid, allowed: true, warnings, audit_annotations, ..Response::default() };
        match verdict {
            Verdict::Ignored => Self::with(Outcome::Ignored, response),
            Verdict::Admitted { patch, .. } if patch.is_empty() || stage == Stage::Validate => {
                Self::with(Outcome::Admitted, response)
            }
            Verdict::Admitted { patch, .. } => {
                let json = serde_json::to_vec(&patch).expect("patch operations have string keys only");
                let patched = Response {
                    patch_type: Some("JSONPatch"),
                    patch: Some(STANDARD.encode(json)),
                    ..response
                };
                Self::with(Outcome::Admitted, patched)
            }
            Verdict::Denied { violations, .. } => Self::denied(response, &violations),
        }
    }

    fn denied(mut response: Response, violations: &[Violation]) -> Self {
        let rules: Vec<Rule> = violations.iter().map(|violation| violation.rule).collect();
        response.audit_annotations.insert("violations", audit::names(rules.iter().map(|rule| rule.0)));
        let refused = Response {
            allowed: false,
            status: Some(Status { code: 403, reason: "Forbidden", message: message(violations) }),
            ..response
        };
        Self { rules, ..Self::with(Outcome::Denied, refused) }
    }

    fn unreadable(uid: String, fault: &Fault) -> Self {
        let message = format!("{}: {}", excerpt(&fault.field, FIELD), fault.reason);
        let status = Status { code: 422, reason: "Invalid", message: sentence(&message, FIELD + MESSAGE) };
        let refused = Response { uid, status: Some(status), ..Response::default() };
        Self::with(Outcome::Unreadable, refused)
    }

    fn with(outcome: Outcome, response: Response) -> Self {
        let review = AdmissionReview { api_version: API_VERSION, kind: KIND, response };
        Self { outcome, rules: Vec::new(), entrant: None, review }
    }

    /// Warns of more, as far as the API server passes it on.
    pub(super) fn warn(&mut self, more: &[String]) {
        let response = &mut self.review.response;
        let more = presentable(more, &response.warnings);
        response.warnings.extend(more);
    }
}

#[cfg(test)]
mod tests;
