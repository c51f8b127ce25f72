//! How an admission webhook is reached: over HTTPS, or as a service in this process; what is said is `review`'s.

use axum::body::{Body, Bytes};
use futures::{FutureExt, future::BoxFuture};
use http::{Request, Response, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use std::{collections::BTreeMap, convert::Infallible, fmt, net::SocketAddr, sync::Arc};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tower::{Service, ServiceExt, util::BoxCloneSyncService};

/// The largest answer that is read.
const ANSWER_LIMIT: usize = 8 * 1024 * 1024;

/// One POST to a webhook.
#[derive(Debug)]
pub struct WebhookCall {
    /// With the query `timeout`; a service reads `https://<name>.<namespace>.svc:<port>/<path>`.
    pub url: String,
    /// PEM certificates that the server's one must chain to.
    pub ca_bundle: Vec<u8>,
    /// An AdmissionReview in JSON.
    pub body: Bytes,
}

/// What came back.
#[derive(Debug)]
pub struct WebhookAnswer {
    /// HTTP status code.
    pub code: u16,
    /// An AdmissionReview, if all is well.
    pub body: Bytes,
}

/// Why a webhook could not be reached.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// The URL names no host, or is none.
    #[error("invalid webhook url {0:?}")]
    Url(String),
    /// Nothing is known to serve that host.
    #[error("dial {0}: no such host")]
    Host(String),
    /// No connection.
    #[error("dial {0}: {1}")]
    Connect(String, std::io::Error),
    /// No trusted certificates or no agreement on one.
    #[error("tls with {0}: {1}")]
    Tls(String, String),
    /// The connection broke.
    #[error("http with {0}: {1}")]
    Http(String, String),
}

/// A way to reach webhooks.
pub trait WebhookTransport: fmt::Debug + Send + Sync {
    /// Posts one review and answers what came back; the caller sets the time-out.
    fn call(&self, call: WebhookCall) -> BoxFuture<'static, Result<WebhookAnswer, WebhookError>>;
}

type Handler = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// Webhooks that live in this process, by the host and port of their URL.
#[derive(Clone, Default)]
pub struct InProcess {
    handlers: BTreeMap<String, Handler>,
}

impl fmt::Debug for InProcess {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.handlers.keys()).finish()
    }
}

impl InProcess {
    /// Serves `authority`, such as `127.0.0.1:9443` or `berth.berth-system.svc:443`, by an axum router or the like.
    #[must_use]
    pub fn with<S>(mut self, authority: &str, handler: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
        S: Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
    {
        self.handlers.insert(authority.to_owned(), BoxCloneSyncService::new(handler));
        self
    }
}

impl WebhookTransport for InProcess {
    fn call(&self, call: WebhookCall) -> BoxFuture<'static, Result<WebhookAnswer, WebhookError>> {
        let handler = host(&call.url).and_then(|(_, authority)| {
            self.handlers.get(&authority).cloned().ok_or(WebhookError::Host(authority))
        });
        async move {
            let request = post(&call.url, Body::from(call.body))?;
            let response = match handler?.oneshot(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            };
            read(response, &call.url).await
        }
        .boxed()
    }
}

/// Webhooks over TLS and HTTP/1.1, one connection a call.
#[derive(Clone, Debug, Default)]
pub struct Https {
    addresses: BTreeMap<String, SocketAddr>,
}

impl Https {
    /// Dials `address` for `authority`, such as `berth.berth-system.svc:443`; the certificate must still name the host.
    #[must_use]
    pub fn resolving(mut self, authority: &str, address: SocketAddr) -> Self {
        self.addresses.insert(authority.to_owned(), address);
        self
    }
}

impl WebhookTransport for Https {
    fn call(&self, call: WebhookCall) -> BoxFuture<'static, Result<WebhookAnswer, WebhookError>> {
        let addresses = self.addresses.clone();
        async move {
            let (name, authority) = host(&call.url)?;
            let dial = addresses.get(&authority).map_or(authority, SocketAddr::to_string);
            exchange(&dial, name, call).await
        }
        .boxed()
    }
}

async fn exchange(dial: &str, name: String, call: WebhookCall) -> Result<WebhookAnswer, WebhookError> {
    let tls_error = |error: &dyn fmt::Display| WebhookError::Tls(dial.to_owned(), error.to_string());
    let http_error = |error: &dyn fmt::Display| WebhookError::Http(dial.to_owned(), error.to_string());
    let tcp =
        TcpStream::connect(dial).await.map_err(|error| WebhookError::Connect(dial.to_owned(), error))?;
    let config = trusting(&call.ca_bundle).map_err(|error| tls_error(&error))?;
    let name = ServerName::try_from(name).map_err(|error| tls_error(&error))?;
    let tls =
        TlsConnector::from(Arc::new(config)).connect(name, tcp).await.map_err(|error| tls_error(&error))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(tls)).await.map_err(|error| http_error(&error))?;
    let request = post(&call.url, Full::new(call.body))?;
    let answer = async move {
        let response = sender.send_request(request).await.map_err(|error| http_error(&error))?;
        read(response, &call.url).await
    };
    let (answer, connection) = tokio::join!(answer, connection);
    if let Err(error) = connection {
        tracing::debug!(%error, dial, "the webhook's connection ended badly");
    }
    answer
}

fn trusting(ca_bundle: &[u8]) -> Result<ClientConfig, rustls::Error> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca_bundle) {
        let certificate = certificate.map_err(|error| rustls::Error::General(error.to_string()))?;
        roots.add(certificate)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// Host, and host with port, of a URL.
fn host(url: &str) -> Result<(String, String), WebhookError> {
    let uri: Uri = url.parse().map_err(|_| WebhookError::Url(url.to_owned()))?;
    let host = uri.host().ok_or_else(|| WebhookError::Url(url.to_owned()))?;
    let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    Ok((bare, format!("{host}:{}", uri.port_u16().unwrap_or(443))))
}

fn post<B>(url: &str, body: B) -> Result<Request<B>, WebhookError> {
    let invalid = || WebhookError::Url(url.to_owned());
    let uri: Uri = url.parse().map_err(|_| invalid())?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    Request::post(path)
        .header(header::HOST, uri.authority().ok_or_else(invalid)?.as_str())
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json")
        .body(body)
        .map_err(|_| invalid())
}

async fn read<B>(response: Response<B>, url: &str) -> Result<WebhookAnswer, WebhookError>
where
    B: http_body::Body + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let code = response.status().as_u16();
    let body = Limited::new(response.into_body(), ANSWER_LIMIT).collect().await;
    let body = body.map_err(|error| WebhookError::Http(url.to_owned(), error.to_string()))?;
    Ok(WebhookAnswer { code, body: body.to_bytes() })
}
