//! The limit on the memory that bodies use at once. A body that finds no room waits for a moment and is then answered 429, which is an error to
//! kube-scheduler: it tries the pod again.
//!
//! A body counts with its announced length, before it is read, and is read in a time, so that a silent client gives its room back.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, to_bytes},
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::StatusCode;
use http_body::Body as _;
use tokio::{sync::Semaphore, time::timeout};

use super::BODY_LIMIT;

/// The bytes of one permit; the smallest body takes one permit.
const PLACE: usize = 64 * 1024;

/// Room for two of the largest bodies: kube-scheduler asks about one pod at a time, beside Bindings, which are small.
const ROOM: usize = 2 * BODY_LIMIT;

/// So long a body waits for room.
const PATIENCE: Duration = Duration::from_secs(1);

/// So long a body takes to be read at most; kube-scheduler gives up after 5 s by default.
const READ: Duration = Duration::from_secs(5);

/// Room for bodies. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct ExtenderRoom(Arc<Semaphore>);

impl Default for ExtenderRoom {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ROOM / PLACE)))
    }
}

/// Reads a body and passes it on when there is room for it.
pub(super) async fn bounded(State(room): State<ExtenderRoom>, request: Request, next: Next) -> Response {
    let Ok(Ok(held)) = timeout(PATIENCE, room.0.acquire_many(places(&request))).await else {
        return (StatusCode::TOO_MANY_REQUESTS, "too many bodies at once; ask again\n").into_response();
    };
    let (parts, body) = request.into_parts();
    let response = match timeout(READ, to_bytes(body, BODY_LIMIT)).await {
        Err(_) => {
            (StatusCode::REQUEST_TIMEOUT, format!("the body has not come within {READ:?}\n")).into_response()
        }
        Ok(Err(_)) => {
            let why = format!("the body is larger than {BODY_LIMIT} bytes, or was cut off\n");
            (StatusCode::PAYLOAD_TOO_LARGE, why).into_response()
        }
        Ok(Ok(body)) => next.run(Request::from_parts(parts, Body::from(body))).await,
    };
    drop(held);
    response
}

/// The announced length of the body; without one, the largest allowed length.
fn places(request: &Request) -> u32 {
    let announced = request.body().size_hint().upper().and_then(|bytes| usize::try_from(bytes).ok());
    let bytes = announced.unwrap_or(BODY_LIMIT).clamp(1, BODY_LIMIT);
    u32::try_from(bytes.div_ceil(PLACE)).expect("the largest body has few places")
}
