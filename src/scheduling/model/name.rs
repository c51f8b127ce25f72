//! What things are named by.

use std::sync::Arc;

/// A name behind its namespace and a `/`; the name alone where there is no namespace.
pub fn full_name(namespace: &str, name: &str) -> Arc<str> {
    if namespace.is_empty() { name.into() } else { format!("{namespace}/{name}").into() }
}

/// A node's name.
pub type NodeName = Arc<str>;

/// A pod's uid: everything is keyed by it, since a recreated pod of the same name is another pod.
pub type Uid = Arc<str>;
