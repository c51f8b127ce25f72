//! The paths of the webhook: which clients may use them, the size and the form of a request, and the answer to a failure.
//!
//! It contains no rule and no socket. Every body that it writes is JSON, except the metrics.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use prometheus_client::registry::Registry;
use serde_json::json;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};
use tracing::error;

use super::{
    metrics::{CountedOutcome, WebhookMetrics},
    page::{
        bearer::{Access, bearer, refused},
        detail::AskedDetail,
        exposition::{ExpositionFormat, ExpositionPage},
    },
    paths::{ADOPT, MUTATE, VALIDATE, stage_of},
    refusal::{ReviewRefusal, as_json},
    review::{Judge, ReviewAnswer, answer, bad_review::BadReview, onward::Onward, record::log},
    server::{
        limits::BODY_LIMIT,
        room::{BodyRoom, bounded},
        serve::Peer,
    },
};
use crate::{admission::AdmissionStage, object::Workloads};

/// The most bytes that are allocated in advance for a body that announces its length.
const USUAL_BODY: usize = 64 * 1024;

/// So many times its limit of a too large body is read and discarded, so that its sender gets to read the answer.
const DISCARDED: usize = 4;

/// The longest time to read a body; the API server itself waits for at most 30 s.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The state that `/readyz` reports.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServerReadiness {
    /// Not ready: the namespaces are not listed yet.
    Starting,
    /// Ready for reviews.
    Ready,
    /// Not ready: the process is ending, and still answers reviews that arrive.
    Draining,
}

/// The path of the metrics. Where a token is asked for, its user needs the verb `get` on it as a non-resource URL.
pub const METRICS: &str = "/metrics";

/// What a scrape shows beside what is counted all the time, with what it asks for, if anything; `None`: nothing now.
pub type Scrape = Arc<dyn Fn(Option<AskedDetail>) -> BoxFuture<'static, Option<Registry>> + Send + Sync>;

/// The functions and values that the paths use.
#[derive(Clone)]
pub struct Webhook {
    /// Judges pods by the admission rules.
    pub judge: Judge,
    /// The kinds of workloads whose pods are judged.
    pub workloads: Arc<Workloads>,
    /// Receives the pods that are admitted; `None` in a process without a binder.
    pub onward: Option<Onward>,
    /// The webhook's metrics.
    pub metrics: WebhookMetrics,
    /// The registry that `/metrics` shows, with `metrics` and those of the other parts of the process.
    pub registry: Arc<Registry>,
    /// What is rendered anew for each scrape, where there is anything: `None` shows nothing beside `registry`.
    pub scrape: Option<Scrape>,
    /// Checks who may get [`METRICS`].
    pub scraper: Access,
    /// The state that `/readyz` reports.
    pub readiness: watch::Receiver<ServerReadiness>,
    /// Why `/healthz` fails now; `None`: it does not.
    pub health: Health,
}

/// Says why the process should be restarted; `None`: it is well.
pub type Health = Arc<dyn Fn() -> Option<&'static str> + Send + Sync>;

impl Webhook {
    /// A webhook that knows the built-in kinds of workloads, hands pods to no binder and shows nothing beside what is counted, to every client.
    pub fn new(
        judge: Judge,
        metrics: WebhookMetrics,
        registry: Arc<Registry>,
        readiness: watch::Receiver<ServerReadiness>,
    ) -> Self {
        let scraper: Access = Arc::new(|_| Box::pin(async { Ok(()) }));
        Self {
            judge,
            workloads: Arc::default(),
            onward: None,
            metrics,
            registry,
            scrape: None,
            scraper,
            readiness,
            health: Arc::new(|| None),
        }
    }
}

/// The paths: `POST /mutate`, `POST /adopt`, `POST /validate`, `GET /healthz`, `GET /readyz`, `GET /metrics`.
pub fn router(webhook: Webhook) -> Router {
    router_within(webhook, BodyRoom::default())
}

/// As [`router`], with this limit on the memory for reviews.
pub fn router_within(webhook: Webhook, room: BodyRoom) -> Router {
    let bounded = axum::middleware::from_fn_with_state(Arc::new((room, webhook.metrics.clone())), bounded);
    Router::new()
        .route(MUTATE, post(mutate))
        .route(ADOPT, post(adopt))
        .route(VALIDATE, post(validate))
        .route_layer(bounded)
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route(METRICS, get(metrics))
        .fallback(|| async { ReviewRefusal::new(StatusCode::NOT_FOUND, "no such path") })
        .method_not_allowed_fallback(wrong_method)
        .with_state(Arc::new(webhook))
}

/// The answer to a method that a path does not have.
pub async fn wrong_method() -> ReviewRefusal {
    ReviewRefusal::new(StatusCode::METHOD_NOT_ALLOWED, "this path does not accept this method")
}

/// As [`router`], but answers reviews only to clients with a certificate of the client authority
/// ([`super::Certificates::server_config_for`]); probes and metrics need none.
pub fn verified_router(webhook: Webhook) -> Router {
    router(webhook).layer(axum::middleware::from_fn(verified))
}

async fn verified(request: Request, next: Next) -> Response {
    let is_review = stage_of(request.uri().path()).is_some();
    if is_review && request.extensions().get::<Peer>() != Some(&Peer::Verified) {
        let why = "reviews are answered to clients with a certificate of the configured authority only";
        return ReviewRefusal::new(StatusCode::FORBIDDEN, why).into_response();
    }
    next.run(request).await
}

async fn mutate(State(webhook): State<Arc<Webhook>>, request: Request) -> Response {
    review(&webhook, AdmissionStage::Mutate, request).await
}

async fn adopt(State(webhook): State<Arc<Webhook>>, request: Request) -> Response {
    review(&webhook, AdmissionStage::Adopt, request).await
}

async fn validate(State(webhook): State<Arc<Webhook>>, request: Request) -> Response {
    review(&webhook, AdmissionStage::Validate, request).await
}

async fn healthz(State(webhook): State<Arc<Webhook>>) -> Response {
    match (webhook.health)() {
        None => said(StatusCode::OK, "ok"),
        Some(why) => ReviewRefusal::new(StatusCode::SERVICE_UNAVAILABLE, why).into_response(),
    }
}

async fn readyz(State(webhook): State<Arc<Webhook>>) -> Response {
    let readiness = *webhook.readiness.borrow();
    match readiness {
        ServerReadiness::Starting => {
            ReviewRefusal::new(StatusCode::SERVICE_UNAVAILABLE, "starting").into_response()
        }
        ServerReadiness::Ready => said(StatusCode::OK, "ok"),
        ServerReadiness::Draining => {
            ReviewRefusal::new(StatusCode::SERVICE_UNAVAILABLE, "draining").into_response()
        }
    }
}

async fn metrics(State(webhook): State<Arc<Webhook>>, uri: Uri, headers: HeaderMap) -> Response {
    if let Err(denial) = (webhook.scraper)(bearer(&headers)).await {
        return refused(&denial);
    }
    let asked = match AskedDetail::of(uri.query().unwrap_or_default()) {
        Ok(asked) => asked,
        Err(why) => return ReviewRefusal::new(StatusCode::BAD_REQUEST, why).into_response(),
    };
    let format = ExpositionFormat::accepted(&headers);
    let scraped = match &webhook.scrape {
        Some(scrape) => scrape(asked).await,
        None => None,
    };
    // The page of a large cluster has a hundred megabytes: reviews must not wait for it.
    let render = move || ExpositionPage::of([&*webhook.registry].into_iter().chain(scraped.as_ref()), format);
    match tokio::task::spawn_blocking(render).await {
        Ok(page) => ([(header::CONTENT_TYPE, format.content_type())], Body::from(page)).into_response(),
        Err(error) => {
            error!(%error, "rendering the metrics failed");
            ReviewRefusal::new(StatusCode::INTERNAL_SERVER_ERROR, "rendering the metrics failed")
                .into_response()
        }
    }
}

async fn review(webhook: &Webhook, stage: AdmissionStage, request: Request) -> Response {
    let started = Instant::now();
    let (counted, response) = match body(request, BODY_LIMIT).await {
        Ok(body) => judged(webhook, stage, &body),
        Err(refusal) => (CountedOutcome::Refused, refusal.into_response()),
    };
    webhook.metrics.count(stage, counted, started);
    response
}

/// A panic ends only this review: the API server gets 500 and applies the webhook's `failurePolicy`.
fn judged(webhook: &Webhook, stage: AdmissionStage, body: &[u8]) -> (CountedOutcome, Response) {
    let answered = || -> Result<ReviewAnswer, BadReview> {
        let mut answer = answer(body, stage, &webhook.judge, &webhook.workloads)?;
        let handed = webhook.onward.as_ref().and_then(|onward| onward.go_on(&mut answer, body.len()));
        if let Some(handed) = handed {
            webhook.metrics.count_hint(handed);
        }
        Ok(answer)
    };
    match catch_unwind(AssertUnwindSafe(answered)) {
        Ok(Ok(answer)) => {
            webhook.metrics.count_violations(&answer);
            log(stage, body, &answer);
            let json = serde_json::to_vec(&answer.review).expect("an answer has string keys only");
            (CountedOutcome::Answered(answer.outcome), as_json(StatusCode::OK, json))
        }
        Ok(Err(bad)) => {
            let refusal = ReviewRefusal::new(StatusCode::BAD_REQUEST, bad.to_string()).of_field(bad.field());
            (CountedOutcome::Refused, refusal.into_response())
        }
        Err(_) => {
            error!(?stage, "a review panicked");
            let refusal =
                ReviewRefusal::new(StatusCode::INTERNAL_SERVER_ERROR, "an internal error ended the review");
            (CountedOutcome::Panicked, refusal.into_response())
        }
    }
}

/// Reads a body of JSON with at most so many bytes, or makes the refusal.
pub async fn body(request: Request, limit: usize) -> Result<Bytes, ReviewRefusal> {
    if !is_json(request.headers().get(header::CONTENT_TYPE)) {
        let refusal =
            ReviewRefusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content-type must be application/json");
        return Err(refusal);
    }
    let late = ReviewRefusal::new(StatusCode::REQUEST_TIMEOUT, "the body took too long");
    timeout(BODY_TIMEOUT, collected(request.into_body(), limit)).await.unwrap_or(Err(late))
}

fn is_json(content_type: Option<&HeaderValue>) -> bool {
    let text = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = text.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

async fn collected(mut body: Body, limit: usize) -> Result<Bytes, ReviewRefusal> {
    // The API server announces the length of its body; a body that turns out longer is cut off below.
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(limit);
    let mut kept = Vec::with_capacity(announced.min(USUAL_BODY));
    let mut seen = 0_usize;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            ReviewRefusal::new(StatusCode::BAD_REQUEST, format!("the body ended early: {error}"))
        })?;
        let Some(data) = frame.data_ref() else { continue };
        seen = seen.saturating_add(data.len());
        if seen <= limit {
            kept.extend_from_slice(data);
        } else if seen <= DISCARDED.saturating_mul(limit) {
            kept = Vec::new();
        } else {
            break;
        }
    }
    if seen > limit {
        let refusal = ReviewRefusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body is larger than {limit} bytes"),
        );
        return Err(refusal);
    }
    Ok(kept.into())
}

fn said(status: StatusCode, word: &str) -> Response {
    as_json(status, json!({ "status": word }).to_string())
}
