//! One request to the API server, sent once. The error says whether the API server answered.
//!
//! It never repeats a request: the caller decides what a failure means, and when to try again.

use std::time::Duration;

use http::{Request, Response, header::RETRY_AFTER};
use http_body_util::BodyExt as _;
use jiff::SignedDuration;
use kube::{Client, client::Body, core::Status};
use serde::de::DeserializeOwned;

use crate::{
    excerpt::{MESSAGE, brief, shortened},
    scheduling::{Setback, effect},
};

/// The longest time after its sending in which a write can still take effect: the scheduler relies on it.
pub const REACH: Duration = effect::REACH.unsigned_abs();
/// The time after which the API server ends a write by itself. The second between it and [`REACH`] is for the way to the API server,
/// for timers, and for clocks of different speeds.
pub const SERVER_TIMEOUT: Duration = Duration::from_secs(REACH.as_secs() - 1);
/// The longest time to wait for the answer to a write.
pub const CLIENT_TIMEOUT: Duration = Duration::from_secs(8);

/// The longest pause that a `Retry-After` of the API server can ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The API server answered with an error.
    #[error("{message} (HTTP status {code})")]
    Answered {
        /// The HTTP status.
        code: u16,
        /// An excerpt of its message.
        message: String,
        /// Its `Retry-After`; zero without one.
        retry_after: Option<Duration>,
    },
    /// The connection broke, or the answer can't be read.
    #[error("no answer: {}", brief(.0))]
    Lost(#[source] kube::Error),
    /// No answer came in time.
    #[error("no answer within {0:?}")]
    Late(Duration),
}

impl SendError {
    /// The HTTP status, if the API server answered.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Answered { code, .. } => Some(*code),
            Self::Lost(_) | Self::Late(_) => None,
        }
    }

    /// Whether the API server rejected the request itself: it was not carried out, and repeating it is useless.
    pub fn is_refusal(&self) -> bool {
        matches!(self.code(), Some(400 | 401 | 403 | 405 | 413 | 415 | 422))
    }

    /// Whether the API server is overloaded and did not carry out the request.
    pub fn is_throttled(&self) -> bool {
        self.code() == Some(429)
    }

    /// The `Retry-After` of the API server; zero without one.
    pub fn wait(&self) -> SignedDuration {
        let asked = match self {
            Self::Answered { retry_after, .. } => *retry_after,
            Self::Lost(_) | Self::Late(_) => None,
        };
        let wait = asked.unwrap_or_default().min(LONGEST_WAIT);
        SignedDuration::try_from(wait).unwrap_or_default()
    }

    /// The failure in the scheduler's terms.
    pub fn setback(&self) -> Setback {
        Setback { why: self.to_string(), wait: self.wait() }
    }
}

/// Sends a request and reads its answer, within `patience`.
pub async fn send<T: DeserializeOwned>(
    client: Client,
    request: Request<Vec<u8>>,
    patience: Duration,
) -> Result<T, SendError> {
    let answered = async {
        let response = client.send(request.map(Body::from)).await.map_err(SendError::Lost)?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(SendError::Lost)?.to_bytes();
        if !head.status.is_success() {
            return Err(failure(&Response::from_parts(head, body.to_vec())));
        }
        serde_json::from_slice(&body).map_err(|error| SendError::Lost(kube::Error::SerdeError(error)))
    };
    tokio::time::timeout(patience, answered).await.unwrap_or(Err(SendError::Late(patience)))
}

/// Reads an error answer. The wait is in a header, if the request never reached a handler
/// (kubernetes `staging/src/k8s.io/apiserver/pkg/server/filters/maxinflight.go`, `tooManyRequests`), or in the Status
/// (`apimachinery/pkg/api/errors`, `NewServerTimeout`, `NewTooManyRequests`); the longer one counts.
fn failure(response: &Response<Vec<u8>>) -> SendError {
    let code = response.status().as_u16();
    let header = response.headers().get(RETRY_AFTER);
    let header = header.and_then(|value| value.to_str().ok()?.parse().ok()).map(Duration::from_secs);
    let status = serde_json::from_slice::<Status>(response.body()).ok();
    let details = status.as_ref().and_then(|status| status.details.as_ref());
    let details =
        details.map(|details| u64::from(details.retry_after_seconds)).filter(|seconds| *seconds > 0);
    let said = status.map(|status| status.message).filter(|message| !message.is_empty());
    let message = said.unwrap_or_else(|| String::from_utf8_lossy(response.body()).trim().to_owned());
    let message = shortened(message, MESSAGE);
    SendError::Answered { code, message, retry_after: header.max(details.map(Duration::from_secs)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16, header: Option<&str>, body: &str) -> SendError {
        let response = Response::builder().status(code);
        let response =
            header.into_iter().fold(response, |response, value| response.header(RETRY_AFTER, value));
        failure(&response.body(body.as_bytes().to_vec()).unwrap())
    }

    #[test]
    fn the_wait_is_read_from_header_and_status_and_bounded() {
        let status = |seconds: u32| {
            format!(
                r#"{{"kind":"Status","message":"busy","code":500,"details":{{"retryAfterSeconds":{seconds}}}}}"#
            )
        };
        let cases = [
            ("plain text with a header", answer(429, Some("3"), "Too many requests"), 3),
            ("a status without a header", answer(500, None, &status(4)), 4),
            ("the longer of both", answer(503, Some("2"), &status(9)), 9),
            ("nothing is asked for", answer(500, None, &status(0)), 0),
            ("a date, which no API server sends", answer(429, Some("Wed, 21 Oct 2026 07:28:00 GMT"), ""), 0),
            ("more than anybody waits", answer(503, Some("86400"), ""), 30),
            ("more than can be counted", answer(503, Some("99999999999999999999"), ""), 0),
        ];
        for (case, error, seconds) in cases {
            assert_eq!(error.wait(), SignedDuration::from_secs(seconds), "{case}");
        }
        assert_eq!(SendError::Late(Duration::from_secs(8)).wait(), SignedDuration::ZERO);
    }

    #[test]
    fn a_long_answer_is_shortened() {
        let said = answer(403, None, &"x".repeat(100_000)).to_string();
        assert_eq!(said, format!("{}… (99200 more characters) (HTTP status 403)", "x".repeat(MESSAGE)));
        let lost = SendError::Lost(kube::Error::Service("x".repeat(100_000).into())).to_string();
        assert!(lost.len() < 1000, "{} bytes", lost.len());
    }

    #[test]
    fn a_failure_says_what_the_server_said_and_a_missing_answer_what_was_missed() {
        let said = answer(429, Some("1"), "Too many requests, please try again later.\n").to_string();
        assert_eq!(said, "Too many requests, please try again later. (HTTP status 429)");
        assert_eq!(SendError::Late(Duration::from_secs(8)).to_string(), "no answer within 8s");
    }
}
