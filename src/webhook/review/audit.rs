//! The audit annotations of an answer, beside those that the API server writes itself.
//!
//! The API server already records that a webhook changed or denied a pod. An answer without warnings and violations has no annotations.

use std::collections::{BTreeMap, HashSet};

use crate::admission::Violation;

/// The rules that only warned; without this annotation, the audit log would not show them.
pub(super) fn warned(warnings: &[Violation]) -> BTreeMap<&'static str, String> {
    let names = names(warnings.iter().map(|warning| warning.rule.0));
    if names.is_empty() { BTreeMap::new() } else { BTreeMap::from([("warnings", names)]) }
}

/// The names of the rules, each once, since a pod may break one rule in many places.
pub(super) fn names<'a>(rules: impl Iterator<Item = &'a str>) -> String {
    let mut seen = HashSet::new();
    rules.filter(|rule| seen.insert(*rule)).collect::<Vec<_>>().join(",")
}
