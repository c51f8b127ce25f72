//! Who holds a node's agent, and since when.

use std::sync::Arc;

use jiff::Timestamp;

use super::profile::ProfileName;

/// The most characters of a DNS label.
const LONGEST_LABEL: usize = 63;
/// The most characters of a DNS subdomain.
const LONGEST_SUBDOMAIN: usize = 253;

/// The pod that a lock names.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LockOwner {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl LockOwner {
    /// The pod of this name, where a pod can have it: the namespace is a DNS label, the name a DNS subdomain (RFC 1123; kubernetes
    /// `staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go`, `IsDNS1123Label`, `IsDNS1123Subdomain`). Both may so become
    /// a part of a path.
    pub fn parse(namespace: &str, name: &str) -> Option<Self> {
        let can_be = is_label(namespace) && namespace.len() <= LONGEST_LABEL && is_subdomain(name);
        can_be.then(|| Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= LONGEST_SUBDOMAIN && text.split('.').all(is_label)
}

fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    let is_end = |byte: Option<&u8>| byte.is_some_and(|byte| *byte != b'-');
    bytes.iter().all(is_inner) && is_end(bytes.first()) && is_end(bytes.last())
}

/// Which lock of a node: whose agents', and the key under which it stands. Agents of several dialects may have one key in common.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LockName {
    /// The dialect whose agents need it.
    pub profile: ProfileName,
    /// Its key on the node.
    pub key: Arc<str>,
}

/// When a pod needs a lock of its node to be bound.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum LockNeed {
    /// Always.
    #[default]
    Always,
    /// While another scheduler may take it, and where the node's agent would find another pod without it.
    WhereContested,
}

/// What stands under a lock's key on a node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Lock {
    /// Nothing.
    Free,
    /// It is taken.
    Held {
        /// The pod that holds it, where the value names one.
        owner: Option<LockOwner>,
        /// Since when.
        since: Timestamp,
    },
    /// A value that can't be read.
    Malformed {
        /// An excerpt of it.
        value: String,
    },
}
