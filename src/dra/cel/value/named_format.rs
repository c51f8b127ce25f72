//! Kubernetes' named formats of texts, and why a text is not of one, in Kubernetes' words (kubernetes
//! `staging/src/k8s.io/apiserver/pkg/cel/library/format.go`, `staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go` and
//! `staging/src/k8s.io/apimachinery/pkg/api/validate/content`, 1.36; kube-openapi `pkg/validation/strfmt`).

use std::{any::Any, borrow::Cow};

use cel::common::{
    types::Type,
    value::{StaticVal, Val},
};

use super::{CelUrl, is_value};

/// A named format.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::dra::cel) enum CelFormat {
    Byte,
    Date,
    DateTime,
    Dns1035Label,
    Dns1035LabelPrefix,
    Dns1123Label,
    Dns1123LabelPrefix,
    Dns1123Subdomain,
    Dns1123SubdomainPrefix,
    LabelValue,
    QualifiedName,
    Uri,
    Uuid,
}

impl CelFormat {
    /// The formats, each with the name that an expression has for it.
    pub(in crate::dra::cel) const ALL: [(&'static str, Self); 13] = [
        ("byte", Self::Byte),
        ("date", Self::Date),
        ("datetime", Self::DateTime),
        ("dns1035Label", Self::Dns1035Label),
        ("dns1035LabelPrefix", Self::Dns1035LabelPrefix),
        ("dns1123Label", Self::Dns1123Label),
        ("dns1123LabelPrefix", Self::Dns1123LabelPrefix),
        ("dns1123Subdomain", Self::Dns1123Subdomain),
        ("dns1123SubdomainPrefix", Self::Dns1123SubdomainPrefix),
        ("labelValue", Self::LabelValue),
        ("qualifiedName", Self::QualifiedName),
        ("uri", Self::Uri),
        ("uuid", Self::Uuid),
    ];

    pub(in crate::dra::cel) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, format)| format)
    }

    /// Why a text is not of the format; none: it is.
    pub(in crate::dra::cel) fn reasons(self, text: &str) -> Vec<String> {
        let one = |is_valid: bool, reason: &str| (!is_valid).then(|| reason.to_owned()).into_iter().collect();
        match self {
            Self::Byte => one(is_base64(text), "invalid base64"),
            Self::Date => one(is_date(text), "invalid date"),
            Self::DateTime => one(is_date_time(text), "invalid datetime"),
            Self::Uuid => one(is_uuid(text), "does not match the UUID format"),
            Self::Uri => CelUrl::reason_against(text).into_iter().collect(),
            Self::Dns1035Label => label(text.as_bytes(), &DNS1035_LABEL),
            Self::Dns1035LabelPrefix => label(&with_ending(text), &DNS1035_LABEL),
            Self::Dns1123Label => dns1123_label(text.as_bytes()),
            Self::Dns1123LabelPrefix => dns1123_label(&with_ending(text)),
            Self::Dns1123Subdomain => label(text.as_bytes(), &DNS1123_SUBDOMAIN),
            Self::Dns1123SubdomainPrefix => label(&with_ending(text), &DNS1123_SUBDOMAIN),
            Self::LabelValue => label(text.as_bytes(), &LABEL_VALUE),
            Self::QualifiedName => qualified_name(text),
        }
    }
}

is_value!(CelFormat, "kubernetes.NamedFormat");

/// A kind of name: what it is, how long it may be, and what is said of others.
struct NameKind {
    is_valid: fn(&[u8]) -> bool,
    longest: usize,
    /// What a length is counted in, in the words of whichever package of Kubernetes has the kind.
    unit: &'static str,
    rule: &'static str,
    examples: &'static [&'static str],
    pattern: &'static str,
}

const LABEL_PATTERN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

const DNS1123_LABEL: NameKind = NameKind {
    is_valid: is_dns1123_label,
    longest: 63,
    unit: "characters",
    rule: "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
    examples: &["my-name", "123-abc"],
    pattern: LABEL_PATTERN,
};

const DNS1123_SUBDOMAIN: NameKind = NameKind {
    is_valid: is_dns1123_subdomain,
    longest: 253,
    unit: "characters",
    rule: "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
    examples: &["example.com"],
    pattern: r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
};

const DNS1035_LABEL: NameKind = NameKind {
    is_valid: |name| is_dns1123_label(name) && name[0].is_ascii_lowercase(),
    longest: 63,
    unit: "characters",
    rule: "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
    examples: &["my-name", "abc-123"],
    pattern: "[a-z]([-a-z0-9]*[a-z0-9])?",
};

const LABEL_VALUE: NameKind = NameKind {
    is_valid: |value| value.is_empty() || is_label_name(value),
    longest: 63,
    unit: "bytes",
    rule: "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    examples: &["MyValue", "my_value", "12345"],
    pattern: "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
};

const LABEL_NAME: NameKind = NameKind {
    is_valid: is_label_name,
    longest: 63,
    unit: "bytes",
    rule: "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    examples: &["MyName", "my.name", "123-abc"],
    pattern: "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]",
};

impl NameKind {
    fn too_long(&self, name: &[u8]) -> Option<String> {
        (name.len() > self.longest).then(|| format!("must be no more than {} {}", self.longest, self.unit))
    }

    fn invalid(&self) -> String {
        let examples: Vec<_> = self.examples.iter().map(|example| format!("'{example}', ")).collect();
        format!(
            "{} (e.g. {}regex used for validation is '{}')",
            self.rule,
            examples.join(" or "),
            self.pattern
        )
    }
}

fn label(name: &[u8], kind: &NameKind) -> Vec<String> {
    let invalid = (!(kind.is_valid)(name)).then(|| kind.invalid());
    kind.too_long(name).into_iter().chain(invalid).collect()
}

fn dns1123_label(name: &[u8]) -> Vec<String> {
    let mut reasons = label(name, &DNS1123_LABEL);
    if !is_dns1123_label(name) && is_dns1123_subdomain(name) {
        reasons.pop();
        reasons.push("must not contain dots".to_owned());
    }
    reasons
}

fn qualified_name(text: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    let name = match text.split('/').collect::<Vec<_>>()[..] {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                reasons.push("prefix part must be non-empty".to_owned());
            } else {
                let prefix = label(prefix.as_bytes(), &NameKind { unit: "bytes", ..DNS1123_SUBDOMAIN });
                reasons.extend(prefix.into_iter().map(|reason| format!("prefix part {reason}")));
            }
            name
        }
        _ => {
            let invalid = LABEL_NAME.invalid();
            return vec![format!(
                "a valid label key {invalid} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        reasons.push("name part must be non-empty".to_owned());
    }
    reasons
        .extend(label(name.as_bytes(), &LABEL_NAME).into_iter().map(|reason| format!("name part {reason}")));
    reasons
}

/// A name to which more is added may end with `-`. Kubernetes puts `a` in the place of the last two bytes.
fn with_ending(name: &str) -> Cow<'_, [u8]> {
    match name.strip_suffix('-').map(str::as_bytes) {
        Some([begin @ .., _]) => Cow::Owned([begin, b"a"].concat()),
        _ => Cow::Borrowed(name.as_bytes()),
    }
}

fn is_label_of(name: &[u8], is_end: fn(&u8) -> bool, is_middle: fn(&u8) -> bool) -> bool {
    let ends = name.first().zip(name.last());
    ends.is_some_and(|(first, last)| is_end(first) && is_end(last)) && name.iter().all(is_middle)
}

fn is_dns1123_label(name: &[u8]) -> bool {
    let is_end = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    is_label_of(name, is_end, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-')
}

fn is_dns1123_subdomain(name: &[u8]) -> bool {
    name.split(|byte| *byte == b'.').all(is_dns1123_label)
}

fn is_label_name(name: &[u8]) -> bool {
    is_label_of(name, u8::is_ascii_alphanumeric, |byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

fn is_base64(text: &str) -> bool {
    let digits = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/".contains(&byte);
    !text.is_empty() && text.len().is_multiple_of(4) && digits.bytes().all(is_digit)
}

/// The dashes may be left out.
fn is_uuid(text: &str) -> bool {
    let mut rest = text;
    for (at, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if at > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        match rest.split_at_checked(length) {
            Some((digits, behind)) if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => rest = behind,
            _ => return false,
        }
    }
    rest.is_empty()
}

fn is_date(text: &str) -> bool {
    let is_written = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    is_written && text.parse::<jiff::civil::Date>().is_ok()
}

/// What stands behind a second `t` does not matter: Kubernetes passes over it.
fn is_date_time(text: &str) -> bool {
    let mut parts = text.split(['t', 'T']);
    let date = parts.next().is_some_and(is_date);
    date && parts.next().is_some_and(is_time)
}

/// A time of day with its offset. Any character may stand in front of the digits of a fraction.
fn is_time(text: &str) -> bool {
    let Some((clock, rest)) = text.split_at_checked(8) else { return false };
    let two = |text: &str, at: usize, most: &str| {
        text.get(at..at + 2).is_some_and(|two| two.bytes().all(|digit| digit.is_ascii_digit()) && two <= most)
    };
    let is_colon = |text: &str, at: usize| text.as_bytes().get(at) == Some(&b':');
    let is_clock = two(clock, 0, "23")
        && is_colon(clock, 2)
        && two(clock, 3, "59")
        && is_colon(clock, 5)
        && two(clock, 6, "59");
    let is_offset = |text: &str| {
        let offset = text.strip_prefix(['+', '-']);
        let is_offset =
            |text: &str| text.len() == 5 && two(text, 0, "99") && is_colon(text, 2) && two(text, 3, "99");
        matches!(text, "z" | "Z") || offset.is_some_and(is_offset)
    };
    let behind_fraction = || {
        let mut characters = rest.chars();
        let point = characters.next()?;
        let digits = characters.as_str();
        let behind = digits.trim_start_matches(|digit: char| digit.is_ascii_digit());
        (point != '\n' && behind.len() < digits.len()).then_some(behind)
    };
    is_clock && (is_offset(rest) || behind_fraction().is_some_and(is_offset))
}
