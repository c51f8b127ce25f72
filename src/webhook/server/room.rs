//! The limit on the memory that reviews use at once. A review that finds no room waits for a moment and is then answered 429.
//!
//! A body counts with its announced length, before it is read. Probes and metrics need no room.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use http_body::Body as _;
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout},
};

use super::limits::BODY_LIMIT;
use crate::webhook::{
    metrics::{CountedOutcome, WebhookMetrics},
    paths::stage_of,
    refusal::ReviewRefusal,
};

/// The bytes of one permit; the smallest review takes one permit.
const PLACE: usize = 64 * 1024;

/// The value of `Retry-After`, in seconds: the API server repeats the request within its time-out (client-go `rest/with_retry.go`: 429
/// with this header).
const COME_AGAIN: HeaderValue = HeaderValue::from_static("1");

/// Room for the bodies of reviews. Clones share it.
#[derive(Clone, Debug)]
pub struct BodyRoom {
    places: Arc<Semaphore>,
    patience: Duration,
}

impl BodyRoom {
    /// Room for `bytes` of bodies, and at least for the largest one; a review waits for `patience` at most.
    pub fn new(bytes: usize, patience: Duration) -> Self {
        Self { places: Arc::new(Semaphore::new(bytes.max(BODY_LIMIT) / PLACE)), patience }
    }
}

impl Default for BodyRoom {
    /// 128 MiB, which is two thousand ordinary reviews. A review waits for at most a third of the webhook's time-out of 3 s.
    fn default() -> Self {
        Self::new(128 * 1024 * 1024, Duration::from_secs(1))
    }
}

/// Passes a review on when there is room for it, and answers 429 if there is none in time.
pub(in crate::webhook) async fn bounded(
    State(state): State<Arc<(BodyRoom, WebhookMetrics)>>,
    request: Request,
    next: Next,
) -> Response {
    let (room, metrics) = &*state;
    let started = Instant::now();
    let needed = places(&request);
    let Ok(held) = timeout(room.patience, room.places.acquire_many(needed)).await else {
        if let Some(stage) = stage_of(request.uri().path()) {
            metrics.count(stage, CountedOutcome::TurnedAway, started);
        }
        let why = "too many reviews at once; ask again";
        let refusal = ReviewRefusal::new(StatusCode::TOO_MANY_REQUESTS, why);
        return ([(header::RETRY_AFTER, COME_AGAIN)], refusal).into_response();
    };
    let response = next.run(request).await;
    drop(held);
    response
}

/// The announced length of the body; without one, the largest allowed length.
fn places(request: &Request) -> u32 {
    let announced = request.body().size_hint().upper().and_then(|bytes| usize::try_from(bytes).ok());
    let bytes = announced.unwrap_or(BODY_LIMIT).clamp(1, BODY_LIMIT);
    u32::try_from(bytes.div_ceil(PLACE)).expect("the largest body has few places")
}
