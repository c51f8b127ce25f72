//! What the audit log keeps of an answer beside what the API server notes itself.
//!
//! That a pod was changed or refused, and by which webhook, is noted there already; nothing here costs an answer without warnings.

use std::collections::BTreeMap;

use crate::admission::Violation;

/// The rules that only warned: the audit log keeps no warnings.
pub(super) fn warned(warnings: &[Violation]) -> BTreeMap<&'static str, String> {
    let names: Vec<&str> = warnings.iter().map(|warning| warning.rule.0).collect();
    if names.is_empty() { BTreeMap::new() } else { BTreeMap::from([("warnings", names.join(","))]) }
}
