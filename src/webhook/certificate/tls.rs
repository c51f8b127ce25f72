//! The certificate that is served, the files that it is read from, and the TLS settings.
//!
//! A certificate is replaced only by one that was parsed completely and matches its key. It creates no certificate.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use rustls::{
    RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier, danger::ClientCertVerifier},
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};
use tracing::{info, warn};

use super::mint::{self, MintError, Pair};

/// Why a certificate can't be served.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file can't be read.
    #[error("{}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The certificate's PEM can't be read.
    #[error("{name}: not a chain of certificates in PEM: {reason}")]
    Certificate {
        /// The file, or another name of the source.
        name: String,
        /// Why.
        reason: String,
    },
    /// The key's PEM can't be read.
    #[error("{name}: not a private key in PEM: {reason}")]
    Key {
        /// The file, or another name of the source.
        name: String,
        /// Why.
        reason: String,
    },
    /// Both can be parsed, but the key is not that of the certificate.
    #[error("{certificate} and {key} do not belong together: {reason}")]
    Mismatch {
        /// The source of the certificate.
        certificate: String,
        /// The source of the key.
        key: String,
        /// Why.
        reason: String,
    },
}

/// The certificate of new connections. It is replaced as a whole; open connections continue.
#[derive(Debug)]
pub struct Certificates {
    current: ArcSwap<CertifiedKey>,
    not_after: watch::Sender<Timestamp>,
}

/// A certificate with its matching key.
#[derive(Debug)]
struct MatchedCertificate {
    key: CertifiedKey,
    not_after: Timestamp,
}

impl Certificates {
    /// Serves a certificate from memory.
    pub fn from_pair(pair: &Pair) -> Result<Arc<Self>, CertificateError> {
        Ok(Self::serving(fit_pair(pair)?))
    }

    /// Serves `pair` from the next connection on; after an error, the old certificate stays.
    pub fn replace(&self, pair: &Pair) -> Result<(), CertificateError> {
        self.exchange(fit_pair(pair)?);
        Ok(())
    }

    /// The end of the served certificate; the receiver changes with the certificate.
    pub fn not_after(&self) -> watch::Receiver<Timestamp> {
        self.not_after.subscribe()
    }

    /// TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1, with this certificate.
    pub fn server_config(self: &Arc<Self>) -> Arc<ServerConfig> {
        self.config(WebPkiClientVerifier::no_client_auth())
    }

    /// As [`Self::server_config`], but a client may present a certificate, which must then be of `authority` (PEM, one or several
    /// certificates); `name` is its name in errors.
    ///
    /// A client certificate is optional, since the kubelet probes without one; the router decides which paths need it.
    pub fn server_config_for(
        self: &Arc<Self>,
        authority: &str,
        name: &str,
    ) -> Result<Arc<ServerConfig>, CertificateError> {
        let unreadable = |reason: String| CertificateError::Certificate { name: name.to_owned(), reason };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
            let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
            roots.add(certificate).map_err(|error| unreadable(error.to_string()))?;
        }
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .allow_unauthenticated()
            .build()
            .map_err(|error| unreadable(error.to_string()))?;
        Ok(self.config(verifier))
    }

    fn config(self: &Arc<Self>, clients: Arc<dyn ClientCertVerifier>) -> Arc<ServerConfig> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13, &TLS12])
            .expect("ring has cipher suites for both versions")
            .with_client_cert_verifier(clients)
            .with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Arc::new(config)
    }

    fn serving(fit: MatchedCertificate) -> Arc<Self> {
        let (not_after, _) = watch::channel(fit.not_after);
        Arc::new(Self { current: ArcSwap::from_pointee(fit.key), not_after })
    }

    fn exchange(&self, fit: MatchedCertificate) {
        self.current.store(Arc::new(fit.key));
        self.not_after.send_replace(fit.not_after);
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.load_full())
    }
}

/// Two PEM files that another program keeps up to date, for example a mounted Secret.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Files {
    certificate: PathBuf,
    key: PathBuf,
    seen: Option<(Vec<u8>, Vec<u8>)>,
}

/// The result of reading the files again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refreshed {
    /// The files have not changed.
    Unchanged,
    /// The files have another certificate, which is served now.
    Exchanged,
}

impl Files {
    /// The files of a certificate chain and of its key.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { certificate: certificate.into(), key: key.into(), seen: None }
    }

    /// Reads the files for the first time.
    pub async fn load(&mut self) -> Result<Arc<Certificates>, CertificateError> {
        let contents = self.contents().await?;
        let fit = self.fit(&contents)?;
        self.seen = Some(contents);
        Ok(Certificates::serving(fit))
    }

    /// Reads the files again. It compares contents, not times, since the kubelet replaces a mounted Secret by a symlink above the
    /// files. Invalid content is reported once and not tried again until it changes.
    pub async fn refresh(&mut self, certificates: &Certificates) -> Result<Refreshed, CertificateError> {
        let contents = self.contents().await?;
        if self.seen.as_ref() == Some(&contents) {
            return Ok(Refreshed::Unchanged);
        }
        let fit = self.fit(&contents);
        self.seen = Some(contents);
        certificates.exchange(fit?);
        Ok(Refreshed::Exchanged)
    }

    /// Reads the files every `period` and never returns. An error is logged, and the old certificate stays in force.
    pub async fn follow(mut self, certificates: Arc<Certificates>, period: Duration) {
        let mut ticks = interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match self.refresh(&certificates).await {
                Ok(Refreshed::Unchanged) => {}
                Ok(Refreshed::Exchanged) => {
                    let not_after = *certificates.not_after.borrow();
                    info!(file = %self.certificate.display(), %not_after, "the new serving certificate is in force");
                }
                Err(error) => {
                    let source = std::error::Error::source(&error).map(ToString::to_string);
                    warn!(%error, source, "can't read the serving certificate; the old one stays in force");
                }
            }
        }
    }

    async fn contents(&self) -> Result<(Vec<u8>, Vec<u8>), CertificateError> {
        Ok((read(&self.certificate).await?, read(&self.key).await?))
    }

    fn fit(&self, (certificate, key): &(Vec<u8>, Vec<u8>)) -> Result<MatchedCertificate, CertificateError> {
        fit(&self.certificate.display().to_string(), certificate, &self.key.display().to_string(), key)
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, CertificateError> {
    let failed = |source| CertificateError::File { path: path.to_owned(), source };
    tokio::fs::read(path).await.map_err(failed)
}

fn fit_pair(pair: &Pair) -> Result<MatchedCertificate, CertificateError> {
    fit("tls.crt", pair.certificate.as_bytes(), "tls.key", pair.key.as_bytes())
}

/// Parses a chain and its key, and checks that they belong together.
fn fit(
    certificate_name: &str,
    chain: &[u8],
    key_name: &str,
    key: &[u8],
) -> Result<MatchedCertificate, CertificateError> {
    let unreadable =
        |reason: String| CertificateError::Certificate { name: certificate_name.to_owned(), reason };
    let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .map_err(|error| unreadable(error.to_string()))?;
    let text = std::str::from_utf8(chain).map_err(|error| unreadable(error.to_string()))?;
    let validity = mint::validity("it", text).map_err(|error: MintError| unreadable(error.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|error| CertificateError::Key { name: key_name.to_owned(), reason: error.to_string() })?;
    let provider: CryptoProvider = ring::default_provider();
    let key =
        CertifiedKey::from_der(certificates, key, &provider).map_err(|error| CertificateError::Mismatch {
            certificate: certificate_name.to_owned(),
            key: key_name.to_owned(),
            reason: error.to_string(),
        })?;
    Ok(MatchedCertificate { key, not_after: validity.not_after })
}
