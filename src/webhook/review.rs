//! AdmissionReview v1: reads what the API server asks about a pod and writes what it is answered.
//!
//! A pure function: no socket, no clock, no rule. Types are our own, and the object stays raw JSON until it is read once as a pod.
//! Source: `k8s.io/api/admission/v1/types.go`, checked by `k8s.io/apiserver/pkg/admission/plugin/webhook/request/admissionreview.go`.

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{
    audit,
    words::{message, one_line, presentable},
    workload::{self, Workload},
};
use crate::{
    admission::{self, Operation, Rule, Stage, Verdict, Violation},
    object::Pod,
};

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

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
            Self::NotJson { .. } => None,
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
/// An envelope that can't be read is an error; a pod that can't be read is a refusal that names the field.
pub fn answer(body: &[u8], stage: Stage, judge: &Judge) -> Result<ReviewAnswer, BadReview> {
    let asked = read(body)?;
    let asks = asked.operation()?;
    let uid = asked.uid()?.to_owned();
    let subject = asked.subject()?;
    if subject == Subject::Other || matches!(asks, Asks::Delete | Asks::Connect) {
        return Ok(ReviewAnswer::to(uid, stage, Verdict::Ignored));
    }
    let object = asked.object.ok_or(BadReview::Missing { field: "request.object" })?.get();
    let namespace = asked.namespace.as_deref().unwrap_or_default();
    if subject == Subject::Workload {
        return Ok(of_workload(uid, stage, object, namespace, judge));
    }
    let mut pod: Pod = match parse(object) {
        Ok(pod) => pod,
        Err(fault) => return Ok(ReviewAnswer::unreadable(uid, &fault)),
    };
    let old: Pod;
    let operation = if asks == Asks::Update {
        let stored = asked.old_object.ok_or(BadReview::Missing { field: "request.oldObject" })?;
        // Should what is stored be unreadable, all of the new is judged as a change.
        old = parse(stored.get()).unwrap_or_default();
        Operation::Update(&old)
    } else {
        Operation::Create
    };
    if !namespace.is_empty() {
        namespace.clone_into(&mut pod.metadata.namespace);
    }
    let namespace = &pod.metadata.namespace;
    let answer =
        ReviewAnswer::to(uid, stage, judge(&admission::Request { stage, operation, namespace, pod: &pod }));
    let enters = (answer.outcome, stage, asks) == (Outcome::Admitted, Stage::Validate, Asks::Create);
    let dry_run = if asked.dry_run == Some(true) { DryRun::Yes } else { DryRun::No };
    let entrant = enters.then(|| Entrant { pod: Box::new(pod), dry_run });
    Ok(ReviewAnswer { entrant, ..answer })
}

/// A workload is let in whatever its template says, and so is one that can't be read: its pods will be judged.
fn of_workload(uid: String, stage: Stage, object: &str, namespace: &str, judge: &Judge) -> ReviewAnswer {
    let pod = parse(object).ok().and_then(Workload::pod);
    let warnings = pod.map_or_else(Vec::new, |pod| workload::warnings(judge.as_ref(), &pod, namespace));
    if warnings.is_empty() {
        return ReviewAnswer::to(uid, stage, Verdict::Ignored);
    }
    ReviewAnswer::to(uid, stage, Verdict::Admitted { patch: Vec::new(), warnings })
}

/// What the request is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Subject {
    Pod,
    Workload,
    Other,
}

/// What is being done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Asks {
    Create,
    Update,
    Delete,
    Connect,
}

/// The subresources in which a whole pod is the object.
const POD_PARTS: [&str; 3] = ["", "ephemeralcontainers", "resize"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    api_version: Option<String>,
    kind: Option<String>,
    #[serde(borrow)]
    request: Option<Asked<'a>>,
}

/// The fields of `request` that an answer depends on.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked<'a> {
    uid: Option<String>,
    resource: Option<Resource>,
    sub_resource: Option<String>,
    namespace: Option<String>,
    operation: Option<String>,
    dry_run: Option<bool>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow)]
    old_object: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Resource {
    #[serde(default)]
    group: String,
    resource: String,
}

struct Fault {
    field: String,
    reason: String,
}

fn read(body: &[u8]) -> Result<Asked<'_>, BadReview> {
    let not_json = |error: serde_json::Error| BadReview::NotJson { reason: error.to_string() };
    let text = std::str::from_utf8(body).map_err(|error| BadReview::NotJson { reason: error.to_string() })?;
    let envelope: Envelope<'_> = if let Ok(envelope) = serde_json::from_str(text) {
        envelope
    } else {
        // Only a body that can't be read is worth a second look for the reason.
        let raw: &RawValue = serde_json::from_str(text).map_err(not_json)?;
        parse(raw.get()).map_err(|Fault { field, reason }| BadReview::Unreadable { field, reason })?
    };
    expect("apiVersion", envelope.api_version.as_deref(), API_VERSION)?;
    expect("kind", envelope.kind.as_deref(), KIND)?;
    envelope.request.ok_or(BadReview::Missing { field: "request" })
}

/// Reads one JSON value, and on failure once more to say which field it was: keeping the path costs more than reading.
fn parse<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, Fault> {
    if let Ok(read) = serde_json::from_str(json) {
        return Ok(read);
    }
    serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(json))
        .map_err(|error| Fault { field: error.path().to_string(), reason: error.inner().to_string() })
}

fn expect(field: &'static str, found: Option<&str>, expected: &str) -> Result<(), BadReview> {
    match found {
        None | Some("") => Err(BadReview::Missing { field }),
        Some(found) if found == expected => Ok(()),
        Some(found) => Err(BadReview::Unreadable {
            field: field.to_owned(),
            reason: format!("`{found}` is not `{expected}`"),
        }),
    }
}

impl Asked<'_> {
    fn uid(&self) -> Result<&str, BadReview> {
        let uid = self.uid.as_deref().filter(|uid| !uid.is_empty());
        uid.ok_or(BadReview::Missing { field: "request.uid" })
    }

    fn operation(&self) -> Result<Asks, BadReview> {
        match self.operation.as_deref() {
            Some("CREATE") => Ok(Asks::Create),
            Some("UPDATE") => Ok(Asks::Update),
            Some("DELETE") => Ok(Asks::Delete),
            Some("CONNECT") => Ok(Asks::Connect),
            None | Some("") => Err(BadReview::Missing { field: "request.operation" }),
            Some(other) => Err(BadReview::Unreadable {
                field: "request.operation".to_owned(),
                reason: format!("`{other}` is not CREATE, UPDATE, DELETE or CONNECT"),
            }),
        }
    }

    fn subject(&self) -> Result<Subject, BadReview> {
        let resource = self.resource.as_ref().ok_or(BadReview::Missing { field: "request.resource" })?;
        let part = self.sub_resource.as_deref().unwrap_or_default();
        Ok(match (resource.group.as_str(), resource.resource.as_str()) {
            ("", "pods") if POD_PARTS.contains(&part) => Subject::Pod,
            (group, plural) if part.is_empty() && workload::is_workload(group, plural) => Subject::Workload,
            _ => Subject::Other,
        })
    }
}

impl ReviewAnswer {
    /// Writes a verdict down for the request `uid`. Only the mutating stage may carry a patch: the API server refuses
    /// the whole response where a validating webhook sends one.
    fn to(uid: String, stage: Stage, verdict: Verdict) -> Self {
        let warnings = verdict.warnings();
        let (audit_annotations, warnings) = (audit::warned(warnings), presentable(warnings));
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
        let names: Vec<&str> = rules.iter().map(|rule| rule.0).collect();
        response.audit_annotations.insert("violations", names.join(","));
        let refused = Response {
            allowed: false,
            status: Some(Status { code: 403, reason: "Forbidden", message: message(violations) }),
            ..response
        };
        Self { rules, ..Self::with(Outcome::Denied, refused) }
    }

    fn unreadable(uid: String, fault: &Fault) -> Self {
        let message = format!("{}: {}", fault.field, fault.reason);
        let status = Status { code: 422, reason: "Invalid", message: one_line(&message) };
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
        response.warnings.extend_from_slice(more);
        response.warnings = presentable(&response.warnings);
    }
}

#[cfg(test)]
mod tests;
