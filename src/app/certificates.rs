//! Where the webhook's certificate comes from, how it is renewed, and who is told its authority.

use std::{path::PathBuf, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use super::{AppError, Options, Parts};
use crate::{
    cluster::Clock,
    webhook::{
        Certificates, Files, Metrics,
        mint::{self, Bundle, Lifetimes, ServingNames},
        registration::{Registration, RegistrationError, publish, publish_once},
        secret::{self, SecretError},
        tls::CertificateError,
    },
};

/// Files are looked at this often; kubelet changes them within a minute.
pub(super) const FILE_PERIOD: Duration = Duration::from_secs(10);
/// After a failure the Secret and the configurations are looked at again this much later, and then ever later, as long as it lasts.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Where the webhook's certificate comes from.
#[derive(Clone, Debug)]
pub enum CertificateSource {
    /// PEM files, re-read when they change; whoever makes them publishes their authority.
    Files {
        /// The certificate and what it chains to.
        certificate: PathBuf,
        /// Its key.
        key: PathBuf,
    },
    /// Made here and kept in a Secret, so that replicas agree.
    Secret(SecretLocation),
    /// Made here and gone with the process.
    Minted(ServingNames),
}

/// A Secret that holds authority and certificate.
#[derive(Clone, Debug)]
pub struct SecretLocation {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The names that the certificate answers to.
    pub serving: ServingNames,
    /// How it is kept fresh.
    pub renewal: Renewal,
}

/// How a Secret is kept fresh.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Renewal {
    /// How long certificates are good for.
    pub lifetimes: Lifetimes,
    /// The Secret and the webhook configurations are looked at this often.
    pub period: Duration,
    /// The time from a new authority's publication to the first certificate of it that is served: API servers learn of a changed
    /// configuration by a watch.
    pub settle: Duration,
}

impl Default for Renewal {
    /// Once a minute: renewal has months, but a `caBundle` that somebody wiped shuts every share pod out. And half a minute, which no
    /// watch of a living API server lags behind.
    fn default() -> Self {
        Self {
            lifetimes: Lifetimes::default(),
            period: Duration::from_mins(1),
            settle: Duration::from_secs(30),
        }
    }
}

/// The certificate that is served, and how it is kept.
pub(super) struct Serving {
    pub(super) certificates: Arc<Certificates>,
    kept: Kept,
}

enum Kept {
    Files(Files),
    Secret { location: SecretLocation, bundle: Bundle },
    Memory(Bundle),
}

/// Gets the first certificate.
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

/// Keeps the certificate fresh for ever, and its authority published where reviews are answered. A new authority is published before a
/// certificate of it is served.
pub(super) fn follow(
    serving: Serving,
    metrics: Metrics,
    options: &Options,
) -> impl Future<Output = ()> + Send + use<> {
    let publisher = match options.parts {
        Parts::Both | Parts::Webhook => Some((options.client.clone(), options.registration.clone())),
        Parts::Binder => None,
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

/// Keeps what is served, what the Secret holds and what is published in step.
struct Keeper {
    client: Client,
    publisher: Option<(Client, Registration)>,
    location: SecretLocation,
    clock: Clock,
    certificates: Arc<Certificates>,
    served: Bundle,
}

/// Why a look came to nothing.
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

    /// Each look begins at the Secret: an authority that another replica has replaced meanwhile is never published again.
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

/// What the Secret holds, as long as it can be served at all: renewal waits for the authority to be published. Else what is agreed on.
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
