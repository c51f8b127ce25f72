//! The page and an API that answers from a fixture, on a socket of this machine. The test changes the fixture and says so in the stream of changes.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Body,
    extract::{Path, State},
    response::{IntoResponse, Response},
    routing::get,
};
use futures::stream;
use http::{HeaderMap, StatusCode, header};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
    sync::watch,
};

use super::fixture::Cluster;

/// What the server has.
struct Held {
    cluster: Mutex<Cluster>,
    /// The version of the cluster in which each node changed last.
    changed: Mutex<BTreeMap<String, u64>>,
    /// How many nodes each answer about the fleet had.
    told: Mutex<Vec<FleetAnswer>>,
    token: Option<&'static str>,
    version: watch::Sender<Version>,
}

/// An answer about the fleet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FleetAnswer {
    /// With all of so many nodes.
    Whole(usize),
    /// With those nodes alone that had changed.
    Changed(usize),
}

/// A stream of changes ends when the connection is another than the one with which it began.
#[derive(Clone, Copy)]
struct Version {
    number: u64,
    connection: u64,
    /// The process; its versions mean nothing to another.
    process: u64,
}

/// A server that ends when it is dropped.
pub(crate) struct Server {
    held: Arc<Held>,
    address: SocketAddr,
    _runtime: Runtime,
}

impl Server {
    /// Serves a cluster below `prefix`, to those who have this token, or to everyone.
    pub(crate) fn start(cluster: Cluster, prefix: &str, token: Option<&'static str>) -> Self {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime starts");
        let held = Arc::new(Held {
            cluster: Mutex::new(cluster),
            changed: Mutex::default(),
            told: Mutex::default(),
            token,
            version: watch::Sender::new(Version { number: 1, connection: 1, process: 1 }),
        });
        let routes = Router::new()
            .route("/api/v1/changes", get(changes))
            .route("/api/v1/{*path}", get(answer))
            .with_state(Arc::clone(&held))
            .merge(berth::api::page::router());
        let routes = if prefix.is_empty() { routes } else { Router::new().nest(prefix, routes) };
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        runtime.spawn(async move { axum::serve(listener, routes).await });
        Self { held, address, _runtime: runtime }
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn cluster(&self) -> Cluster {
        self.held.cluster.lock().expect("no test panics with it").clone()
    }

    /// Changes the cluster, and tells those who follow.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Cluster)) {
        let mut cluster = self.held.cluster.lock().expect("no test panics with it");
        let before = rows(&cluster);
        change(&mut cluster);
        let number = self.held.version.borrow().number + 1;
        let mut changed = self.held.changed.lock().expect("no test panics with it");
        for (name, row) in rows(&cluster) {
            if before.get(&name) != Some(&row) {
                changed.insert(name, number);
            }
        }
        drop((cluster, changed));
        self.held.version.send_modify(|version| version.number = number);
    }

    /// Another process answers from now on.
    pub(crate) fn replace(&self) {
        self.held.version.send_modify(|version| {
            (version.process, version.connection) = (version.process + 1, version.connection + 1);
        });
    }

    /// What was answered about the fleet since the last call.
    pub(crate) fn fleet_answers(&self) -> Vec<FleetAnswer> {
        std::mem::take(&mut *self.held.told.lock().expect("no test panics with it"))
    }

    /// Ends every stream of changes.
    pub(crate) fn hang_up(&self) {
        self.held.version.send_modify(|version| version.connection += 1);
    }
}

/// The nodes by name.
fn rows(cluster: &Cluster) -> BTreeMap<String, Value> {
    let nodes = cluster.fleet["nodes"].as_array().into_iter().flatten();
    nodes.map(|node| (node["name"].as_str().unwrap_or_default().to_owned(), node.clone())).collect()
}

/// The fleet, or what of it has changed since a version of this process.
fn fleet(held: &Held, cluster: &Cluster, query: Option<&str>) -> Value {
    let Version { number, process, .. } = *held.version.borrow();
    let mut fleet = cluster.fleet.clone();
    fleet["version"] = format!("{process:x}-{number}").into();
    let since = query.and_then(|query| query.strip_prefix("since=")?.split_once('-'));
    let since = since
        .filter(|(of, _)| *of == format!("{process:x}"))
        .and_then(|(_, number)| number.parse::<u64>().ok());
    let Some(nodes) = fleet["nodes"].as_array_mut() else { return fleet };
    let in_all = nodes.len();
    let answer = match since {
        None => FleetAnswer::Whole(in_all),
        Some(since) => {
            let changed = held.changed.lock().expect("no test panics with it");
            nodes.retain(|node| {
                changed.get(node["name"].as_str().unwrap_or_default()).is_some_and(|at| *at > since)
            });
            let answer = FleetAnswer::Changed(nodes.len());
            fleet["nodesInAll"] = in_all.into();
            answer
        }
    };
    held.told.lock().expect("no test panics with it").push(answer);
    fleet
}

fn json_answer(status: StatusCode, value: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, value.to_string()).into_response()
}

fn refused(held: &Held, headers: &HeaderMap) -> Option<Response> {
    let token = held.token?;
    let bearer =
        headers.get(header::AUTHORIZATION).and_then(|sent| sent.to_str().ok()?.strip_prefix("Bearer "));
    let own = headers.get("x-berth-token").and_then(|sent| sent.to_str().ok());
    let known = bearer == Some(token) && own == Some(token);
    (!known).then(|| {
        json_answer(
            StatusCode::UNAUTHORIZED,
            &json!({"message": "the request has no token that the API server knows"}),
        )
    })
}

async fn answer(
    State(held): State<Arc<Held>>,
    Path(path): Path<String>,
    headers: HeaderMap,
    uri: http::Uri,
) -> Response {
    if let Some(refusal) = refused(&held, &headers) {
        return refusal;
    }
    // Split before it is decoded, since a name may hold a slash.
    let encoded = uri.path().split_once("/api/v1/").map_or("", |(_, rest)| rest);
    let parts: Vec<String> = encoded.split('/').map(decoded).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let cluster = held.cluster.lock().expect("no test panics with it");
    let found = match parts.as_slice() {
        ["fleet"] => Some(fleet(&held, &cluster, uri.query())),
        ["queue"] => Some(cluster.queue.clone()),
        ["fits"] => Some(cluster.fits.clone()),
        ["nodes", name] => cluster.node(name),
        ["cards", id] => cluster.card(id),
        ["namespaces", "secret"] => {
            let words = "user \"jane\" cannot list pods in namespace \"secret\"";
            return json_answer(StatusCode::FORBIDDEN, &json!({"message": words}));
        }
        ["namespaces", name] => Some(cluster.namespace(name)),
        ["namespaces", namespace, "pods", name] => cluster.pod(namespace, name),
        ["namespaces", namespace, "pods", name, "change"] => {
            cluster.pod(namespace, name).map(|_| super::fixture::change())
        }
        _ => None,
    };
    match found {
        Some(found) => json_answer(StatusCode::OK, &found),
        None => {
            json_answer(StatusCode::NOT_FOUND, &json!({"message": format!("there is nothing at {path}")}))
        }
    }
}

/// Undoes percent encoding.
fn decoded(part: &str) -> String {
    let mut bytes = part.bytes();
    let mut plain = Vec::new();
    while let Some(byte) = bytes.next() {
        let hex =
            (byte == b'%').then(|| [bytes.next(), bytes.next()].into_iter().flatten().collect::<Vec<u8>>());
        let hex = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(&hex).ok()?, 16).ok());
        plain.push(hex.unwrap_or(byte));
    }
    String::from_utf8(plain).expect("browsers encode UTF-8")
}

async fn changes(State(held): State<Arc<Held>>, headers: HeaderMap) -> Response {
    if let Some(refusal) = refused(&held, &headers) {
        return refusal;
    }
    let mut versions = held.version.subscribe();
    versions.mark_changed();
    let own = versions.borrow().connection;
    let messages = stream::unfold(versions, move |mut versions| async move {
        versions.changed().await.ok()?;
        let Version { number, connection, .. } = *versions.borrow_and_update();
        let message = format!("event: change\ndata: {{\"version\": {number}}}\n\n");
        (connection == own).then_some((Ok::<_, std::convert::Infallible>(message), versions))
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(messages)).into_response()
}
