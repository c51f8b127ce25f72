//! `berth certs`: mints or renews the webhook's authority and serving certificate into a folder or a Secret.
//!
//! It keeps certificates that need no renewal, and never prints a key.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use clap::{ArgGroup, Args};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;

use super::{
    connection::{ConnectionArgs, not_reached},
    output,
};
use crate::webhook::certificate::{
    mint::{self, Bundle, Lifetimes, MintError, Pair, ServingNames},
    secret,
};

const EXAMPLE: &str = "Example:
  berth certs --dir certs/ --also 127.0.0.1 --also localhost
      writes certs/ca.crt, certs/ca.key, certs/tls.crt and certs/tls.key for a webhook that is reached by URL;
      run it again to renew: a certificate that is valid for long enough stays as it is";

const PRIVATE: u32 = 0o600;
const PUBLIC: u32 = 0o644;

/// Mint or renew the authority and the serving certificate.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE, group = ArgGroup::new("place").args(["dir", "secret"]).required(true))]
pub struct CertsArgs {
    /// The folder for ca.crt, ca.key, tls.crt and tls.key
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kubeconfig", "context"])]
    pub dir: Option<PathBuf>,
    /// The Secret with the same content, as NAMESPACE/NAME
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = secret_name)]
    pub secret: Option<SecretName>,
    /// The Service in front of the webhook
    #[arg(long, default_value = "berth")]
    pub service: String,
    /// The namespace of the Service
    #[arg(long, default_value = "berth-system")]
    pub namespace: String,
    /// An additional DNS name or IP address of the certificate; may be repeated
    #[arg(long, value_name = "NAME|IP")]
    pub also: Vec<String>,
    /// Validity of a new serving certificate, in days
    #[arg(long, value_name = "DAYS", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub days: u32,
    /// Validity of a new authority, in days
    #[arg(long, value_name = "DAYS", default_value_t = 3650, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub authority_days: u32,
    /// The cluster of the Secret
    #[command(flatten)]
    pub connection: ConnectionArgs,
}

/// A Secret and its namespace.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SecretName {
    /// The namespace.
    pub namespace: String,
    /// The Secret.
    pub name: String,
}

/// Why the command failed.
#[derive(Debug, thiserror::Error)]
pub enum CertsError {
    /// A file can't be read or written.
    #[error("cannot {verb} {}", path.display())]
    File {
        /// The operation: `read`, `write` and so on.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Some of the files exist and others do not; nothing is overwritten.
    #[error("{} is missing beside the other certificate files; restore it, or remove them all", path.display())]
    Incomplete {
        /// The file that is missing.
        path: PathBuf,
    },
    /// A certificate can't be created, or the one in the folder can't be parsed.
    #[error("certificates for {place}")]
    Mint {
        /// The folder.
        place: String,
        /// Why.
        source: MintError,
    },
}

/// Creates or renews the certificates, and prints their end to standard error.
pub async fn run(args: CertsArgs, now: Timestamp) -> anyhow::Result<()> {
    let names = ServingNames { service: args.service, namespace: args.namespace, extra: args.also };
    let lifetimes = Lifetimes { authority: days(args.authority_days), serving: days(args.days) };
    match (args.dir, args.secret) {
        (Some(dir), _) => {
            let bundle = renew_in(&dir, &names, lifetimes, now)?;
            report(&dir.display().to_string(), &bundle)?;
        }
        (None, Some(SecretName { namespace, name })) => {
            let (client, cluster) = args.connection.client().await?;
            let api: Api<Secret> = Api::namespaced(client, &namespace);
            let bundle = secret::agree(&api, &name, &names, lifetimes, now).await;
            let bundle = bundle.map_err(|error| not_reached(error, &cluster))?;
            report(&format!("secret {namespace}/{name}"), &bundle)?;
        }
        (None, None) => unreachable!("clap asks for --dir or --secret"),
    }
    Ok(())
}

/// Brings the files of a folder up to date; the folder is made if there is none.
pub fn renew_in(
    dir: &Path,
    names: &ServingNames,
    lifetimes: Lifetimes,
    now: Timestamp,
) -> Result<Bundle, CertsError> {
    let mint = |source| CertsError::Mint { place: dir.display().to_string(), source };
    let fresh = match read(dir)? {
        None => mint::bundle(names, lifetimes, now).map_err(mint)?,
        Some(current) => match mint::renewed(&current, names, lifetimes, now).map_err(mint)? {
            None => return Ok(current),
            Some(fresh) => fresh,
        },
    };
    fs::create_dir_all(dir).map_err(|source| CertsError::File {
        verb: "make",
        path: dir.to_owned(),
        source,
    })?;
    write(&dir.join("ca.key"), &fresh.authority.key, PRIVATE)?;
    write(&dir.join("ca.crt"), &fresh.authority.certificate, PUBLIC)?;
    write(&dir.join("tls.key"), &fresh.serving.key, PRIVATE)?;
    write(&dir.join("tls.crt"), &fresh.serving.certificate, PUBLIC)?;
    Ok(fresh)
}

/// The bundle in a folder; `None` where none of the four files is there.
fn read(dir: &Path) -> Result<Option<Bundle>, CertsError> {
    let paths = ["ca.crt", "ca.key", "tls.crt", "tls.key"].map(|name| dir.join(name));
    let mut texts = Vec::with_capacity(paths.len());
    for path in &paths {
        texts.push(text(path)?);
    }
    if texts.iter().all(Option::is_none) {
        return Ok(None);
    }
    let mut found =
        paths.into_iter().zip(texts).map(|(path, text)| text.ok_or(CertsError::Incomplete { path }));
    let mut next = || found.next().expect("there are four files");
    let authority = Pair { certificate: next()?, key: next()? };
    let serving = Pair { certificate: next()?, key: next()? };
    Ok(Some(Bundle { authority, serving }))
}

fn text(path: &Path) -> Result<Option<String>, CertsError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(CertsError::File { verb: "read", path: path.to_owned(), source }),
    }
}

/// Writes beside the file and renames, so that a server which follows the file never sees half of it.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), CertsError> {
    let failed = |source| CertsError::File { verb: "write", path: path.to_owned(), source };
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    fs::rename(&new, path).map_err(failed)
}

fn report(place: &str, bundle: &Bundle) -> Result<(), CertsError> {
    let until = |what, pem: &str| {
        let validity = mint::validity(what, pem);
        validity.map_err(|source| CertsError::Mint { place: place.to_owned(), source })
    };
    let authority = until("the authority", &bundle.authority.certificate)?.not_after;
    let serving = until("the serving certificate", &bundle.serving.certificate)?.not_after;
    output::remark(&format!("{place}: authority until {authority}, serving certificate until {serving}"));
    Ok(())
}

fn days(days: u32) -> SignedDuration {
    SignedDuration::from_hours(24 * i64::from(days))
}

fn secret_name(text: &str) -> Result<SecretName, String> {
    let named = text
        .split_once('/')
        .filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty() && !name.contains('/'));
    let (namespace, name) = named.ok_or_else(|| format!("`{text}` is not written as NAMESPACE/NAME"))?;
    Ok(SecretName { namespace: namespace.to_owned(), name: name.to_owned() })
}

#[cfg(test)]
mod tests;
