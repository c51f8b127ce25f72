//! One Secret with the webhook's authority and serving certificate, on which all replicas agree.
//!
//! The first replica that creates it wins, and the others read it. A renewal is written only over the version that was read.
//! It does not decide which certificate is served: the caller publishes the authority first.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::{ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{Api, api::PostParams};

use super::mint::{self, Bundle, Lifetimes, MintError, Pair, ServingNames};

const KIND: &str = "kubernetes.io/tls";
const SERVING_CERTIFICATE: &str = "tls.crt";
const SERVING_KEY: &str = "tls.key";
const AUTHORITY_CERTIFICATE: &str = "ca.crt";
const AUTHORITY_KEY: &str = "ca.key";

/// The most attempts; each lost race means that another replica has just written the Secret.
const ATTEMPTS: usize = 5;

/// Why there is no bundle from the Secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// A request to the API server failed.
    #[error("cannot {verb} secret {name}")]
    Api {
        /// The verb of the request.
        verb: &'static str,
        /// The Secret.
        name: String,
        /// The error of the API server or of the connection.
        source: Box<kube::Error>,
    },
    /// The Secret exists, but a key is missing or unreadable.
    #[error("secret {name} has no readable `{key}`; delete it to have it made again")]
    Incomplete {
        /// The Secret.
        name: String,
        /// The key.
        key: &'static str,
    },
    /// A certificate can't be created or parsed.
    #[error("secret {name}")]
    Mint {
        /// The Secret.
        name: String,
        /// Why.
        source: MintError,
    },
    /// Other writers changed the Secret during every attempt.
    #[error("secret {name} changed {ATTEMPTS} times while it was read")]
    Contended {
        /// The Secret.
        name: String,
    },
}

/// The bundle in the Secret `name`, which is created if it is missing and renewed if it is due.
pub async fn agree(
    api: &Api<Secret>,
    name: &str,
    names: &ServingNames,
    lifetimes: Lifetimes,
    now: Timestamp,
) -> Result<Bundle, SecretError> {
    for _ in 0..ATTEMPTS {
        if let Some(bundle) = attempt(api, name, names, lifetimes, now).await? {
            return Ok(bundle);
        }
    }
    Err(SecretError::Contended { name: name.to_owned() })
}

/// The bundle in the Secret `name`; `None` if the Secret does not exist.
pub async fn read(api: &Api<Secret>, name: &str) -> Result<Option<Bundle>, SecretError> {
    let secret = api.get_opt(name).await.map_err(failed("get", name))?;
    secret.map(|secret| bundle(name, &secret)).transpose()
}

/// One read and at most one write; `None`: another writer was faster.
async fn attempt(
    api: &Api<Secret>,
    name: &str,
    names: &ServingNames,
    lifetimes: Lifetimes,
    now: Timestamp,
) -> Result<Option<Bundle>, SecretError> {
    let mint = |source| SecretError::Mint { name: name.to_owned(), source };
    let Some(secret) = api.get_opt(name).await.map_err(failed("get", name))? else {
        let fresh = mint::bundle(names, lifetimes, now).map_err(mint)?;
        let object = secret_with(name, &fresh);
        let created = api.create(&PostParams::default(), &object).await;
        return unless_conflict(created, "create", name).map(|written| written.map(|_| fresh));
    };
    let current = bundle(name, &secret)?;
    let Some(fresh) = mint::renewed(&current, names, lifetimes, now).map_err(mint)? else {
        return Ok(Some(current));
    };
    let object = Secret { data: Some(data(&fresh)), ..secret };
    let replaced = api.replace(name, &PostParams::default(), &object).await;
    unless_conflict(replaced, "update", name).map(|written| written.map(|_| fresh))
}

fn unless_conflict(
    written: Result<Secret, kube::Error>,
    verb: &'static str,
    name: &str,
) -> Result<Option<Secret>, SecretError> {
    match written {
        Ok(secret) => Ok(Some(secret)),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
        Err(source) => Err(failed(verb, name)(source)),
    }
}

fn failed(verb: &'static str, name: &str) -> impl FnOnce(kube::Error) -> SecretError {
    let name = name.to_owned();
    move |source| SecretError::Api { verb, name, source: Box::new(source) }
}

fn secret_with(name: &str, bundle: &Bundle) -> Secret {
    Secret {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        type_: Some(KIND.to_owned()),
        data: Some(data(bundle)),
        ..Secret::default()
    }
}

fn data(Bundle { authority, serving }: &Bundle) -> BTreeMap<String, ByteString> {
    let parts = [
        (AUTHORITY_CERTIFICATE, &authority.certificate),
        (AUTHORITY_KEY, &authority.key),
        (SERVING_CERTIFICATE, &serving.certificate),
        (SERVING_KEY, &serving.key),
    ];
    let entries = parts.map(|(key, text)| (key.to_owned(), ByteString(text.clone().into_bytes())));
    BTreeMap::from(entries)
}

fn bundle(name: &str, secret: &Secret) -> Result<Bundle, SecretError> {
    let part = |key: &'static str| {
        let bytes = secret.data.as_ref().and_then(|data| data.get(key));
        let text = bytes.and_then(|ByteString(bytes)| std::str::from_utf8(bytes).ok());
        let missing = || SecretError::Incomplete { name: name.to_owned(), key };
        text.filter(|text| !text.is_empty()).map(str::to_owned).ok_or_else(missing)
    };
    Ok(Bundle {
        authority: Pair { certificate: part(AUTHORITY_CERTIFICATE)?, key: part(AUTHORITY_KEY)? },
        serving: Pair { certificate: part(SERVING_CERTIFICATE)?, key: part(SERVING_KEY)? },
    })
}

#[cfg(test)]
mod tests;
