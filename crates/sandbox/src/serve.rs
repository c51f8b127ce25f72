//! How the sandbox is reached over sockets: HTTPS on a local address, a bearer token, and the kubeconfig for both; it answers nothing itself.

use super::service::ApiService;
use axum::body::Body;
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use futures::{FutureExt, future::BoxFuture};
use http::{HeaderMap, Request, Response, header};
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
    service::TowerToHyperService,
};
use rcgen::{CertificateParams, KeyPair};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use std::{convert::Infallible, fmt, io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

/// How long a client may take for its TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long the server rests when it can't accept, as when file descriptors ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why the server could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address can't be listened on.
    #[error("listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// No certificate could be made.
    #[error("make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The certificate was not accepted.
    #[error("configure tls: {0}")]
    Tls(#[from] rustls::Error),
}

/// A server that listens; it answers while `run` is polled.
pub struct Served {
    /// YAML for kubectl and other clients.
    pub kubeconfig: String,
    /// Such as `https://127.0.0.1:41234`.
    pub url: String,
    /// The bearer token of the administrator.
    pub token: String,
    /// The certificate to trust, PEM.
    pub ca: String,
    /// Accepts and answers; it ends never, and dropping it closes every connection.
    pub run: BoxFuture<'static, Infallible>,
}

impl fmt::Debug for Served {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Served").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Binds the address and prepares certificate, token and kubeconfig.
pub(super) async fn serve(service: ApiService, address: SocketAddr) -> Result<Served, ServeError> {
    let listener = TcpListener::bind(address).await.map_err(|error| ServeError::Listen(address, error))?;
    let bound = listener.local_addr().map_err(|error| ServeError::Listen(address, error))?;
    let key = KeyPair::generate()?;
    let names = vec![bound.ip().to_string(), "localhost".to_owned()];
    let certificate = CertificateParams::new(names)?.self_signed(&key)?;
    // The public half of a key that nobody sees is as good as random bytes, and needs no further source of them.
    let token = URL_SAFE_NO_PAD.encode(KeyPair::generate()?.public_key_raw());
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let url = format!("https://{bound}");
    let ca = certificate.pem();
    service.admit(&token);
    let guard = Guard { service };
    let run = accept(listener, TlsAcceptor::from(Arc::new(config)), guard).boxed();
    Ok(Served { kubeconfig: kubeconfig(&url, &ca, &token), url, token, ca, run })
}

fn kubeconfig(url: &str, ca: &str, token: &str) -> String {
    let ca = STANDARD.encode(ca);
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: sandbox\n\
         clusters:\n- name: sandbox\n  cluster:\n    server: {url}\n    certificate-authority-data: {ca}\n\
         users:\n- name: admin\n  user:\n    token: {token}\n\
         contexts:\n- name: sandbox\n  context:\n    cluster: sandbox\n    user: admin\n    namespace: default\n"
    )
}

/// The service behind its token.
#[derive(Clone)]
struct Guard {
    service: ApiService,
}

impl Guard {
    fn admits(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(header::AUTHORIZATION).and_then(|given| given.to_str().ok());
        given.and_then(|given| given.strip_prefix("Bearer ")).is_some_and(|token| self.service.knows(token))
    }

    async fn answer(self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        let open = matches!(request.uri().path(), "/healthz" | "/readyz" | "/livez" | "/version");
        if open || self.admits(request.headers()) {
            return self.service.oneshot(request).await;
        }
        let status = super::StatusError::new(401, "Unauthorized", "Unauthorized").to_status();
        let mut response = Response::new(Body::from(status.to_string()));
        *response.status_mut() = http::StatusCode::UNAUTHORIZED;
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
        Ok(response)
    }
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, guard: Guard) -> Infallible {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "a connection of the sandbox panicked");
                }
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => _ = connections.spawn(converse(stream, tls.clone(), guard.clone())),
                Err(error) => {
                    tracing::warn!(%error, "the sandbox can't accept");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

async fn converse(stream: TcpStream, tls: TlsAcceptor, guard: Guard) {
    let stream = match tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "a tls handshake with the sandbox failed"),
        Err(_) => return tracing::debug!("a tls handshake with the sandbox took too long"),
    };
    let service = tower::service_fn(move |request| guard.clone().answer(request));
    let builder = auto::Builder::new(TokioExecutor::new());
    let served = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)).await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection to the sandbox broke");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kubeconfig_is_read_by_clients() {
        let text = super::kubeconfig("https://127.0.0.1:1", "PEM", "t");
        let read: kube::config::Kubeconfig = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(read.current_context.as_deref(), Some("sandbox"));
        assert_eq!(read.clusters[0].cluster.as_ref().unwrap().server.as_deref(), Some("https://127.0.0.1:1"));
    }
}
