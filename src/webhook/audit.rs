//! What the audit log keeps of an answer beside what the API server notes itself.
//!
//! That a pod was changed or refused, and by which webhook, is noted there already; nothing here costs an answer without warnings.

use std::collections::{BTreeMap, HashSet};

use crate::admission::Violation;

/// The rules that only warned: the audit log keeps no warnings.
pub(super) fn warned(warnings: &[Violation]) -> BTreeMap<&'static str, String> {
    let names = names(warnings.iter().map(|warning| warning.rule.0));
    if names.is_empty() { BTreeMap::new() } else { BTreeMap::from([("warnings", names)]) }
}

/// The names of rules, each once: a pod may break one rule in thousands of places.
pub(super) fn names<'a>(rules: impl Iterator<Item = &'a str>) -> String {
    let mut seen = HashSet::new();
    rules.filter(|rule| seen.insert(*rule)).collect::<Vec<_>>().join(",")
}
