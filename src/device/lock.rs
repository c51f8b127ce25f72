//! Who holds a node's agent, and since when.

use jiff::Timestamp;

/// The pod that a lock names.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LockOwner {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// What stands under a lock's key on a node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Lock {
    /// Nothing.
    Free,
    /// It is taken.
    Held {
        /// By whom, where the value says so.
        owner: Option<LockOwner>,
        /// Since when.
        since: Timestamp,
    },
    /// A value that nobody can read.
    Malformed {
        /// The value.
        value: String,
    },
}
