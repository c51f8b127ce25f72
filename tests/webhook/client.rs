//! An HTTPS client that trusts one authority and speaks the protocol it is told to.

use std::{net::SocketAddr, sync::Arc};

use axum::body::{Body, Bytes};
use berth::webhook::certificate::mint::Pair;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
};
use serde_json::{Value, json};
use tokio::{net::TcpStream, task::JoinSet};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::server::Server;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// One connection.
pub(crate) struct Client {
    sender: Sender,
    /// The certificate that the server showed, DER.
    pub(crate) certificate: Vec<u8>,
    _driver: JoinSet<()>,
}

enum Sender {
    Http1(http1::SendRequest<Body>),
    Http2(http2::SendRequest<Body>),
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// A TLS stream to the server, its certificate verified against `authority`.
pub(crate) async fn handshake(
    server: &Server,
    authority: &str,
    protocol: Protocol,
) -> std::io::Result<TlsStream<TcpStream>> {
    handshake_as(server.address, authority, protocol, None).await
}

/// As [`handshake`], showing a certificate.
async fn handshake_as(
    address: SocketAddr,
    authority: &str,
    protocol: Protocol,
    shown: Option<&Pair>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match shown {
        None => config.with_no_client_auth(),
        Some(pair) => {
            let chain = vec![CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap()];
            let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
            config.with_client_auth_cert(chain, key).unwrap()
        }
    };
    config.alpn_protocols = vec![match protocol {
        Protocol::Http1 => b"http/1.1".to_vec(),
        Protocol::Http2 => b"h2".to_vec(),
    }];
    let name = ServerName::try_from("berth.berth-system.svc").unwrap();
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

impl Client {
    pub(crate) async fn connect(server: &Server, protocol: Protocol) -> std::io::Result<Self> {
        Self::connect_as(server, protocol, None).await
    }

    /// As [`Self::connect`], showing a certificate.
    pub(crate) async fn connect_as(
        server: &Server,
        protocol: Protocol,
        shown: Option<&Pair>,
    ) -> std::io::Result<Self> {
        Self::connect_to(server.address, &server.authority, protocol, shown).await
    }

    /// As [`Self::connect_as`], to any server whose certificate is of `authority` (PEM, one or several).
    pub(crate) async fn connect_to(
        address: SocketAddr,
        authority: &str,
        protocol: Protocol,
        shown: Option<&Pair>,
    ) -> std::io::Result<Self> {
        let stream = handshake_as(address, authority, protocol, shown).await?;
        let certificate = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
        let mut driver = JoinSet::new();
        let io = TokioIo::new(stream);
        let sender = match protocol {
            Protocol::Http1 => {
                let (sender, connection) = http1::handshake(io).await.map_err(std::io::Error::other)?;
                driver.spawn(async move { connection.await.unwrap_or_default() });
                Sender::Http1(sender)
            }
            Protocol::Http2 => {
                let (sender, connection) =
                    http2::handshake(TokioExecutor::new(), io).await.map_err(std::io::Error::other)?;
                driver.spawn(async move { connection.await.unwrap_or_default() });
                Sender::Http2(sender)
            }
        };
        Ok(Self { sender, certificate, _driver: driver })
    }

    pub(crate) async fn send(&mut self, request: Request<Body>) -> Result<Answer, hyper::Error> {
        let response = match &mut self.sender {
            Sender::Http1(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Sender::Http2(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
        };
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        Ok(Answer { status, body })
    }

    pub(crate) async fn post(&mut self, path: &str, body: impl Into<Body>) -> Answer {
        self.send(post(path, "application/json", body)).await.unwrap()
    }

    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        self.send(request(Method::GET, path).body(Body::empty()).unwrap()).await.unwrap()
    }
}

pub(crate) fn post(path: &str, media_type: &str, body: impl Into<Body>) -> Request<Body> {
    request(Method::POST, path).header("content-type", media_type).body(body.into()).unwrap()
}

/// HTTP/2 takes the authority from the URI, HTTP/1.1 lets a client send it whole too.
fn request(method: Method, path: &str) -> http::request::Builder {
    let uri = format!("https://berth.berth-system.svc{path}");
    Request::builder().method(method).uri(uri).header("host", "berth.berth-system.svc")
}

/// A review of a new pod with this name.
pub(crate) fn review(name: &str) -> Vec<u8> {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": format!("uid-of-{name}"),
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": "train",
            "operation": "CREATE",
            "object": {"metadata": {"name": name}, "spec": {"containers": [{"name": "main"}]}},
        },
    });
    serde_json::to_vec(&review).unwrap()
}
