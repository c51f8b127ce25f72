//! What is wrong with a key of a settings file, before it is known which file that is.

/// What is wrong with a key of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Trouble {
    pub(super) line: u64,
    pub(super) key: String,
    pub(super) message: String,
}

impl Trouble {
    /// The key's path from the root; empty: the file itself.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Whether the other one is of a key below this one's.
    pub(super) fn is_above(&self, other: &Self) -> bool {
        other.key.strip_prefix(&self.key).is_some_and(|rest| rest.starts_with(['.', '[']))
    }
}
