//! How a refusal reads: the `Status` object that a real API server answers with; it decides nothing.

use super::resource::Resource;
use serde_json::{Value, json};

/// Result of everything that can refuse a request.
pub(super) type Result<T> = std::result::Result<T, StatusError>;

/// A refusal: HTTP code, machine-readable reason, text and details.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct StatusError {
    /// HTTP status code.
    pub code: u16,
    /// Such as `NotFound`, or empty.
    pub reason: String,
    /// For people.
    pub message: String,
    /// `Status.details`, null when there are none.
    pub details: Box<Value>,
}

/// What validation found at one field.
#[derive(Clone, Debug)]
pub(super) struct Cause {
    pub(super) reason: &'static str,
    pub(super) field: String,
    pub(super) message: String,
}

impl Cause {
    pub(super) fn required(field: impl Into<String>, why: &str) -> Self {
        let message = match why {
            "" => "Required value".to_owned(),
            why => format!("Required value: {why}"),
        };
        Self { reason: "FieldValueRequired", field: field.into(), message }
    }

    pub(super) fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        let message = format!("Invalid value: {value}: {why}");
        Self { reason: "FieldValueInvalid", field: field.into(), message }
    }

    pub(super) fn duplicate(field: impl Into<String>, value: &str) -> Self {
        let message = format!("Duplicate value: {value:?}");
        Self { reason: "FieldValueDuplicate", field: field.into(), message }
    }

    pub(super) fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self { reason: "FieldValueForbidden", field: field.into(), message: format!("Forbidden: {why}") }
    }

    pub(super) fn too_long(field: impl Into<String>, limit: usize) -> Self {
        let message = format!("Too long: may not be more than {limit} bytes");
        Self { reason: "FieldValueTooLong", field: field.into(), message }
    }
}

impl StatusError {
    pub(super) fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self { code, reason: reason.to_owned(), message: message.into(), details: Box::new(Value::Null) }
    }

    fn about(self, resource: &Resource, name: &str) -> Self {
        let mut details = json!({ "name": name });
        if !resource.group.is_empty() {
            details["group"] = json!(resource.group);
        }
        details["kind"] = json!(resource.plural);
        Self { details: Box::new(details), ..self }
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(super) fn not_found(resource: &Resource, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} {name:?} not found", resource.qualified()))
            .about(resource, name)
    }

    pub(super) fn no_path() -> Self {
        let error = Self::new(404, "NotFound", "the server could not find the requested resource");
        Self { details: Box::new(json!({})), ..error }
    }

    pub(super) fn already_exists(resource: &Resource, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{} {name:?} already exists", resource.qualified()))
            .about(resource, name)
    }

    /// 409 with the usual opening, `target` being such as `pods/binding`.
    pub(super) fn conflict(resource: &Resource, target: &str, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {target} {name:?}: {why}");
        let mut error = Self::new(409, "Conflict", message).about(resource, name);
        if target.contains('/') {
            error.details["kind"] = json!(target);
        }
        error
    }

    /// 409 in the words of the store: `what` is `UID` or `ResourceVersion`, `pair` what was asked and what was found.
    pub(super) fn precondition(
        resource: &Resource,
        namespace: &str,
        name: &str,
        what: &str,
        pair: (&str, &str),
    ) -> Self {
        let (asked, found) = pair;
        let place = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/{}/{place}, ResourceVersion: 0, \
             AdditionalErrorMsg: Precondition failed: {what} in precondition: {asked}, {what} in object meta: {found}",
            resource.plural
        );
        Self::conflict(resource, &resource.qualified(), name, &why)
    }

    pub(super) fn modified(resource: &Resource, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, &resource.qualified(), name, why)
    }

    pub(super) fn forbidden(resource: &Resource, name: &str, why: &str) -> Self {
        Self::new(403, "Forbidden", format!("{} {name:?} is forbidden: {why}", resource.qualified()))
            .about(resource, name)
    }

    pub(super) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub(super) fn internal(why: &str) -> Self {
        let error = Self::new(500, "InternalError", format!("Internal error occurred: {why}"));
        Self { details: Box::new(json!({ "causes": [{ "message": why }] })), ..error }
    }

    pub(super) fn invalid(resource: &Resource, name: &str, causes: &[Cause]) -> Self {
        let texts: Vec<String> =
            causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let text = if let [one] = texts.as_slice() { one.clone() } else { format!("[{}]", texts.join(", ")) };
        let message = format!("{} {name:?} is invalid: {text}", resource.qualified_kind());
        let mut error = Self::new(422, "Invalid", message).about(resource, name);
        error.details["kind"] = json!(resource.kind);
        let causes: Vec<Value> = causes
            .iter()
            .map(|c| json!({ "reason": c.reason, "message": c.message, "field": c.field }))
            .collect();
        error.details["causes"] = json!(causes);
        error
    }

    /// The body of the answer.
    pub fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {},
            "status": "Failure", "message": self.message,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if !self.details.is_null() {
            status["details"] = (*self.details).clone();
        }
        status["code"] = json!(self.code);
        status
    }
}
