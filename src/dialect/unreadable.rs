//! Why something that was written can't be read: which field, and what to change.

use std::fmt;

use crate::excerpt::{FIELD, MESSAGE, shortened};

/// The kind of trouble; admission makes a rule of each.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Problem {
    /// A number that can't be represented: fraction, negative, too large, no number at all.
    Quantity,
    /// A share is asked for, but no number of cards.
    CountMissing,
    /// Memory is given as an amount and as a percentage.
    MemoryTwice,
    /// A hint's value that binds the choice of cards to nothing.
    Hint,
    /// A combination that the node's agent can't serve.
    Unserved,
    /// A node's list of cards.
    Registration,
    /// A pod's assignment.
    Assignment,
    /// A card of a pod's assignment that can't be identified.
    Card,
    /// A node's lock.
    Lock,
}

/// One thing that can't be read.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, thiserror::Error)]
#[error("{field}: {message}")]
pub struct Unreadable {
    /// The kind of trouble.
    pub problem: Problem,
    /// The field, as a path from the object's root.
    pub field: String,
    /// What is wrong with it, in words.
    pub message: String,
}

impl Unreadable {
    /// This trouble with this field. Path and message may hold a user's or a node's text: what is kept of each is an excerpt.
    pub fn new(problem: Problem, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { problem, field: shortened(field, FIELD), message: shortened(message, MESSAGE) }
    }

    /// Trouble with an annotation.
    pub fn annotation(problem: Problem, key: &str, message: impl Into<String>) -> Self {
        Self::new(problem, annotation_path(key), message)
    }
}

/// The path of an annotation.
pub fn annotation_path(key: &str) -> String {
    format!("metadata.annotations[{key}]")
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Quantity => "quantity",
            Self::CountMissing => "count-missing",
            Self::MemoryTwice => "memory-twice",
            Self::Hint => "hint",
            Self::Unserved => "unserved",
            Self::Registration => "registration",
            Self::Assignment => "assignment",
            Self::Card => "card",
            Self::Lock => "lock",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::excerpt::NOTE;

    #[test]
    fn whatever_a_field_and_a_value_hold_they_are_shortened_and_put_on_one_line() {
        let long = format!("a\nb{}", "x".repeat(100_000));
        let trouble = Unreadable::annotation(Problem::Assignment, &long, long.clone());
        assert!(trouble.field.len() <= FIELD + NOTE && trouble.message.len() <= MESSAGE + NOTE);
        let text = trouble.to_string();
        assert!(text.starts_with(r"metadata.annotations[a\nbxxx") && !text.contains('\n'), "{text}");
    }
}
