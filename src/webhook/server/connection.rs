//! The HTTP of one connection, and its end: when the server ends, no request that a client has sent remains without an answer.
//!
//! The API server does not repeat a review whose connection was closed before the answer: `net/http.Transport` repeats no POST of which
//! something was written. It does repeat a review that was answered with 503 and `Retry-After` (`k8s.io/client-go/rest/with_retry.go`), and over
//! HTTP/2 one whose stream a GOAWAY excludes (`golang.org/x/net/http2`, `canRetryError`). So an idle HTTP/1.1 connection ends with a 503: it
//! answers a request that is on its way, and a client that has sent none closes the connection.

use std::{
    convert::Infallible,
    future::poll_fn,
    io,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use axum::response::Response;
use futures::FutureExt as _;
use http::{HeaderValue, Request, header};
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
    service::{Service, service_fn},
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    io::{AsyncWriteExt as _, copy, sink},
    net::TcpStream,
    sync::watch,
    time::timeout,
};
use tokio_rustls::server::TlsStream;

use super::limits::Limits;

/// How often a silent HTTP/2 client gets a ping.
const KEEP_ALIVE: Duration = Duration::from_mins(1);

/// How long an HTTP/1.1 connection without a request yet gets to send one, once the server ends. Clients repeat nothing that they have sent on a
/// new connection.
const FIRST_REQUEST: Duration = Duration::from_secs(1);

/// How long a client gets to close its side of a connection. If the server closed both sides at once, the kernel would reset the connection upon
/// whatever the client has sent meanwhile, and the client could miss the answer before it.
const LINGER: Duration = Duration::from_secs(1);

/// The end of a connection whose client knows that it ends.
const NOTHING: &[u8] = b"";

/// The end of an idle HTTP/1.1 connection.
const TRY_AGAIN: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// The two protocols, with their limits.
#[derive(Clone)]
pub(super) struct Protocols {
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
}

/// What a client of an HTTP/1.1 connection can know of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ConnectionPhase {
    /// It has sent no request yet.
    Fresh,
    /// A request is under way. If the server ends now, its answer closes the connection.
    Asked,
    /// An answer was sent, and the connection stays open.
    Idle,
    /// An answer was sent that closes the connection.
    Closing,
}

impl Protocols {
    pub(super) fn new(limits: &Limits) -> Self {
        let (mut http1, mut http2) = (http1::Builder::new(), http2::Builder::new(TokioExecutor::new()));
        http1.timer(TokioTimer::new()).header_read_timeout(limits.header);
        http2.timer(TokioTimer::new()).max_concurrent_streams(limits.streams).keep_alive_interval(KEEP_ALIVE);
        Self { http1, http2 }
    }

    /// Answers requests by `service` until the client ends the connection or, after `ending`, all that were sent are answered.
    pub(super) async fn serve<S>(
        &self,
        mut stream: TlsStream<TcpStream>,
        service: S,
        ending: impl Future<Output = ()>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
    where
        S: Service<Request<Incoming>, Response = Response, Error = Infallible>,
        S::Future: Send + 'static,
    {
        let served = match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => self.http2(&mut stream, service, ending).await.map(|()| NOTHING),
            _ => self.http1(&mut stream, service, ending).await,
        };
        let closed = timeout(LINGER, close(&mut stream, served.as_ref().unwrap_or(&NOTHING))).await;
        served?;
        // A client that does not close its side in time has nothing to lose.
        closed.unwrap_or(Ok(()))?;
        Ok(())
    }

    async fn http2<S>(
        &self,
        stream: &mut TlsStream<TcpStream>,
        service: S,
        ending: impl Future<Output = ()>,
    ) -> hyper::Result<()>
    where
        S: Service<Request<Incoming>, Response = Response, Error = Infallible>,
        S::Future: Send + 'static,
    {
        let mut connection = std::pin::pin!(self.http2.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            ended = &mut connection => return ended,
            () = ending => {}
        }
        connection.as_mut().graceful_shutdown();
        connection.await
    }

    /// Returns what remains to be written to the client.
    async fn http1<S>(
        &self,
        stream: &mut TlsStream<TcpStream>,
        service: S,
        ending: impl Future<Output = ()>,
    ) -> hyper::Result<&'static [u8]>
    where
        S: Service<Request<Incoming>, Response = Response, Error = Infallible>,
    {
        let (phases, mut phase) = watch::channel(ConnectionPhase::Fresh);
        let ends = AtomicBool::new(false);
        let ending = ending.inspect(|()| ends.store(true, Ordering::Relaxed));
        let service = service_fn(|request| {
            phases.send_replace(ConnectionPhase::Asked);
            let answer = service.call(request);
            let (phases, ends) = (phases.clone(), &ends);
            Box::pin(async move {
                let mut answer = answer.await?;
                if ends.load(Ordering::Relaxed) {
                    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                }
                phases.send_replace(if closes(&answer) {
                    ConnectionPhase::Closing
                } else {
                    ConnectionPhase::Idle
                });
                Ok::<_, Infallible>(answer)
            })
        });
        let mut connection = self.http1.serve_connection(TokioIo::new(stream), service);
        tokio::select! {
            ended = poll_fn(|cx| connection.poll_without_shutdown(cx)) => return ended.map(|()| NOTHING),
            () = after_the_first_request(ending, phase.clone()) => {}
        }
        let last = match *phase.borrow_and_update() {
            ConnectionPhase::Fresh | ConnectionPhase::Idle => TRY_AGAIN,
            ConnectionPhase::Asked | ConnectionPhase::Closing => NOTHING,
        };
        Pin::new(&mut connection).graceful_shutdown();
        poll_fn(|cx| connection.poll_without_shutdown(cx)).await?;
        Ok(last)
    }
}

async fn after_the_first_request(
    ending: impl Future<Output = ()>,
    mut phase: watch::Receiver<ConnectionPhase>,
) {
    ending.await;
    let asked = phase.wait_for(|phase| *phase != ConnectionPhase::Fresh);
    // Without one, the connection ends too.
    drop(timeout(FIRST_REQUEST, asked).await);
}

fn closes(answer: &Response) -> bool {
    answer.headers().get(header::CONNECTION).is_some_and(|value| value == "close")
}

/// Writes what remains, closes this side, and reads until the client closes the other.
async fn close(stream: &mut TlsStream<TcpStream>, last: &[u8]) -> io::Result<()> {
    stream.write_all(last).await?;
    stream.shutdown().await?;
    copy(stream, &mut sink()).await.map(drop)
}
