//! The answer to a request that is not reviewed: a `metav1.Status`. The API server passes its message on, so that the user reads the
//! reason.
//!
//! It does not decide what is refused.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use crate::excerpt::{FIELD, MESSAGE, shortened};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// An HTTP status of failure, the reason and, where it is one, the field.
#[derive(Debug)]
pub struct ReviewRefusal {
    status: StatusCode,
    field: Option<String>,
    leader: Option<String>,
    reason: String,
}

impl ReviewRefusal {
    /// Of this status, for this reason, which is shortened.
    pub fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self { status, field: None, leader: None, reason: shortened(reason, FIELD + MESSAGE) }
    }

    pub(super) fn of_field(self, field: Option<&str>) -> Self {
        Self { field: field.map(str::to_owned), ..self }
    }

    /// Names the replica that would answer.
    pub(super) fn naming(self, leader: Option<&str>) -> Self {
        Self { leader: leader.map(str::to_owned), ..self }
    }

    fn json(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.reason,
            "reason": word(self.status),
            "code": self.status.as_u16(),
        });
        if let Some(field) = &self.field {
            status["details"] = json!({"causes": [{"field": field, "message": self.reason}]});
        }
        if let Some(leader) = &self.leader {
            status["details"] = json!({"kind": "leases", "group": "coordination.k8s.io", "name": leader});
        }
        status
    }
}

impl IntoResponse for ReviewRefusal {
    fn into_response(self) -> Response {
        as_json(self.status, self.json().to_string())
    }
}

/// The machine-readable reason of a status (apimachinery `pkg/apis/meta/v1/types.go`, `StatusReason`).
fn word(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_REQUEST => "BadRequest",
        StatusCode::UNAUTHORIZED => "Unauthorized",
        StatusCode::FORBIDDEN => "Forbidden",
        StatusCode::NOT_FOUND => "NotFound",
        StatusCode::METHOD_NOT_ALLOWED => "MethodNotAllowed",
        StatusCode::REQUEST_TIMEOUT => "Timeout",
        StatusCode::PAYLOAD_TOO_LARGE => "RequestEntityTooLarge",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "UnsupportedMediaType",
        StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
        StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
        _ => "InternalError",
    }
}

/// An answer of JSON.
pub fn as_json(status: StatusCode, body: impl Into<Body>) -> Response {
    (status, [(header::CONTENT_TYPE, JSON)], body.into()).into_response()
}
