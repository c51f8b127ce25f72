//! The errors of a settings file, and the notices about keys without effect.

use std::{fmt, io};

use super::trouble::Trouble;

/// Why a settings file was not taken.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It could not be read from the disk.
    #[error("{file}: {reason}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        reason: io::Error,
    },
    /// It is larger than the limit.
    #[error("{file}: larger than {limit} bytes, the limit for settings")]
    TooLarge {
        /// The file.
        file: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// It is not YAML.
    #[error("{file}:{line}: {message}")]
    Yaml {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        message: String,
    },
    /// Several keys are wrong; the first errors, by line.
    #[error("{}", listed(.0))]
    Several(Vec<Self>),
    /// A key is unknown, has a wrong value, or contradicts another.
    #[error("{file}:{line}: {key}: {message}")]
    Key {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The key's path from the root.
        key: String,
        /// What is wrong.
        message: String,
    },
}

fn listed(errors: &[ConfigError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl ConfigError {
    /// The error of a file in which this is wrong: at least one thing.
    pub(super) fn of(troubles: Vec<Trouble>, file: &str) -> Self {
        let mut errors: Vec<_> = troubles.into_iter().map(|trouble| Self::of_key(trouble, file)).collect();
        if errors.len() == 1 { errors.remove(0) } else { Self::Several(errors) }
    }

    fn of_key(Trouble { line, key, message }: Trouble, file: &str) -> Self {
        let file = file.to_owned();
        if key.is_empty() {
            return Self::Yaml { file, line, message };
        }
        Self::Key { file, line, key, message }
    }

    /// Each error for itself.
    pub fn each(&self) -> Vec<&Self> {
        match self {
            Self::Several(errors) => errors.iter().collect(),
            one => vec![one],
        }
    }
}

/// A key that is recognised and has no effect, or not all of its effect.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Notice {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The key's path from the root.
    pub key: String,
    /// Why.
    pub message: String,
}

impl fmt::Display for Notice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, key, message } = self;
        write!(formatter, "{file}:{line}: {key}: {message}")
    }
}
