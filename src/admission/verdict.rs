//! What comes of a review.

use std::fmt;

use json_patch::PatchOperation;
use serde::Serialize;

/// A rule's stable name: kebab-case, listed in the README and by `berth review --rules`.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Rule(pub &'static str);

/// One thing that is wrong with a pod.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Violation {
    /// The rule that was broken.
    pub rule: Rule,
    /// The field, as a path from the object's root.
    pub field: String,
    /// What to change, in words for a person.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, field, message } = self;
        let colon = if field.is_empty() { "" } else { ": " };
        write!(formatter, "{field}{colon}{message} ({})", rule.0)
    }
}

/// The answer to one review. Deny and patch never come together.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// None of Berth's business.
    Ignored,
    /// Admitted, with what is to be changed.
    Admitted {
        /// Operations on the very JSON that came in; empty at the validating stage.
        patch: Vec<PatchOperation>,
        /// What the pod's author is warned of.
        warnings: Vec<Violation>,
    },
    /// Refused.
    Denied {
        /// Why: at least one violation.
        violations: Vec<Violation>,
        /// What the pod's author is warned of.
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
