//! What goes wrong between a client and the API server: a service around [`ApiService`] that a [`Plan`] leads astray, call by call.
//!
//! It must not choose: the plan does, from its own seed. A plan of nothing changes nothing.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::body::{Body, Bytes};
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use http::{Request, Response, header, request::Parts};
use http_body_util::{BodyExt, Full};
use serde_json::json;
use tokio::{sync::Notify, task::JoinSet};
use tower::Service;

use super::ApiService;

/// How an event says that its object is gone.
const DELETED: &[u8] = br#"{"type":"DELETED""#;

/// What becomes of one call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CallFault {
    /// It is served.
    None,
    /// It reaches the server after this time.
    SlowRequest(Duration),
    /// It is served at once, and its answer takes this time.
    SlowAnswer(Duration),
    /// The server refuses it with this HTTP status, having done nothing.
    Refused(u16),
    /// The server does it and answers this HTTP status of failure.
    DoneButRefused(u16),
    /// The connection breaks before the call reaches the server.
    Lost,
    /// The connection breaks after the server has done it.
    AnswerLost,
    /// The connection breaks, and the call reaches the server after this time all the same.
    Late(Duration),
    /// Nothing reaches the server, and the connection breaks only after this time.
    Silence(Duration),
    /// The server does it, and nothing is heard of it any more: its caller dies.
    CallerDies,
    /// Its caller dies before it is sent.
    CallerDiesFirst,
}

/// What becomes of one event of a watch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EventFault {
    /// It arrives.
    None,
    /// It, and all after it, arrive after this time.
    Slow(Duration),
    /// It arrives twice.
    Twice,
    /// It arrives, and then the one before it once more. Only where neither is a deletion: no server
    /// tells of an object again that is gone.
    ThenStale,
    /// It is left out; allowed for bookmarks only, since a server never skips a change.
    LeftOut,
    /// The stream ends in its place.
    Cut,
    /// The connection breaks in its place.
    Broken,
    /// The server says 410 in its place and ends the stream.
    Expired,
}

/// One call, as a plan sees it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Call {
    /// HTTP method.
    pub method: String,
    /// Path, without the query.
    pub path: String,
    /// Query, without the question mark.
    pub query: String,
}

impl Call {
    /// Whether it opens a watch.
    pub fn is_watch(&self) -> bool {
        self.query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"))
    }

    /// Whether it may change anything.
    pub fn is_write(&self) -> bool {
        self.method != "GET"
    }
}

impl fmt::Display for Call {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let watch = if self.is_watch() { " (watch)" } else { "" };
        write!(formatter, "{} {}{watch}", self.method, self.path)
    }
}

/// Decides what goes wrong.
pub trait Plan: Send + 'static {
    /// What becomes of a call.
    fn call(&mut self, call: &Call) -> CallFault;

    /// What becomes of an event of a watch; `line` is its JSON.
    fn event(&mut self, watch: &Call, line: &[u8]) -> EventFault;

    /// The server has served a call with this HTTP status.
    fn served(&mut self, call: &Call, status: u16);

    /// What reaches the server instead of this body.
    fn request(&mut self, _call: &Call, body: Bytes) -> Bytes {
        body
    }

    /// What reaches the client instead of this answer, or of this event of a watch.
    fn answer(&mut self, _call: &Call, status: u16, body: Bytes) -> (u16, Bytes) {
        (status, body)
    }
}

/// A connection broke, or never came about.
#[derive(Debug, thiserror::Error)]
#[error("connection reset by peer")]
pub struct Reset;

/// An API server with faults between it and its client; clones share plan and line.
#[derive(Clone)]
pub struct FaultyApi {
    server: ApiService,
    shared: Arc<Shared>,
}

struct Shared {
    plan: Mutex<Box<dyn Plan>>,
    /// Calls that arrive although their connection has broken.
    late: Mutex<JoinSet<()>>,
    death: Notify,
    /// How often all watches have been broken, and who waits for the next time: in the order in which they came, so that it repeats.
    breaks: AtomicU64,
    broken: Notify,
}

impl FaultyApi {
    /// Faults by this plan in front of that server.
    pub fn new(server: ApiService, plan: Box<dyn Plan>) -> Self {
        let shared = Shared {
            plan: Mutex::new(plan),
            late: Mutex::default(),
            death: Notify::new(),
            breaks: AtomicU64::new(0),
            broken: Notify::new(),
        };
        Self { server, shared: Arc::new(shared) }
    }

    /// A client on this side of the faults; it must be made inside a tokio runtime.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }

    /// Returns when a call was made whose caller is to die.
    pub async fn caller_dies(&self) {
        self.shared.death.notified().await;
    }

    /// Breaks every watch that is open, as an API server does that ends.
    pub fn break_watches(&self) {
        self.shared.breaks.fetch_add(1, Ordering::Relaxed);
        self.shared.broken.notify_waiters();
    }

    /// Returns once no call is on its way any more that lost its caller.
    pub async fn late_calls(&self) {
        let mut late = std::mem::take(&mut *held(&self.shared.late));
        while late.join_next().await.is_some() {}
    }

    fn plan(&self) -> MutexGuard<'_, Box<dyn Plan>> {
        held(&self.shared.plan)
    }

    async fn go(self, parts: Parts, body: Bytes) -> Result<Response<Body>, Reset> {
        let call = Call {
            method: parts.method.to_string(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
        };
        let fault = self.plan().call(&call);
        match fault {
            CallFault::None => Ok(self.serve(call, parts, body).await),
            CallFault::SlowRequest(time) => {
                tokio::time::sleep(time).await;
                Ok(self.serve(call, parts, body).await)
            }
            CallFault::SlowAnswer(time) => {
                let answer = self.serve(call, parts, body).await;
                tokio::time::sleep(time).await;
                Ok(answer)
            }
            CallFault::Refused(code) => Ok(refusal(code)),
            CallFault::DoneButRefused(code) => {
                drop(self.serve(call, parts, body).await);
                Ok(refusal(code))
            }
            CallFault::Lost => Err(Reset),
            CallFault::AnswerLost => {
                drop(self.serve(call, parts, body).await);
                Err(Reset)
            }
            CallFault::Late(time) => {
                let server = self.clone();
                held(&self.shared.late).spawn(async move {
                    tokio::time::sleep(time).await;
                    drop(server.serve(call, parts, body).await);
                });
                Err(Reset)
            }
            CallFault::Silence(time) => {
                tokio::time::sleep(time).await;
                Err(Reset)
            }
            CallFault::CallerDies => {
                drop(self.serve(call, parts, body).await);
                self.shared.death.notify_one();
                std::future::pending().await
            }
            CallFault::CallerDiesFirst => {
                self.shared.death.notify_one();
                std::future::pending().await
            }
        }
    }

    async fn serve(&self, call: Call, parts: Parts, body: Bytes) -> Response<Body> {
        let body = self.plan().request(&call, body);
        let mut server = self.server.clone();
        let Ok(response) = server.call(Request::from_parts(parts, Full::new(body))).await;
        let (mut head, body) = response.into_parts();
        self.plan().served(&call, head.status.as_u16());
        if call.is_watch() && head.status.is_success() {
            return Response::from_parts(head, self.watch(call, body));
        }
        let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let (status, body) = self.plan().answer(&call, head.status.as_u16(), body);
        head.status = http::StatusCode::from_u16(status).expect("a plan answers real HTTP codes");
        Response::from_parts(head, Body::from(body))
    }

    /// The stream of a watch, event by event.
    fn watch(&self, call: Call, body: Body) -> Body {
        let breaks = self.shared.breaks.load(Ordering::Relaxed);
        let (lines, ready) = (body.into_data_stream(), VecDeque::new());
        let stream = Events { api: self.clone(), call, lines, ready, before: None, breaks };
        Body::from_stream(stream::unfold(Some(stream), |events| async { events?.next().await }))
    }
}

/// What is left of a stream of events.
struct Events {
    api: FaultyApi,
    call: Call,
    lines: axum::body::BodyDataStream,
    ready: VecDeque<Bytes>,
    /// The last event that has arrived.
    before: Option<Bytes>,
    /// How often watches had been broken when it began.
    breaks: u64,
}

/// One step of a stream: a line or an error, and what is left.
type Step = Option<(Result<Bytes, Reset>, Option<Events>)>;

impl Events {
    async fn next(mut self) -> Step {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Some((Ok(line), Some(self)));
            }
            let shared = self.api.shared.clone();
            let broken = shared.broken.notified();
            if shared.breaks.load(Ordering::Relaxed) != self.breaks {
                return Some((Err(Reset), None));
            }
            let line = tokio::select! {
                biased;
                () = broken => return Some((Err(Reset), None)),
                line = self.lines.next() => line?.ok()?,
            };
            let fault = self.api.plan().event(&self.call, &line);
            let line = self.api.plan().answer(&self.call, 200, line).1;
            let before = self.before.replace(line.clone());
            match fault {
                EventFault::None => self.ready.push_back(line),
                EventFault::Slow(time) => {
                    tokio::time::sleep(time).await;
                    self.ready.push_back(line);
                }
                EventFault::Twice => self.ready.extend([line.clone(), line]),
                EventFault::ThenStale => {
                    let stale = before.filter(|before| !is_deletion(before) && !is_deletion(&line));
                    self.ready.push_back(line);
                    self.ready.extend(stale);
                }
                EventFault::LeftOut => {}
                EventFault::Cut => return None,
                EventFault::Broken => return Some((Err(Reset), None)),
                EventFault::Expired => return Some((Ok(expired()), None)),
            }
        }
    }
}

impl<B> Service<Request<B>> for FaultyApi
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: fmt::Debug,
{
    type Response = Response<Body>;
    type Error = Reset;
    type Future = BoxFuture<'static, Result<Response<Body>, Reset>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Reset>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let api = self.clone();
        let (parts, body) = request.into_parts();
        async move {
            let body = body.collect().await.map_err(|_| Reset)?.to_bytes();
            api.go(parts, body).await
        }
        .boxed()
    }
}

fn is_deletion(line: &[u8]) -> bool {
    line.starts_with(DELETED)
}

fn status(code: u16) -> serde_json::Value {
    let reason = match code {
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        504 => "Timeout",
        _ => "InternalError",
    };
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("a fault answers {code}"), "reason": reason, "code": code,
        "details": {"retryAfterSeconds": 1}})
}

fn refusal(code: u16) -> Response<Body> {
    let answer = Response::builder().status(code).header(header::CONTENT_TYPE, "application/json");
    let answer = if code == 429 { answer.header(header::RETRY_AFTER, "1") } else { answer };
    answer.body(Body::from(status(code).to_string())).expect("a plan refuses with real HTTP codes")
}

fn expired() -> Bytes {
    Bytes::from(format!("{}\n", json!({"type": "ERROR", "object": status(410)})))
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no holder of this lock panics")
}
