//! URLs, as Go's `net/url` reads and writes them (Go 1.26 `ParseRequestURI`, which Kubernetes uses): absolute, or an absolute path.
//!
//! A crate that reads URLs as browsers do would take other texts, and write hosts and paths in another form.

use std::any::Any;

use cel::common::{
    types::Type,
    value::{StaticVal, Val},
};

use super::{is_value, quoted};

/// A URL.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::dra::cel) struct CelUrl {
    scheme: String,
    /// What stands behind a scheme that neither authority nor path follow.
    opaque: String,
    user: Option<Vec<u8>>,
    /// With the port.
    host: String,
    path: String,
    query: Option<String>,
    fragment: Option<Vec<u8>>,
}

/// The part of a URL in which `%41` stands for a character.
#[derive(Clone, Copy, Eq, PartialEq)]
enum UrlPart {
    Host,
    Zone,
    /// Any other.
    Other,
}

impl CelUrl {
    /// Reads a URL, with its fragment; `None`: the text is none.
    pub(in crate::dra::cel) fn parse(text: &str) -> Option<Self> {
        Self::parse_request(text)?;
        match text.split_once('#') {
            None => Self::parse_request(text),
            Some((text, fragment)) => {
                let url = Self::parse_request(text)?;
                let fragment = unescaped(fragment, UrlPart::Other).ok()?;
                Some(Self { fragment: Some(fragment).filter(|fragment| !fragment.is_empty()), ..url })
            }
        }
    }

    /// Reads a URL that has no fragment, where `#` means nothing; `None`: the text is none.
    pub(in crate::dra::cel) fn parse_request(text: &str) -> Option<Self> {
        Self::read_request(text).ok()
    }

    /// Why a text is no URL without a fragment, in Go's words; `None`: it is one. What is wrong with an IPv6 address is said in fewer words.
    pub(in crate::dra::cel) fn reason_against(text: &str) -> Option<String> {
        let reason = Self::read_request(text).err()?;
        Some(format!("parse {}: {reason}", quoted(text.as_bytes())))
    }

    fn read_request(text: &str) -> Result<Self, String> {
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        if text.is_empty() {
            return Err("empty url".to_owned());
        }
        let (scheme, rest) = scheme(text).ok_or("missing protocol scheme")?;
        let (rest, query) = match rest.split_once('?') {
            None => (rest, None),
            Some((rest, query)) => (rest, Some(query.to_owned())),
        };
        let empty = String::new;
        let mut url = Self {
            scheme: scheme.to_ascii_lowercase(),
            opaque: empty(),
            user: None,
            host: empty(),
            path: empty(),
            query,
            fragment: None,
        };
        if text == "*" {
            return Ok(Self { path: "*".to_owned(), ..url });
        }
        if !rest.starts_with('/') {
            if scheme.is_empty() {
                return Err("invalid URI for request".to_owned());
            }
            return Ok(Self { opaque: rest.to_owned(), ..url });
        }
        let mut path = rest;
        if let Some(behind) = rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
            let (authority, rest) = behind.split_at(behind.find('/').unwrap_or(behind.len()));
            path = rest;
            let (user, host) =
                authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
            url.host = read_host(&url.scheme, host)?;
            url.user = match user {
                None => None,
                Some(user) if user.bytes().all(is_of_user) => Some(unescaped(user, UrlPart::Other)?),
                Some(_) => return Err("net/url: invalid userinfo".to_owned()),
            };
        }
        url.path = read_path(path)?;
        Ok(url)
    }

    /// In lower case; empty: there is none.
    pub(in crate::dra::cel) fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The host with the port; empty: there is none.
    pub(in crate::dra::cel) fn host(&self) -> &str {
        &self.host
    }

    /// The host without the port and without brackets.
    pub(in crate::dra::cel) fn hostname(&self) -> &str {
        let (name, _) = self.name_and_port();
        name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name)
    }

    /// The digits of the port; empty: there is none.
    pub(in crate::dra::cel) fn port(&self) -> &str {
        self.name_and_port().1
    }

    fn name_and_port(&self) -> (&str, &str) {
        let split = self.host.rsplit_once(':');
        split.filter(|(_, port)| port.bytes().all(|digit| digit.is_ascii_digit())).unwrap_or((&self.host, ""))
    }

    /// The path, with `%41` for characters that a path can't have.
    pub(in crate::dra::cel) fn escaped_path(&self) -> &str {
        &self.path
    }

    /// The names of the query with their values, in the order of the text; what can't be read is left out.
    pub(in crate::dra::cel) fn query(&self) -> Vec<(String, String)> {
        let pairs = self.query.as_deref().unwrap_or_default().split('&');
        let pairs = pairs.filter(|pair| !pair.is_empty() && !pair.contains(';'));
        let read = |text: &str| {
            let text = unescaped(&text.replace('+', " "), UrlPart::Other).ok()?;
            Some(String::from_utf8_lossy(&text).into_owned())
        };
        pairs
            .filter_map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                Some((read(name)?, read(value)?))
            })
            .collect()
    }
}

/// The scheme, which may be empty, and what stands behind it; `None`: a colon without a scheme in front of it.
fn scheme(text: &str) -> Option<(&str, &str)> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return None,
            b':' => return Some((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Some(("", text))
}

/// The host with the port, without `%41`; an error says why it is none.
fn read_host(scheme: &str, host: &str) -> Result<String, String> {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let no_port = |port: &str| format!("invalid port {} after host", quoted(port.as_bytes()));
    match host.rfind('[') {
        Some(0) => {
            let end = host.rfind(']').ok_or("missing ']' in host")?;
            let (name, port) = (&host[1..end], &host[end + 1..]);
            if !is_port(port) {
                return Err(no_port(port));
            }
            let (address, zone) = name.split_at(name.find("%25").unwrap_or(name.len()));
            let address = text(unescaped(address, UrlPart::Host)?);
            let zone = text(unescaped(zone, UrlPart::Zone)?);
            let is_zone = zone.is_empty() || zone.len() > 1;
            if address.parse::<std::net::Ipv6Addr>().is_ok() && is_zone {
                return Ok(format!("[{address}{zone}]{port}"));
            }
            if zone.is_empty() && address.parse::<std::net::Ipv4Addr>().is_ok() {
                return Err("invalid IP-literal".to_owned());
            }
            Err("invalid host".to_owned())
        }
        Some(_) => Err("invalid IP-literal".to_owned()),
        None => {
            let last = if matches!(scheme, "http" | "https") { host.find(':') } else { host.rfind(':') };
            if let Some(port) = last.map(|at| &host[at..]).filter(|port| !is_port(port)) {
                return Err(no_port(port));
            }
            unescaped(host, UrlPart::Host).map(text)
        }
    }
}

/// Whether a text is nothing, or a colon and digits.
fn is_port(text: &str) -> bool {
    text.is_empty()
        || text.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))
}

fn is_of_user(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:!$&'()*+,;=%@".contains(&byte)
}

/// The path as Go writes it: as it stands, if a path can have all of its characters.
fn read_path(path: &str) -> Result<String, String> {
    let characters = unescaped(path, UrlPart::Other)?;
    let can_stand = |byte: u8| is_plain(byte) || b"!'()*[]%".contains(&byte);
    if path.bytes().all(can_stand) {
        return Ok(path.to_owned());
    }
    let mut written = String::with_capacity(path.len());
    for byte in characters {
        if is_plain(byte) {
            written.push(char::from(byte));
        } else {
            written.extend([format!("%{byte:02X}")]);
        }
    }
    Ok(written)
}

/// Whether Go leaves a character of a path as it is.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte)
}

/// The bytes that a text stands for; an error: it has a `%` that stands for nothing, or a character that the part can't have.
fn unescaped(text: &str, part: UrlPart) -> Result<Vec<u8>, String> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut bytes = text.as_bytes();
    let mut read = Vec::with_capacity(text.len());
    while let Some((&byte, rest)) = bytes.split_first() {
        if byte != b'%' {
            if part != UrlPart::Other && byte.is_ascii() && !is_of_host(byte) {
                return Err(format!("invalid character {} in host name", quoted(&[byte])));
            }
            read.push(byte);
            bytes = rest;
            continue;
        }
        let stands_for = match rest {
            [high, low, ..] => digit(high).zip(digit(low)).map(|(high, low)| high * 16 + low),
            _ => None,
        };
        let can_stand = |byte: &u8| match part {
            UrlPart::Host => !byte.is_ascii() || *byte == b'%',
            // A zone begins with `%25`.
            UrlPart::Zone => *byte == b'%' || *byte == b' ' || is_of_host(*byte),
            UrlPart::Other => true,
        };
        let escape = &bytes[..bytes.len().min(3)];
        let wrong = || format!("invalid URL escape {}", quoted(escape));
        read.push(stands_for.filter(can_stand).ok_or_else(wrong)?);
        bytes = &rest[2..];
    }
    Ok(read)
}

fn is_of_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte)
}

is_value!(CelUrl, "kubernetes.URL");
