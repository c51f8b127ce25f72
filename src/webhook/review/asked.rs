//! The envelope of an AdmissionReview, reduced to the fields on which the answer depends.
//!
//! It judges nothing and answers nothing.

use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

use crate::{
    excerpt::{VALUE, excerpt},
    object::workload::{WorkloadKind, Workloads},
};

use super::{
    bad_review::BadReview,
    parse::{Fault, parse},
};

pub(super) const API_VERSION: &str = "admission.k8s.io/v1";
pub(super) const KIND: &str = "AdmissionReview";

/// The kind of object that the request is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Subject<'a> {
    Pod,
    Workload(&'a WorkloadKind),
    Other,
}

/// The operation that is reviewed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Asks {
    Create,
    Update,
    Delete,
    Connect,
}

/// The longest uid of a request that is accepted, in bytes; those of the API server have 36.
const LONGEST_UID: usize = 253;

/// The subresources in which a whole pod is the object.
const POD_PARTS: [&str; 3] = ["", "ephemeralcontainers", "resize"];

/// The review; its objects are read as `O`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Envelope<O> {
    api_version: Option<String>,
    kind: Option<String>,
    request: Option<ReviewRequest<O>>,
}

/// The fields of `request` that an answer depends on.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "the object that an AdmissionReview has as `request`")]
pub(super) struct ReviewRequest<O> {
    pub(super) uid: Option<String>,
    resource: Option<Resource>,
    sub_resource: Option<String>,
    pub(super) namespace: Option<String>,
    operation: Option<String>,
    pub(super) dry_run: Option<bool>,
    pub(super) object: Option<O>,
    pub(super) old_object: Option<O>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with `group`, `version` and `resource`")]
struct Resource {
    #[serde(default)]
    group: String,
    resource: String,
}

/// Refuses JSON that is not an object: serde would read an array as the fields of a struct, in their order.
pub(super) fn must_be_object(text: &str) -> Result<(), BadReview> {
    let found = match text.trim_ascii_start().as_bytes().first() {
        Some(b'{') => return Ok(()),
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    };
    let valid = serde_json::from_str::<IgnoredAny>(text);
    Err(valid.map_or_else(|error| not_json(&error), |_| BadReview::NotAnObject { found }))
}

fn not_json(error: &serde_json::Error) -> BadReview {
    BadReview::NotJson { reason: error.to_string() }
}

/// Reads the envelope alone: the objects stay as they are.
pub(super) fn read(text: &str) -> Result<ReviewRequest<&RawValue>, BadReview> {
    let envelope: Envelope<&RawValue> = if let Ok(envelope) = serde_json::from_str(text) {
        envelope
    } else {
        // Only a body that can't be read is worth another look for the reason.
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| not_json(&error))?;
        parse(raw.get()).map_err(|Fault { field, reason }| BadReview::Unreadable { field, reason })?
    };
    envelope.request()
}

impl<O> Envelope<O> {
    /// The request, if the envelope is that of a review.
    pub(super) fn request(self) -> Result<ReviewRequest<O>, BadReview> {
        expect("apiVersion", self.api_version.as_deref(), API_VERSION)?;
        expect("kind", self.kind.as_deref(), KIND)?;
        self.request.ok_or(BadReview::Missing { field: "request" })
    }
}

fn expect(field: &'static str, found: Option<&str>, expected: &str) -> Result<(), BadReview> {
    match found {
        None | Some("") => Err(BadReview::Missing { field }),
        Some(found) if found == expected => Ok(()),
        Some(found) => Err(BadReview::Unreadable {
            field: field.to_owned(),
            reason: format!("`{}` is not `{expected}`", excerpt(found, VALUE)),
        }),
    }
}

impl<O> ReviewRequest<O> {
    pub(super) fn uid(&self) -> Result<&str, BadReview> {
        let uid = self.uid.as_deref().filter(|uid| !uid.is_empty());
        let uid = uid.ok_or(BadReview::Missing { field: "request.uid" })?;
        if uid.len() > LONGEST_UID {
            let reason = format!("has {} bytes; a uid has {LONGEST_UID} at most", uid.len());
            return Err(BadReview::Unreadable { field: "request.uid".to_owned(), reason });
        }
        Ok(uid)
    }

    pub(super) fn operation(&self) -> Result<Asks, BadReview> {
        match self.operation.as_deref() {
            Some("CREATE") => Ok(Asks::Create),
            Some("UPDATE") => Ok(Asks::Update),
            Some("DELETE") => Ok(Asks::Delete),
            Some("CONNECT") => Ok(Asks::Connect),
            None | Some("") => Err(BadReview::Missing { field: "request.operation" }),
            Some(other) => Err(BadReview::Unreadable {
                field: "request.operation".to_owned(),
                reason: format!("`{}` is not CREATE, UPDATE, DELETE or CONNECT", excerpt(other, VALUE)),
            }),
        }
    }

    /// What is asked about, by group and plural of the resource.
    pub(super) fn subject<'a>(&self, workloads: &'a Workloads) -> Result<Subject<'a>, BadReview> {
        let resource = self.resource.as_ref().ok_or(BadReview::Missing { field: "request.resource" })?;
        let part = self.sub_resource.as_deref().unwrap_or_default();
        Ok(match (resource.group.as_str(), resource.resource.as_str()) {
            ("", "pods") if POD_PARTS.contains(&part) => Subject::Pod,
            (group, plural) if part.is_empty() => {
                workloads.of_resource(group, plural).map_or(Subject::Other, Subject::Workload)
            }
            _ => Subject::Other,
        })
    }
}
