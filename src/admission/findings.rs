//! What rules have found so far: what refuses the pod, and what its author is told.
//!
//! Collects only; no rule stands here.

use super::{
    settings::Severity,
    verdict::{Rule, Violation},
};

/// What rules have found.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Findings {
    violations: Vec<Violation>,
    warnings: Vec<Violation>,
}

impl Findings {
    /// The pod is refused for this.
    pub fn deny(&mut self, rule: Rule, field: impl Into<String>, message: impl Into<String>) {
        self.violations.push(Violation { rule, field: field.into(), message: message.into() });
    }

    /// The pod's author is told this.
    pub fn warn(&mut self, rule: Rule, field: impl Into<String>, message: impl Into<String>) {
        self.warnings.push(Violation { rule, field: field.into(), message: message.into() });
    }

    /// Denies, warns or says nothing.
    pub fn report(
        &mut self,
        severity: Severity,
        rule: Rule,
        field: impl Into<String>,
        message: impl Into<String>,
    ) {
        match severity {
            Severity::Deny => self.deny(rule, field, message),
            Severity::Warn => self.warn(rule, field, message),
            Severity::Allow => {}
        }
    }

    /// What refuses the pod.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.violations.is_empty() && self.warnings.is_empty()
    }

    /// Without what `before` has too.
    #[must_use]
    pub fn without(mut self, before: &Self) -> Self {
        self.violations.retain(|violation| !before.violations.contains(violation));
        self.warnings.retain(|warning| !before.warnings.contains(warning));
        self
    }

    /// Violations in order, each once, and warnings in words.
    pub fn into_parts(mut self) -> (Vec<Violation>, Vec<String>) {
        self.violations.sort();
        self.violations.dedup();
        self.warnings.sort();
        self.warnings.dedup();
        let warnings = self.warnings.into_iter().map(|Violation { rule, field, message }| {
            let colon = if field.is_empty() { "" } else { ": " };
            format!("{field}{colon}{message} ({})", rule.0)
        });
        (self.violations, warnings.collect())
    }
}
