//! The way from one binder to the API server: it can be cut, be slow as a loaded server is, and its watches can fall silent.
//!
//! It must not change a request. What has arrived is carried out even when its sender has hung up meanwhile.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::body::Body;
use berth_sandbox::{ApiService, Sandbox};
use futures::{FutureExt, StreamExt, future::BoxFuture};
use http::{Method, Request, Response, StatusCode, header};
use jiff::Timestamp;
use tokio::{
    sync::{oneshot, watch},
    task::JoinSet,
};
use tower::{BoxError, Service};

/// Which requests don't get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Nothing,
    Leases,
    Everything,
}

/// A Binding that came before the API server, at the time when it did.
#[derive(Clone, Debug)]
pub(crate) struct Carried {
    pub(crate) by: &'static str,
    pub(crate) path: String,
    pub(crate) at: Timestamp,
    pub(crate) answer: StatusCode,
}

/// Every Binding, by whomever.
pub(crate) type Log = Arc<Mutex<Vec<Carried>>>;

#[derive(Clone, Copy, Debug)]
struct Condition {
    cut: Cut,
    bindings_take: Duration,
    locks_take: Duration,
    lease_writes_take: Duration,
}

#[derive(Debug)]
struct Shared {
    condition: Mutex<Condition>,
    log: Log,
    /// How many lock writes have arrived.
    locks: watch::Sender<u32>,
    watches: watch::Sender<Watches>,
    /// How many lists of whole pods have arrived.
    lists: AtomicU32,
    /// How many lists of all pods by name have arrived.
    lists_of_names: AtomicU32,
    /// How many writes of the Lease have arrived.
    lease_writes: watch::Sender<u32>,
    /// How many of them were answered with a conflict.
    lease_conflicts: watch::Sender<u32>,
    carrying: Mutex<JoinSet<()>>,
}

/// How many watches were opened, and how many of the first tell nothing for now.
#[derive(Clone, Copy, Debug, Default)]
struct Watches {
    opened: u32,
    silent: u32,
}

/// One binder's way to the API server; clones are the same way.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    who: &'static str,
    sandbox: Sandbox,
    service: ApiService,
    shared: Arc<Shared>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Lease,
    LeaseWrite,
    Binding,
    Lock,
    Watch,
    /// Whole pods, not those of one node.
    List,
    Names,
    Other,
}

impl Link {
    pub(crate) fn new(who: &'static str, sandbox: &Sandbox, log: Log) -> Self {
        let condition = Condition {
            cut: Cut::Nothing,
            bindings_take: Duration::ZERO,
            locks_take: Duration::ZERO,
            lease_writes_take: Duration::ZERO,
        };
        let shared = Shared {
            condition: Mutex::new(condition),
            log,
            locks: watch::channel(0).0,
            watches: watch::Sender::default(),
            lists: AtomicU32::new(0),
            lists_of_names: AtomicU32::new(0),
            lease_writes: watch::channel(0).0,
            lease_conflicts: watch::channel(0).0,
            carrying: Mutex::new(JoinSet::new()),
        };
        Self { who, sandbox: sandbox.clone(), service: sandbox.service(), shared: Arc::new(shared) }
    }

    pub(crate) fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }

    pub(crate) fn cut(&self, cut: Cut) {
        self.shared.condition.lock().unwrap().cut = cut;
    }

    /// From now on the server carries a Binding out only after this time.
    pub(crate) fn bindings_take(&self, time: Duration) {
        self.shared.condition.lock().unwrap().bindings_take = time;
    }

    /// From now on the server carries the n-th lock's write out only after n times this time.
    pub(crate) fn locks_take(&self, time: Duration) {
        self.shared.condition.lock().unwrap().locks_take = time;
    }

    /// From now on the server carries a write of the Lease out only after this time.
    pub(crate) fn lease_writes_take(&self, time: Duration) {
        self.shared.condition.lock().unwrap().lease_writes_take = time;
    }

    /// Returns once the next write of the Lease has arrived.
    pub(crate) async fn next_lease_write(&self) {
        self.shared.lease_writes.subscribe().changed().await.unwrap();
    }

    /// How many writes of the Lease were answered with a conflict.
    pub(crate) fn lease_conflicts(&self) -> u32 {
        *self.shared.lease_conflicts.borrow()
    }

    /// Returns once so many lock writes have arrived.
    pub(crate) async fn locks_asked(&self, count: u32) {
        self.shared.locks.subscribe().wait_for(|asked| *asked >= count).await.unwrap();
    }

    /// How many lock writes have arrived.
    pub(crate) fn locks(&self) -> u32 {
        *self.shared.locks.borrow()
    }

    /// The watches that are open tell nothing any more; later ones do.
    pub(crate) fn silence_watches(&self) {
        self.shared.watches.send_modify(|watches| watches.silent = watches.opened);
    }

    /// Watches that were silenced tell what they have kept to themselves.
    pub(crate) fn revive_watches(&self) {
        self.shared.watches.send_modify(|watches| watches.silent = 0);
    }

    /// How many lists of whole pods have arrived, those of one node not counted.
    pub(crate) fn lists(&self) -> u32 {
        self.shared.lists.load(Ordering::Relaxed)
    }

    /// How many lists of all pods by name have arrived.
    pub(crate) fn lists_of_names(&self) -> u32 {
        self.shared.lists_of_names.load(Ordering::Relaxed)
    }

    /// The answer to a watch, which can fall silent.
    fn watched(&self, response: Response<Body>) -> Response<Body> {
        let watches = self.shared.watches.subscribe();
        let mut number = 0;
        self.shared.watches.send_modify(|watches| {
            watches.opened += 1;
            number = watches.opened;
        });
        response.map(|body| {
            let told = body.into_data_stream().then(move |part| {
                let mut watches = watches.clone();
                async move {
                    watches.wait_for(|watches| number > watches.silent).await?;
                    Ok::<_, BoxError>(part?)
                }
            });
            Body::from_stream(told)
        })
    }

    async fn pass<B>(
        mut self,
        kind: Kind,
        takes: Duration,
        request: Request<B>,
    ) -> Result<Response<Body>, BoxError>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        let (answer, answered) = oneshot::channel();
        let (shared, conflicts) = (self.shared.clone(), self.shared.lease_conflicts.clone());
        shared.carrying.lock().unwrap().spawn(async move {
            tokio::time::sleep(takes).await;
            let path = request.uri().path().to_owned();
            let Ok(response) = self.service.call(request).await;
            if kind == Kind::Binding {
                let (at, answer) = (self.sandbox.now(), response.status());
                let carried = Carried { by: self.who, path, at, answer };
                self.shared.log.lock().unwrap().push(carried);
            }
            let response = if kind == Kind::Watch { self.watched(response) } else { response };
            if kind == Kind::LeaseWrite && response.status() == StatusCode::CONFLICT {
                conflicts.send_modify(|conflicts| *conflicts += 1);
            }
            // A sender who has hung up gets no answer.
            drop(answer.send(response));
        });
        answered.await.map_err(Into::into)
    }
}

fn kind<B>(request: &Request<B>) -> Kind {
    let (method, path) = (request.method(), request.uri().path());
    let asks = |what: &str| request.uri().query().is_some_and(|query| query.contains(what));
    let accepted = request.headers().get(header::ACCEPT);
    let by_name = || accepted.is_some_and(|kind| kind.as_bytes().ends_with(b"v=v1"));
    if path.contains("/leases") {
        if *method == Method::GET { Kind::Lease } else { Kind::LeaseWrite }
    } else if path.ends_with("/binding") {
        Kind::Binding
    } else if *method == Method::PATCH && path.contains("/nodes/") {
        Kind::Lock
    } else if asks("watch=true") {
        Kind::Watch
    } else if *method == Method::GET && path == "/api/v1/pods" && !asks("limit=1") && !asks("spec.nodeName") {
        if by_name() { Kind::Names } else { Kind::List }
    } else {
        Kind::Other
    }
}

impl<B> Service<Request<B>> for Link
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let condition = *self.shared.condition.lock().unwrap();
        let kind = kind(&request);
        match kind {
            Kind::Lock => self.shared.locks.send_modify(|asked| *asked += 1),
            Kind::List => drop(self.shared.lists.fetch_add(1, Ordering::Relaxed)),
            Kind::Names => drop(self.shared.lists_of_names.fetch_add(1, Ordering::Relaxed)),
            Kind::LeaseWrite => self.shared.lease_writes.send_modify(|asked| *asked += 1),
            Kind::Lease | Kind::Binding | Kind::Watch | Kind::Other => {}
        }
        let is_cut = match condition.cut {
            Cut::Nothing => false,
            Cut::Leases => matches!(kind, Kind::Lease | Kind::LeaseWrite),
            Cut::Everything => true,
        };
        if is_cut {
            return std::future::ready(Err("the network is cut".into())).boxed();
        }
        let takes = match kind {
            Kind::Binding => condition.bindings_take,
            Kind::Lock => condition.locks_take * self.locks(),
            Kind::LeaseWrite => condition.lease_writes_take,
            Kind::Lease | Kind::Watch | Kind::List | Kind::Names | Kind::Other => Duration::ZERO,
        };
        self.clone().pass(kind, takes, request).boxed()
    }
}
