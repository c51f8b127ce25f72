//! The findings of the rules: violations, warnings, and the work that was used.
//!
//! It only collects; it contains no rule.

use std::{cmp::Ordering, collections::HashSet};

use super::{
    settings::Severity,
    verdict::{Rule, Violation},
    work::Work,
};

/// By rule, then by the place in the pod: `containers[2]` comes before `containers[10]`.
fn in_order(one: &Violation, other: &Violation) -> Ordering {
    let by_place = || steps(&one.field).cmp(steps(&other.field));
    one.rule.cmp(&other.rule).then_with(by_place).then_with(|| one.cmp(other))
}

/// One step of a field's path.
#[derive(Eq, Ord, PartialEq, PartialOrd)]
enum FieldStep<'a> {
    Index(u64),
    Name(&'a str),
}

fn steps(field: &str) -> impl Iterator<Item = FieldStep<'_>> {
    field.split(['.', '[', ']']).map(|step| step.parse().map_or(FieldStep::Name(step), FieldStep::Index))
}

/// The violations and warnings of one review.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ReviewFindings {
    violations: Vec<Violation>,
    warnings: Vec<Violation>,
    work: Work,
}

impl ReviewFindings {
    /// No findings yet, with this budget of work.
    pub fn within(work: Work) -> Self {
        Self { work, ..Self::default() }
    }

    /// The budget of work.
    pub fn work(&mut self) -> &mut Work {
        &mut self.work
    }

    /// Adds a violation, which denies the pod.
    pub fn deny(&mut self, rule: Rule, field: impl Into<String>, message: impl Into<String>) {
        self.violations.push(Violation::new(rule, field, message));
    }

    /// Adds a warning.
    pub fn warn(&mut self, rule: Rule, field: impl Into<String>, message: impl Into<String>) {
        self.warnings.push(Violation::new(rule, field, message));
    }

    /// Adds a violation, a warning or nothing, depending on the guard.
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

    /// The violations.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.violations.is_empty() && self.warnings.is_empty()
    }

    /// The findings that `before` does not have.
    #[must_use]
    pub fn without(mut self, before: &Self) -> Self {
        let known: HashSet<_> = before.violations.iter().collect();
        self.violations.retain(|violation| !known.contains(violation));
        let known: HashSet<_> = before.warnings.iter().collect();
        self.warnings.retain(|warning| !known.contains(warning));
        self.work.count(before.work.spent());
        self
    }

    /// Violations and warnings, each in order and once.
    pub fn into_parts(mut self) -> (Vec<Violation>, Vec<Violation>) {
        for found in [&mut self.violations, &mut self.warnings] {
            found.sort_by(in_order);
            found.dedup();
        }
        (self.violations, self.warnings)
    }
}

#[cfg(test)]
mod tests {
    use super::ReviewFindings;
    use crate::admission::verdict::Rule;

    #[test]
    fn what_is_found_is_told_by_rule_and_in_the_order_of_the_pod() {
        let mut findings = ReviewFindings::default();
        let fields = [
            "spec.containers[100].name",
            "spec.containers[2].name",
            "spec.containers[10].env[11]",
            "spec.containers[10].env[2]",
            "spec.containers[2].name",
            "metadata.annotations[a.b/c]",
        ];
        for field in fields {
            findings.deny(Rule("b"), field, "no");
            findings.warn(Rule("b"), field, "hm");
        }
        findings.deny(Rule("a"), "spec.volumes[0]", "no");
        let (violations, warnings) = findings.into_parts();
        let order = [
            "metadata.annotations[a.b/c]",
            "spec.containers[2].name",
            "spec.containers[10].env[2]",
            "spec.containers[10].env[11]",
            "spec.containers[100].name",
        ];
        let told: Vec<&str> = violations.iter().map(|violation| violation.field.as_str()).collect();
        assert_eq!(told, [&["spec.volumes[0]"], &order[..]].concat());
        let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(warnings, order.map(|field| format!("{field}: hm (b)")));
    }
}
