//! The verdict of a review.

use std::fmt;

use json_patch::PatchOperation;
use serde::Serialize;

use crate::{
    excerpt::{FIELD, MESSAGE, shortened},
    object::workload::Places,
};

/// A rule's stable name: kebab-case, listed in `docs/rules.md` and by `berth review --rules`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Rule(pub &'static str);

/// One violation or warning.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Violation {
    /// The rule that was broken.
    pub rule: Rule,
    /// The field, as a path from the object's root.
    pub field: String,
    /// The message for the user: what is wrong, and what to change.
    pub message: String,
}

impl Violation {
    /// What breaks this rule. Path and message may hold a user's or a node's text: what is kept of each is an excerpt.
    pub fn new(rule: Rule, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { rule, field: shortened(field, FIELD), message: shortened(message, MESSAGE) }
    }

    /// The same of a workload in which the pod's fields stand at these places.
    #[must_use]
    pub fn at(&self, places: &Places) -> Self {
        Self::new(self.rule, places.of(&self.field), places.in_words(&self.message))
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, field, message } = self;
        let colon = if field.is_empty() { "" } else { ": " };
        write!(formatter, "{field}{colon}{message} ({})", rule.0)
    }
}

/// The verdict of one review. A denial never has a patch.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The pod does not concern Berth.
    Ignored,
    /// Admitted, with a patch.
    Admitted {
        /// Operations on the JSON of the request; empty at the validating stage.
        patch: Vec<PatchOperation>,
        /// The warnings.
        warnings: Vec<Violation>,
    },
    /// Denied.
    Denied {
        /// The reasons; at least one.
        violations: Vec<Violation>,
        /// The warnings.
        warnings: Vec<Violation>,
    },
}

impl Verdict {
    /// The warnings, whatever the outcome.
    pub fn warnings(&self) -> &[Violation] {
        match self {
            Self::Ignored => &[],
            Self::Admitted { warnings, .. } | Self::Denied { warnings, .. } => warnings,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::excerpt::NOTE;

    #[test]
    fn whatever_a_field_and_a_value_hold_they_are_told_in_short_on_one_line() {
        let long = format!("a\nb{}", "x".repeat(100_000));
        let Violation { field, message, .. } = Violation::new(Rule("r"), long.clone(), long);
        assert!(field.len() <= FIELD + NOTE && message.len() <= MESSAGE + NOTE);
        assert!([field, message].iter().all(|text| text.starts_with(r"a\nbxxx")));
    }
}
