//! The source of the webhook's certificate, its renewal, and the publication of its authority.

use std::{path::PathBuf, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use super::{AppError, Options, Parts};
use crate::{
    cluster::Clock,
    webhook::{
        Certificates, Files, WebhookMetrics,
        certificate::{
            mint::{self, Bundle, Lifetimes, ServingNames},
            registration::{RegistrationError, WebhookConfigurations, publish, publish_once},
            secret::{self, SecretError},
            tls::CertificateError,
        },
    },
};

/// How often the files are read; the kubelet updates a mounted Secret within about a minute.
pub(super) const FILE_PERIOD: Duration = Duration::from_secs(10);
/// After a failure, the Secret and the configurations are checked again after this time, which doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Where the webhook's certificate comes from.
#[derive(Clone, Debug)]
pub enum CertificateSource {
    /// PEM files, read again when they change. Their authority is published by the program that makes them.
    Files {
        /// The file of the certificate and its chain.
        certificate: PathBuf,
        /// The file of its private key.
        key: PathBuf,
    },
    /// Created by Berth and stored in a Secret, so that all replicas use the same.
    Secret(SecretLocation),
    /// Created at the start and kept in memory only.
    Minted(ServingNames),
}

/// A Secret with the authority and the certificate.
#[derive(Clone, Debug)]
pub struct SecretLocation {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The DNS names and IP addresses of the certificate.
    pub serving: ServingNames,
    /// How its certificates are renewed.
    pub renewal: Renewal,
}

/// How the certificates of a Secret are renewed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Renewal {
    /// The validity of new certificates.
    pub lifetimes: Lifetimes,
    /// How often the Secret and the webhook configurations are checked.
    pub period: Duration,
    /// The time between the publication of a new authority and the first use of a certificate of it, since API servers learn of a changed
    /// configuration by a watch.
    pub settle: Duration,
}

impl Default for Renewal {
    /// Looks once a minute: a renewal has months of time, but without its `caBundle` the API server refuses every share pod. Waits half a
    /// minute after a publication, longer than the watch of a working API server lags behind.
    fn default() -> Self {
        Self {
            lifetimes: Lifetimes::default(),
            period: Duration::from_mins(1),
            settle: Duration::from_secs(30),
        }
    }
}

/// The certificate that is served, and its source.
pub(super) struct Serving {
    pub(super) certificates: Arc<Certificates>,
    kept: Kept,
}

enum Kept {
    Files(Files),
    Secret { location: SecretLocation, bundle: Bundle },
    Memory(Bundle),
}

/// Loads or creates the first certificate.
pub(super) async fn load(options: &Options) -> Result<Serving, AppError> {
    let now = options.clock.now();
    let (pair, kept) = match &options.certificates {
        CertificateSource::Files { certificate, key } => {
            let mut files = Files::new(certificate, key);
            return Ok(Serving { certificates: files.load().await?, kept: Kept::Files(files) });
        }
        CertificateSource::Secret(location) => {
            let bundle = first(&options.client, location, options.clock).await?;
            (bundle.serving.clone(), Kept::Secret { location: location.clone(), bundle })
        }
        CertificateSource::Minted(names) => {
            let bundle = mint::bundle(names, Lifetimes::default(), now)?;
            (bundle.serving.clone(), Kept::Memory(bundle))
        }
    };
    Ok(Serving { certificates: Certificates::from_pair(&pair)?, kept })
}

/// Renews the certificate and, if this process answers reviews, publishes its authority; never returns. A new authority is published
/// before a certificate of it is served.
pub(super) fn follow(
    serving: Serving,
    metrics: WebhookMetrics,
    options: &Options,
) -> impl Future<Output = ()> + Send + use<> {
    let publisher = match options.parts {
        Parts::Both | Parts::Webhook => Some((options.client.clone(), options.registration.clone())),
        Parts::Binder | Parts::Shadow { .. } => None,
    };
    let (client, clock) = (options.client.clone(), options.clock);
    async move {
        let Serving { certificates, kept } = serving;
        let expiry = metrics.follow_certificate(certificates.not_after());
        let keep = async {
            match kept {
                Kept::Files(files) => files.follow(certificates, FILE_PERIOD).await,
                Kept::Memory(bundle) => {
                    if let Some((client, registration)) = publisher {
                        publish(&client, &registration, &bundle.authority.certificate).await;
                    }
                    std::future::pending::<()>().await;
                }
                Kept::Secret { location, bundle } => {
                    let keeper = Keeper { client, publisher, location, clock, certificates, served: bundle };
                    keeper.keep().await;
                }
            }
        };
        tokio::join!(expiry, keep);
    }
}

/// Keeps the served certificate, the Secret and the published authority in step.
struct Keeper {
    client: Client,
    publisher: Option<(Client, WebhookConfigurations)>,
    location: SecretLocation,
    clock: Clock,
    certificates: Arc<Certificates>,
    served: Bundle,
}

/// Why a check failed.
#[derive(Debug, thiserror::Error)]
enum KeepError {
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Registration(#[from] RegistrationError),
    #[error("the certificate in the secret can't be served")]
    Certificate(#[from] CertificateError),
}

impl Keeper {
    async fn keep(mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.look().await {
                Ok(()) => {
                    pause = FIRST_PAUSE;
                    tokio::time::sleep(self.location.renewal.period).await;
                }
                Err(error) => {
                    let source = std::error::Error::source(&error).map(ToString::to_string);
                    let secret = &self.location.name;
                    tracing::warn!(secret, %error, source, again_in = ?pause, "the certificate could not be checked or renewed");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// Checks the Secret first, so that an authority that another replica has replaced meanwhile is never published again.
    async fn look(&mut self) -> Result<(), KeepError> {
        let agreed = agree(&self.client, &self.location, self.clock).await?;
        self.publish(&agreed).await?;
        if agreed == self.served {
            return Ok(());
        }
        if agreed.authority != self.served.authority {
            tokio::time::sleep(self.location.renewal.settle).await;
            // A replica that read the Secret just before it was renewed may have published the old authority since.
            self.publish(&agreed).await?;
        }
        self.certificates.replace(&agreed.serving)?;
        tracing::info!(secret = self.location.name, "the serving certificate was renewed");
        self.served = agreed;
        Ok(())
    }

    async fn publish(&self, bundle: &Bundle) -> Result<(), RegistrationError> {
        match &self.publisher {
            Some((client, registration)) => {
                publish_once(client, registration, &bundle.authority.certificate).await
            }
            None => Ok(()),
        }
    }
}

/// The content of the Secret if its certificate has not expired, since a renewal must wait until the authority is published; otherwise a
/// new bundle that all replicas agree on.
async fn first(client: &Client, location: &SecretLocation, clock: Clock) -> Result<Bundle, AppError> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &location.namespace);
    if let Some(bundle) = secret::read(&secrets, &location.name).await? {
        let validity = mint::validity("the serving certificate", &bundle.serving.certificate)?;
        if validity.not_after > clock.now() {
            return Ok(bundle);
        }
    }
    Ok(agree(client, location, clock).await?)
}

async fn agree(client: &Client, location: &SecretLocation, clock: Clock) -> Result<Bundle, SecretError> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &location.namespace);
    let SecretLocation { name, serving, renewal, .. } = location;
    secret::agree(&secrets, name, serving, renewal.lifetimes, clock.now()).await
}
