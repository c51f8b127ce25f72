//! Where the webhook's certificate comes from, how it is renewed, and who is told its authority.

use std::{path::PathBuf, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use super::{AppError, Options};
use crate::{
    cluster::Clock,
    webhook::{
        Certificates, Files, Metrics,
        mint::{self, Bundle, Lifetimes, ServingNames},
        registration::{Registration, publish},
        secret,
    },
};

/// Files are looked at this often; kubelet changes them within a minute.
const FILE_PERIOD: Duration = Duration::from_secs(10);
/// A Secret is looked at this often: renewal has months.
const SECRET_PERIOD: Duration = Duration::from_hours(1);

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
            let bundle = agree(&options.client, location, options.clock).await?;
            (bundle.serving.clone(), Kept::Secret { location: location.clone(), bundle })
        }
        CertificateSource::Minted(names) => {
            let bundle = mint::bundle(names, Lifetimes::default(), now)?;
            (bundle.serving.clone(), Kept::Memory(bundle))
        }
    };
    Ok(Serving { certificates: Certificates::from_pair(&pair)?, kept })
}

/// Publishes the authority, then keeps the certificate fresh for ever. A new authority is published before a certificate of it is served.
pub(super) fn follow(
    serving: Serving,
    metrics: Metrics,
    options: &Options,
) -> impl Future<Output = ()> + Send + use<> {
    let (client, registration, clock) = (options.client.clone(), options.registration.clone(), options.clock);
    async move {
        let Serving { certificates, kept } = serving;
        let expiry = metrics.follow_certificate(certificates.not_after());
        let keep = keep(kept, certificates.clone(), client, registration, clock);
        tokio::join!(expiry, keep);
    }
}

async fn keep(
    kept: Kept,
    certificates: Arc<Certificates>,
    client: Client,
    registration: Registration,
    clock: Clock,
) {
    match kept {
        Kept::Files(files) => files.follow(certificates, FILE_PERIOD).await,
        Kept::Memory(bundle) => {
            publish(&client, &registration, &bundle.authority.certificate).await;
            std::future::pending::<()>().await;
        }
        Kept::Secret { location, mut bundle } => loop {
            publish(&client, &registration, &bundle.authority.certificate).await;
            if let Err(error) = certificates.replace(&bundle.serving) {
                tracing::warn!(secret = location.name, %error, "the certificate can't be served, keeping the old one");
            }
            tokio::time::sleep(SECRET_PERIOD).await;
            match agree(&client, &location, clock).await {
                Ok(agreed) => bundle = agreed,
                Err(error) => {
                    tracing::warn!(secret = location.name, %error, "looking after the certificate failed");
                }
            }
        },
    }
}

async fn agree(
    client: &Client,
    location: &SecretLocation,
    clock: Clock,
) -> Result<Bundle, secret::SecretError> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &location.namespace);
    secret::agree(&secrets, &location.name, &location.serving, Lifetimes::default(), clock.now()).await
}
