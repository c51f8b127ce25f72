//! Makes the webhook's own certificates: an authority, a serving certificate signed by it, and the decision to renew either.
//!
//! Time is a parameter. Nothing is stored or sent here, and no key is ever printed.

use std::{collections::BTreeSet, fmt, net::IpAddr};

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType,
};
use time::OffsetDateTime;
use x509_parser::{extensions::GeneralName, pem::Pem};

/// The common name of every authority made here.
pub const AUTHORITY_NAME: &str = "berth webhook CA";

/// Certificates begin to be valid this much earlier, for clocks that are behind.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(5);

/// Why a certificate can't be made or read.
#[derive(Debug, thiserror::Error)]
pub enum MintError {
    /// A name that nobody can have.
    #[error("certificate name `{name}` is neither a DNS name nor an IP address")]
    Name {
        /// The name.
        name: String,
    },
    /// The time asked for is outside of what certificates can say.
    #[error("a certificate valid until {until} cannot be made")]
    Lifetime {
        /// The end that was asked for.
        until: String,
    },
    /// The key or the authority can't be used to sign.
    #[error("signing a certificate failed")]
    Signing(#[from] rcgen::Error),
    /// A PEM text that holds no readable certificate.
    #[error("{what} is not a certificate in PEM: {reason}")]
    NotACertificate {
        /// Which text.
        what: &'static str,
        /// What the parser met.
        reason: String,
    },
}

/// The names that a serving certificate answers to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ServingNames {
    /// The Service in front of the webhook.
    pub service: String,
    /// The namespace of the Service.
    pub namespace: String,
    /// Further DNS names and IP addresses, for a webhook that is reached by URL.
    pub extra: Vec<String>,
}

/// How long certificates are good for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Lifetimes {
    /// The authority.
    pub authority: SignedDuration,
    /// The serving certificate.
    pub serving: SignedDuration,
}

impl Default for Lifetimes {
    /// Ten years and one year.
    fn default() -> Self {
        Self {
            authority: SignedDuration::from_hours(24 * 3650),
            serving: SignedDuration::from_hours(24 * 365),
        }
    }
}

/// A certificate and its private key, both in PEM.
#[derive(Clone, Eq, PartialEq)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// The key, PKCS#8.
    pub key: String,
}

impl fmt::Debug for Pair {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pair").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// All that a webhook needs to be trusted: what one Secret or one folder holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Bundle {
    /// The authority that signs. After its renewal the earlier ones that are still valid follow in the same PEM text,
    /// so that replicas which still serve an older certificate stay trusted.
    pub authority: Pair,
    /// What is served.
    pub serving: Pair,
}

/// From when until when a certificate is good.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Validity {
    /// The first instant.
    pub not_before: Timestamp,
    /// The last instant.
    pub not_after: Timestamp,
}

impl ServingNames {
    /// Every name, as the certificate lists them.
    pub fn all(&self) -> Vec<String> {
        let Self { service, namespace, extra } = self;
        let mut names = vec![
            format!("{service}.{namespace}.svc"),
            format!("{service}.{namespace}.svc.cluster.local"),
            format!("{service}.{namespace}"),
        ];
        names.extend(extra.iter().cloned());
        names
    }
}

/// Makes an authority, valid from `now`.
pub fn authority(lifetime: SignedDuration, now: Timestamp) -> Result<Pair, MintError> {
    let mut params = params(Vec::new(), lifetime, now)?;
    params.distinguished_name.push(DnType::CommonName, AUTHORITY_NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let certificate = params.self_signed(&key)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// Makes a serving certificate for `names`, signed by `authority`, valid from `now`.
pub fn serving(
    authority: &Pair,
    names: &ServingNames,
    lifetime: SignedDuration,
    now: Timestamp,
) -> Result<Pair, MintError> {
    let issuer = Issuer::from_ca_cert_pem(&authority.certificate, KeyPair::from_pem(&authority.key)?)?;
    let mut params = params(names.all(), lifetime, now)?;
    params.distinguished_name.push(DnType::CommonName, format!("{}.{}.svc", names.service, names.namespace));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// Makes an authority and a serving certificate.
pub fn bundle(names: &ServingNames, lifetimes: Lifetimes, now: Timestamp) -> Result<Bundle, MintError> {
    let authority = authority(lifetimes.authority, now)?;
    let serving = serving(&authority, names, lifetimes.serving, now)?;
    Ok(Bundle { authority, serving })
}

/// The bundle that is to take the place of `current`; `None` where `current` is good for longer.
///
/// A new authority must be published (`registration`) before its serving certificate is served.
pub fn renewed(
    current: &Bundle,
    names: &ServingNames,
    lifetimes: Lifetimes,
    now: Timestamp,
) -> Result<Option<Bundle>, MintError> {
    if needs_renewal(validity("the authority", &current.authority.certificate)?, now) {
        let mut fresh = bundle(names, lifetimes, now)?;
        fresh.authority.certificate.push_str(&still_valid(&current.authority.certificate, now)?);
        return Ok(Some(fresh));
    }
    let serves = validity("the serving certificate", &current.serving.certificate)?;
    let wanted: BTreeSet<String> = names.all().into_iter().collect();
    if !needs_renewal(serves, now) && names_of(&current.serving.certificate)? == wanted {
        return Ok(None);
    }
    let serving = serving(&current.authority, names, lifetimes.serving, now)?;
    Ok(Some(Bundle { authority: current.authority.clone(), serving }))
}

/// Whether two thirds of the time are over.
pub fn needs_renewal(validity: Validity, now: Timestamp) -> bool {
    let whole = validity.not_after.duration_since(validity.not_before);
    let left = validity.not_after.duration_since(now);
    left <= whole / 3
}

/// When the first certificate of a PEM text is good; `what` names the text in errors.
pub fn validity(what: &'static str, pem: &str) -> Result<Validity, MintError> {
    let first = first(what, pem)?;
    let certificate = first.parse_x509().map_err(|error| not_a_certificate(what, &error))?;
    let instant = |seconds| Timestamp::from_second(seconds).map_err(|error| not_a_certificate(what, &error));
    Ok(Validity {
        not_before: instant(certificate.validity().not_before.timestamp())?,
        not_after: instant(certificate.validity().not_after.timestamp())?,
    })
}

fn names_of(pem: &str) -> Result<BTreeSet<String>, MintError> {
    const WHAT: &str = "the serving certificate";
    let first = first(WHAT, pem)?;
    let certificate = first.parse_x509().map_err(|error| not_a_certificate(WHAT, &error))?;
    let names = certificate.subject_alternative_name().map_err(|error| not_a_certificate(WHAT, &error))?;
    Ok(names.iter().flat_map(|names| &names.value.general_names).filter_map(spelled).collect())
}

fn spelled(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(octets) => address(octets).map(|address| address.to_string()),
        _ => None,
    }
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(octets).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(octets).map(IpAddr::from)).ok()
}

/// The certificates of a PEM text whose time is not over, as PEM.
fn still_valid(pem: &str, now: Timestamp) -> Result<String, MintError> {
    const WHAT: &str = "the authority";
    let mut kept = String::new();
    for block in Pem::iter_from_buffer(pem.as_bytes()) {
        let block = block.map_err(|error| not_a_certificate(WHAT, &error))?;
        let certificate = block.parse_x509().map_err(|error| not_a_certificate(WHAT, &error))?;
        if certificate.validity().not_after.timestamp() > now.as_second() {
            kept.push_str(&written(&block.contents));
        }
    }
    Ok(kept)
}

/// A DER certificate in PEM, 64 letters a line.
fn written(der: &[u8]) -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let letters = STANDARD.encode(der);
    let lines = letters.as_bytes().chunks(64).map(String::from_utf8_lossy).collect::<Vec<_>>().join("\n");
    format!("-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n")
}

fn first(what: &'static str, pem: &str) -> Result<Pem, MintError> {
    let first = Pem::iter_from_buffer(pem.as_bytes()).next();
    let first = first.ok_or_else(|| not_a_certificate(what, &"there is no PEM block"))?;
    first.map_err(|error| not_a_certificate(what, &error))
}

fn not_a_certificate(what: &'static str, reason: &dyn fmt::Display) -> MintError {
    MintError::NotACertificate { what, reason: reason.to_string() }
}

fn params(
    names: Vec<String>,
    lifetime: SignedDuration,
    now: Timestamp,
) -> Result<CertificateParams, MintError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.not_before = date(now.checked_sub(CLOCK_SKEW), now)?;
    params.not_after = date(now.checked_add(lifetime), now)?;
    for name in names {
        let alternative = match name.parse::<IpAddr>() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) if !is_dns_name(&name) => return Err(MintError::Name { name }),
            Err(_) => SanType::DnsName(name.as_str().try_into().map_err(|_| MintError::Name { name })?),
        };
        params.subject_alt_names.push(alternative);
    }
    Ok(params)
}

/// Labels of letters, digits and inner hyphens; the first may be `*` (RFC 1123, RFC 6125).
fn is_dns_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_label = |label: &str| {
        let edges = !label.starts_with('-') && !label.ends_with('-');
        (1..=63).contains(&label.len()) && edges && label.bytes().all(fits)
    };
    let rest = name.strip_prefix("*.").unwrap_or(name);
    name.len() <= 253 && rest.split('.').all(is_label)
}

fn date(instant: Result<Timestamp, jiff::Error>, now: Timestamp) -> Result<OffsetDateTime, MintError> {
    let beyond = || MintError::Lifetime { until: format!("beyond the calendar, counted from {now}") };
    let instant = instant.map_err(|_| beyond())?;
    OffsetDateTime::from_unix_timestamp(instant.as_second()).map_err(|_| beyond())
}

#[cfg(test)]
mod tests;
