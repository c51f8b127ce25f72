//! What a Service does, on a floor without kube-proxy: one address in front of the replicas that are ready.
//!
//! A connection stays with its replica for as long as it lasts, as the kernel's connection tracking has it.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use kube::{Client, Config};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::support::server::pause;

/// One address, served until it is dropped.
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    endpoints: Arc<Mutex<Vec<SocketAddr>>>,
    _served: JoinSet<()>,
}

impl Service {
    pub(crate) async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let endpoints = Arc::default();
        let mut served = JoinSet::new();
        served.spawn(serve(listener, Arc::clone(&endpoints)));
        Self { address, endpoints, _served: served }
    }

    /// Adds a replica as soon as its readiness probe succeeds.
    pub(crate) async fn add(&self, endpoint: SocketAddr) {
        until_readiness_is(Readiness::Ready, endpoint).await;
        self.endpoints.lock().unwrap().push(endpoint);
    }

    /// Takes a replica out as soon as its readiness probe fails.
    pub(crate) async fn remove(&self, endpoint: SocketAddr) {
        until_readiness_is(Readiness::NotReady, endpoint).await;
        self.endpoints.lock().unwrap().retain(|one| *one != endpoint);
    }

    /// Takes all replicas out at once, as a Service does whose selector no longer matches them.
    pub(crate) fn deselect(&self) {
        self.endpoints.lock().unwrap().clear();
    }
}

async fn serve(listener: TcpListener, endpoints: Arc<Mutex<Vec<SocketAddr>>>) {
    let mut connections = JoinSet::new();
    let mut next = 0;
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (from, _) = accepted.unwrap();
                let ready = endpoints.lock().unwrap().clone();
                next += 1;
                // Without a replica the connection is closed, as a Service without endpoints refuses it.
                if let Some(endpoint) = ready.get(next % ready.len().max(1)) {
                    connections.spawn(forward(from, *endpoint));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn forward(mut from: TcpStream, endpoint: SocketAddr) {
    if let Ok(mut to) = TcpStream::connect(endpoint).await {
        // Either side may end the connection at any time; the client sees that by itself.
        let _ = copy_bidirectional(&mut from, &mut to).await;
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Readiness {
    Ready,
    NotReady,
}

async fn until_readiness_is(wanted: Readiness, endpoint: SocketAddr) {
    let mut config = Config::new(format!("https://{endpoint}").parse().unwrap());
    // A kubelet does not check the certificate of a probe either.
    config.accept_invalid_certs = true;
    // Each probe counts; the client would ask again where a replica answers that it is not ready.
    config.default_retry = false;
    let client = Client::try_from(config).unwrap();
    loop {
        let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
        let found = match client.request_text(request).await {
            Ok(_) => Readiness::Ready,
            Err(_) => Readiness::NotReady,
        };
        if found == wanted {
            return;
        }
        pause().await;
    }
}
