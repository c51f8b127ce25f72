//! Connections: accepts them, runs the TLS handshake, passes requests to the router, and waits for their end at the shutdown.
//!
//! It knows nothing of reviews. Every task that it starts ends with it.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::{Extension, Router};
use futures::FutureExt as _;
use http::Request;
use hyper::body::Incoming;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{JoinError, JoinSet},
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tower::{Layer as _, Service as _, service_fn};
use tracing::{debug, error, warn};

use super::{
    connection::Protocols,
    limits::Limits,
    places::{ConnectionPlace, ConnectionPlaces},
};

/// The pause after a failed accept, for example without free file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why the server can't listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address is in use, or does not belong to this host.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// The client of a connection, as an extension of each request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Peer {
    /// It presented a certificate of the client authority.
    Verified,
    /// It presented no certificate.
    Anonymous,
}

/// The address that a connection comes from; an extension of each request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Remote(pub IpAddr);

/// The TLS settings of a new connection, which may change from one to the next.
#[derive(Clone, Debug)]
pub struct TlsSettings(watch::Receiver<Arc<ServerConfig>>);

impl From<Arc<ServerConfig>> for TlsSettings {
    fn from(fixed: Arc<ServerConfig>) -> Self {
        Self(watch::channel(fixed).1)
    }
}

impl From<watch::Receiver<Arc<ServerConfig>>> for TlsSettings {
    fn from(changing: watch::Receiver<Arc<ServerConfig>>) -> Self {
        Self(changing)
    }
}

impl TlsSettings {
    fn acceptor(&self) -> TlsAcceptor {
        self.0.borrow().clone().into()
    }
}

/// A server that does not listen yet.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Listener {
    limits: Limits,
}

/// A server that listens: its address is known, and connections wait in the kernel's queue.
#[derive(Debug)]
pub struct BoundServer {
    listener: TcpListener,
    local_addr: SocketAddr,
    limits: Limits,
}

impl Listener {
    /// A server with these limits.
    pub fn new(limits: Limits) -> Self {
        Self { limits }
    }

    /// Listens on `address`; port 0 selects a free port.
    pub async fn bind(self, address: SocketAddr) -> Result<BoundServer, ListenError> {
        let failed = |source| ListenError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let local_addr = listener.local_addr().map_err(failed)?;
        Ok(BoundServer { listener, local_addr, limits: self.limits })
    }
}

impl BoundServer {
    /// The address, with the selected port.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Serves `router` over TLS until `shutdown`, and then finishes open requests.
    pub async fn serve(
        self,
        router: Router,
        tls: impl Into<TlsSettings>,
        shutdown: impl Future<Output = ()>,
    ) {
        let Self { listener, limits, .. } = self;
        let (end, ending) = watch::channel(Ending::No);
        let protocols = Protocols::new(&limits);
        let session = Session { tls: tls.into(), protocols, router, handshake: limits.handshake, ending };
        let places = ConnectionPlaces::new(limits.connections, limits.idle);
        let mut tasks = JoinSet::new();
        tokio::select! {
            () = accept(&listener, &places, &session, &mut tasks) => {}
            () = shutdown => {}
        }
        // Those that wait in the kernel's queue would be reset.
        while let Some(Ok((stream, peer))) = listener.accept().now_or_never() {
            let place = places.take(peer.ip()).now_or_never();
            if let Some(place) = place {
                tasks.spawn(session.clone().stay(stream, peer, place));
            }
        }
        drop(listener);
        end.send_replace(Ending::Yes);
        let all_end = async {
            while let Some(ended) = tasks.join_next().await {
                report(ended);
            }
        };
        if timeout(limits.drain, all_end).await.is_err() {
            warn!(connections = tasks.len(), "closing connections that did not end in time");
        }
        tasks.shutdown().await;
    }
}

/// Whether connections are to end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Ending {
    No,
    Yes,
}

/// Runs until it is dropped.
async fn accept(
    listener: &TcpListener,
    places: &ConnectionPlaces,
    session: &Session,
    tasks: &mut JoinSet<()>,
) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let place = places.take(peer.ip()).await;
                tasks.spawn(session.clone().stay(stream, peer, place));
            }
            Err(error) => {
                warn!(%error, "a connection could not be accepted");
                sleep(ACCEPT_PAUSE).await;
            }
        }
        while let Some(ended) = tasks.try_join_next() {
            report(ended);
        }
    }
}

fn report(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        error!(%error, "the task of a connection panicked");
    }
}

/// The values that a connection uses from its handshake to its end.
#[derive(Clone)]
struct Session {
    tls: TlsSettings,
    protocols: Protocols,
    router: Router,
    handshake: Duration,
    ending: watch::Receiver<Ending>,
}

impl Session {
    /// Runs until the connection ends, or is closed to make room for another.
    async fn stay(self, stream: TcpStream, peer: SocketAddr, place: Arc<ConnectionPlace>) {
        tokio::select! {
            () = self.run(stream, peer, &place) => {}
            () = place.wanted() => debug!(%peer, "closed an idle connection to make room for another"),
        }
    }

    async fn run(mut self, stream: TcpStream, peer: SocketAddr, place: &Arc<ConnectionPlace>) {
        let stream = match timeout(self.handshake, self.tls.acceptor().accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return debug!(%peer, %error, "a TLS handshake failed"),
            Err(_) => return debug!(%peer, "a TLS handshake took too long"),
        };
        if let Err(error) = stream.get_ref().0.set_nodelay(true) {
            debug!(%peer, %error, "answers may be held back by the kernel");
        }
        let seen = match stream.get_ref().1.peer_certificates() {
            Some(_) => Peer::Verified,
            None => Peer::Anonymous,
        };
        let place = Arc::clone(place);
        let router = Extension(Remote(peer.ip())).layer(Extension(seen).layer(self.router));
        let service = TowerToHyperService::new(service_fn(move |request: Request<Incoming>| {
            let asked = place.ask();
            router.clone().call(request).inspect(move |_| drop(asked))
        }));
        let ending = async {
            // A sender that is gone ends the server too.
            drop(self.ending.wait_for(|ending| *ending == Ending::Yes).await);
        };
        if let Err(error) = self.protocols.serve(stream, service, ending).await {
            debug!(%peer, %error, "a connection ended with an error");
        }
    }
}
