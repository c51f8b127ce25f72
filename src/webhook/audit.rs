//! What the audit log keeps of an answer beside what the API server notes itself.
//!
//! That a pod was changed or refused, and by which webhook, is noted there already; nothing here costs an answer without warnings.

use std::collections::BTreeMap;

use crate::admission::rules;

/// The rules that only warned: the audit log keeps no warnings.
pub(super) fn warned(warnings: &[String]) -> BTreeMap<&'static str, String> {
    let names: Vec<&str> = warnings.iter().filter_map(|warning| rule_of(warning)).collect();
    if names.is_empty() { BTreeMap::new() } else { BTreeMap::from([("warnings", names.join(","))]) }
}

/// The rule in whose name a warning ends.
fn rule_of(warning: &str) -> Option<&'static str> {
    let (_, name) = warning.strip_suffix(')')?.rsplit_once('(')?;
    rules::ALL.iter().map(|(rule, _)| rule.0).find(|rule| *rule == name)
}
