//! Creates the webhook's own certificates: an authority and a serving certificate signed by it, and decides when to renew them.
//!
//! Time is a parameter. It stores and sends nothing, and never prints a key.

use std::{collections::BTreeSet, fmt, net::IpAddr};

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType,
};
use time::OffsetDateTime;
use x509_parser::{extensions::GeneralName, pem::Pem};

/// The common name of the authorities that Berth creates.
pub const AUTHORITY_NAME: &str = "berth webhook CA";

/// Certificates are valid from this long before now, for clients whose clock is behind.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(5);

/// Why a certificate can't be created or parsed.
#[derive(Debug, thiserror::Error)]
pub enum MintError {
    /// A name that is neither a DNS name nor an IP address.
    #[error("certificate name `{name}` is neither a DNS name nor an IP address")]
    Name {
        /// The name.
        name: String,
    },
    /// The end of the validity is outside of what a certificate can express.
    #[error("a certificate valid until {until} cannot be made")]
    Lifetime {
        /// The requested end.
        until: String,
    },
    /// The key or the authority can't be used to sign.
    #[error("signing a certificate failed")]
    Signing(#[from] rcgen::Error),
    /// A PEM text that holds no readable certificate.
    #[error("{what} is not a certificate in PEM: {reason}")]
    NotACertificate {
        /// The name of the text, for the message.
        what: &'static str,
        /// The parser's message.
        reason: String,
    },
}

/// The names of a serving certificate.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ServingNames {
    /// The Service in front of the webhook.
    pub service: String,
    /// The namespace of the Service.
    pub namespace: String,
    /// Additional DNS names and IP addresses, for a webhook that is reached by URL.
    pub extra: Vec<String>,
}

/// The validity of new certificates.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Lifetimes {
    /// The authority.
    pub authority: SignedDuration,
    /// The serving certificate.
    pub serving: SignedDuration,
}

impl Default for Lifetimes {
    /// Ten years for the authority, one year for the serving certificate.
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

/// The authority and the serving certificate: the content of one Secret or one folder.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Bundle {
    /// The authority that signs. After its renewal, the earlier ones that are still valid follow in the same PEM text, so that
    /// replicas that still serve an older certificate stay trusted.
    pub authority: Pair,
    /// The serving certificate.
    pub serving: Pair,
}

/// The validity of a certificate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CertificateValidity {
    /// The start of the validity.
    pub not_before: Timestamp,
    /// The end of the validity.
    pub not_after: Timestamp,
}

impl ServingNames {
    /// All names of the certificate: those of the Service first, then the additional ones.
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

/// Creates an authority that is valid from `now`.
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

/// Creates a serving certificate for `names`, signed by `authority` and valid from `now`. A client may show it too: kube-scheduler
/// shows it to Berth as its extender.
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
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// Creates an authority and a serving certificate of it.
pub fn bundle(names: &ServingNames, lifetimes: Lifetimes, now: Timestamp) -> Result<Bundle, MintError> {
    let authority = authority(lifetimes.authority, now)?;
    let serving = serving(&authority, names, lifetimes.serving, now)?;
    Ok(Bundle { authority, serving })
}

/// The bundle that replaces `current`; `None` if `current` needs no renewal yet.
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

/// Whether two thirds of the validity have passed.
pub fn needs_renewal(validity: CertificateValidity, now: Timestamp) -> bool {
    let whole = validity.not_after.duration_since(validity.not_before);
    let left = validity.not_after.duration_since(now);
    left <= whole / 3
}

/// The validity of the first certificate of a PEM text; `what` names the text in errors.
pub fn validity(what: &'static str, pem: &str) -> Result<CertificateValidity, MintError> {
    let first = first(what, pem)?;
    let certificate = first.parse_x509().map_err(|error| not_a_certificate(what, &error))?;
    let instant = |seconds| Timestamp::from_second(seconds).map_err(|error| not_a_certificate(what, &error));
    Ok(CertificateValidity {
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

/// The certificates of a PEM text that have not expired, as PEM.
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
