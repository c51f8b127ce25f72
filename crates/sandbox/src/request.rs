//! What a client asks: the verb, the object and the options of one request; it carries nothing out.

use super::{
    resource::Resource,
    status::{Result, StatusError},
};
use serde_json::{Value, json};
use std::{fmt, sync::Mutex};

/// The verbs of the Kubernetes API that are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Read one.
    Get,
    /// Read all.
    List,
    /// Follow changes.
    Watch,
    /// Make one.
    Create,
    /// Replace one.
    Update,
    /// Change parts of one.
    Patch,
    /// Remove one.
    Delete,
    /// Remove all that are selected.
    DeleteCollection,
}

impl fmt::Display for Verb {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", format!("{self:?}").to_lowercase())
    }
}

/// Who asks, as admission webhooks read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserInfo {
    /// Such as `system:serviceaccount:ns:name`.
    pub username: String,
    /// Such as `system:masters`.
    pub groups: Vec<String>,
}

impl UserInfo {
    /// The administrator that every unmarked request comes from.
    pub fn admin() -> Self {
        let groups = vec!["system:masters".to_owned(), "system:authenticated".to_owned()];
        Self { username: "system:admin".to_owned(), groups }
    }

    /// A service account of a namespace with the groups that it always has.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let groups = vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated".to_owned(),
        ];
        Self { username: format!("system:serviceaccount:{namespace}:{name}"), groups }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({ "username": self.username, "groups": self.groups })
    }
}

/// Whether a write is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DryRun {
    Off,
    All,
}

/// The decoded query string, in its order.
#[derive(Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(key, value)| (percent_decode(key), percent_decode(value)))
                .collect(),
        )
    }

    /// The value, where it is present and not empty.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, value)| name == key && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    pub(super) fn is_set(&self, key: &str) -> bool {
        matches!(self.get(key), Some("true" | "1" | "True"))
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<u64>> {
        self.get(key)
            .map(|text| {
                text.parse().map_err(|_| StatusError::bad_request(format!("{key}: not a number: {text:?}")))
            })
            .transpose()
    }

    pub(super) fn dry_run(&self) -> Result<DryRun> {
        match self.get("dryRun") {
            None => Ok(DryRun::Off),
            Some("All") => Ok(DryRun::All),
            Some(other) => Err(StatusError::new(
                422,
                "Invalid",
                format!("dryRun: Unsupported value: {other:?}: supported values: \"All\""),
            )),
        }
    }
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = (*first == b'%')
            .then(|| tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok()))
            .flatten()
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(escaped.unwrap_or(if *first == b'+' { b' ' } else { *first }));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// One request about one resource.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) verb: Verb,
    pub(super) resource: &'static Resource,
    /// Empty for cluster scope and for all namespaces.
    pub(super) namespace: String,
    /// Empty for collections.
    pub(super) name: String,
    /// Empty for the object itself.
    pub(super) subresource: String,
    pub(super) query: Query,
    pub(super) user: UserInfo,
    pub(super) content_type: String,
    pub(super) accept: String,
    pub(super) warnings: Mutex<Vec<String>>,
}

impl Call {
    /// The store's key of the object asked for.
    pub(super) fn key(&self) -> (String, String) {
        (self.namespace.clone(), self.name.clone())
    }

    pub(super) fn warn(&self, text: String) {
        self.warnings.lock().expect("no holder of this lock panics").push(text);
    }
}

#[cfg(test)]
mod tests {
    use super::Query;

    #[test]
    fn queries_are_decoded() {
        let query = Query::parse("labelSelector=a%3Db%2Cc+in+%28d%29&watch=1&limit=");
        assert_eq!(query.get("labelSelector"), Some("a=b,c in (d)"));
        assert!(query.is_set("watch") && query.get("limit").is_none());
    }
}
