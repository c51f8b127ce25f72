//! What a verb answers, and the HTTP response that it becomes.

use super::status::Result;
use axum::body::{Body, Bytes};
use http::{HeaderValue, Response, header};
use serde_json::Value;

/// The answer of a verb.
pub(super) enum Reply {
    /// A JSON body.
    Json(u16, Value),
    /// A plain text body.
    Text(&'static str),
    /// A stream of watch events.
    Stream(Body),
}

/// The HTTP response of a reply or an error, with these warnings for the client.
pub(super) fn render(reply: Result<Reply>, warnings: &[String]) -> Response<Body> {
    let reply = reply.unwrap_or_else(|error| Reply::Json(error.code, error.to_status()));
    let (code, kind, body) = match reply {
        Reply::Json(code, value) => (code, "application/json", Body::from(Bytes::from(value.to_string()))),
        Reply::Text(text) => (200, "text/plain; charset=utf-8", Body::from(text)),
        Reply::Stream(body) => (200, "application/json", body),
    };
    let mut response = Response::new(body);
    *response.status_mut() =
        http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    for warning in warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    response
}
