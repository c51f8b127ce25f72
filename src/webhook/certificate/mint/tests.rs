//! Names, times and renewals of minted certificates.

use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::*;

const DAY: i64 = 24;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn days(days: i64) -> SignedDuration {
    SignedDuration::from_hours(DAY * days)
}

fn names() -> ServingNames {
    let extra = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    ServingNames { service: "berth".to_owned(), namespace: "berth-system".to_owned(), extra }
}

fn lifetimes() -> Lifetimes {
    Lifetimes { authority: days(300), serving: days(30) }
}

fn count(pem: &str) -> usize {
    Pem::iter_from_buffer(pem.as_bytes()).count()
}

#[test]
fn a_minted_bundle_holds_the_names_and_times_asked_for() {
    let now = at("2026-03-01T12:00:00Z");
    let Bundle { authority, serving } = bundle(&names(), lifetimes(), now).unwrap();
    let validity = validity("it", &serving.certificate).unwrap();
    assert_eq!(validity.not_before, at("2026-03-01T11:55:00Z"));
    assert_eq!(validity.not_after, at("2026-03-31T12:00:00Z"));
    let expected = ["berth.berth-system", "berth.berth-system.svc", "berth.berth-system.svc.cluster.local"];
    let expected = expected.into_iter().chain(["127.0.0.1", "localhost"]).map(str::to_owned).collect();
    assert_eq!(names_of(&serving.certificate).unwrap(), expected);

    let (leaf, root) =
        (first("it", &serving.certificate).unwrap(), first("it", &authority.certificate).unwrap());
    let (_, leaf) = X509Certificate::from_der(&leaf.contents).unwrap();
    let (_, root) = X509Certificate::from_der(&root.contents).unwrap();
    assert_eq!(root.subject().to_string(), format!("CN={AUTHORITY_NAME}"));
    assert_eq!(leaf.issuer(), root.subject());
    assert!(root.is_ca() && !leaf.is_ca());
    assert!(leaf.extended_key_usage().unwrap().unwrap().value.server_auth);
}

#[test]
fn renewal_is_due_when_two_thirds_are_over() {
    let validity =
        CertificateValidity { not_before: at("2026-01-01T00:00:00Z"), not_after: at("2026-01-31T00:00:00Z") };
    assert!(!needs_renewal(validity, at("2026-01-20T23:59:59Z")));
    assert!(needs_renewal(validity, at("2026-01-21T00:00:00Z")));
    assert!(needs_renewal(validity, at("2027-01-01T00:00:00Z")));
}

#[test]
fn what_is_good_for_longer_stays() {
    let now = at("2026-03-01T12:00:00Z");
    let current = bundle(&names(), lifetimes(), now).unwrap();
    assert_eq!(renewed(&current, &names(), lifetimes(), now).unwrap(), None);
}

#[test]
fn a_serving_certificate_is_renewed_under_the_same_authority() {
    let now = at("2026-03-01T12:00:00Z");
    let current = bundle(&names(), lifetimes(), now).unwrap();
    let later = now + days(21);
    let fresh = renewed(&current, &names(), lifetimes(), later).unwrap().unwrap();
    assert_eq!(fresh.authority, current.authority);
    assert_eq!(validity("it", &fresh.serving.certificate).unwrap().not_after, later + days(30));
}

#[test]
fn a_missing_name_renews_the_serving_certificate() {
    let now = at("2026-03-01T12:00:00Z");
    let current = bundle(&names(), lifetimes(), now).unwrap();
    let more = ServingNames { extra: vec!["::1".to_owned()], ..names() };
    let fresh = renewed(&current, &more, lifetimes(), now).unwrap().unwrap();
    assert!(names_of(&fresh.serving.certificate).unwrap().contains("::1"));
    assert_eq!(renewed(&fresh, &more, lifetimes(), now).unwrap(), None);
}

#[test]
fn a_new_authority_is_followed_by_the_earlier_one_until_that_ends() {
    let start = at("2026-03-01T12:00:00Z");
    let first = bundle(&names(), lifetimes(), start).unwrap();
    let second = renewed(&first, &names(), lifetimes(), start + days(250)).unwrap().unwrap();
    assert_eq!(count(&second.authority.certificate), 2);
    assert!(second.authority.certificate.ends_with(&first.authority.certificate.replace("\r\n", "\n")));
    let signed_again = serving(&second.authority, &names(), days(30), start + days(251));
    assert!(signed_again.is_ok(), "the first certificate of the text is the one that signs");
    let third = renewed(&second, &names(), lifetimes(), start + days(500)).unwrap().unwrap();
    assert_eq!(count(&third.authority.certificate), 2, "the first authority has ended");
}

#[test]
fn a_name_that_no_certificate_can_hold_is_named() {
    let made = |name: &str| {
        let odd = ServingNames { extra: vec![name.to_owned()], ..names() };
        bundle(&odd, lifetimes(), at("2026-03-01T12:00:00Z"))
    };
    for name in ["naïve", "", "not a name", "-a", "a..b", "https://a", "a.*", "_a"] {
        let error = made(name).unwrap_err().to_string();
        assert_eq!(error, format!("certificate name `{name}` is neither a DNS name nor an IP address"));
    }
    for name in ["a", "*.example.com", "10.0.0.1", "::1", "A-1.b"] {
        assert!(made(name).is_ok(), "{name}");
    }
}

#[test]
fn a_key_is_not_printed() {
    let pair = authority(days(1), at("2026-03-01T12:00:00Z")).unwrap();
    assert!(!format!("{pair:?}").contains("PRIVATE"));
}
