//! Annotations whose keys are nearly a hint's: nobody reads them, and their author should know.
//!
//! A warning only: the key may be another program's.

use std::sync::Arc;

use super::{facts::Facts, findings::Findings, modes::Ways, rules};
use crate::{
    dialect::{Dialect, hami, hints::ALSO_USE_MODEL, marks, unreadable::annotation_path, vendor, volcano},
    object::Metadata,
};

/// Every annotation that users write and that is read, whatever the vendor.
pub const KNOWN: [&str; 20] = [
    hami::names::USE_MODEL,
    hami::names::NO_USE_MODEL,
    hami::names::USE_ID,
    hami::names::NO_USE_ID,
    hami::names::MODE,
    hami::names::NUMA_BIND,
    hami::names::CARD_POLICY,
    hami::names::NODE_POLICY,
    hami::names::WEIGHTS,
    volcano::names::USE_ID,
    volcano::names::NO_USE_ID,
    volcano::names::MODE,
    volcano::names::PODGROUP_POLICY,
    marks::PREEMPTABLE,
    marks::REVOCABLE_ZONE,
    marks::COOLDOWN_TIME,
    marks::MIN_AVAILABLE,
    marks::MAX_UNAVAILABLE,
    vendor::ascend::MODE,
    ALSO_USE_MODEL,
];

/// What schedulers and node agents write: no one mistypes these by hand.
const WRITTEN: [&str; 8] = [
    hami::names::NODE,
    hami::names::TIME,
    hami::names::BIND_PHASE,
    hami::names::BIND_TIME,
    volcano::names::NODE,
    volcano::names::TIME,
    volcano::names::IDS,
    volcano::names::BIND_PHASE,
];

/// More changed letters than this make another word.
const FAR: usize = 2;

/// Judges the keys of a pod that asks for a share.
pub fn judge(findings: &mut Findings, metadata: &Metadata, ways: &Ways, facts: &Facts) {
    for key in metadata.annotations.iter().flat_map(|annotations| annotations.keys()) {
        let Some((domain, name)) = key.split_once('/') else { continue };
        if KNOWN.contains(&key.as_str()) || WRITTEN.contains(&key.as_str()) {
            continue;
        }
        if facts.dialects.iter().flat_map(hints_of).any(|known| known == key) {
            continue;
        }
        let asked = facts.dialects.iter().filter(|dialect| ways.modes().any(|mode| mode == dialect.mode()));
        if let Some(meant) = meant(key, domain, name, asked.flat_map(hints_of)) {
            let message = format!("nobody reads this key; `{meant}` is meant?");
            findings.warn(rules::HINT_KEY, annotation_path(key), message);
        }
    }
}

fn hints_of(dialect: &Arc<dyn Dialect>) -> impl Iterator<Item = &str> {
    dialect.hint_keys().all()
}

/// The known key, or the hint of the dialects that the pod asks in, that this one was meant to be: of the same domain first.
fn meant<'a>(key: &str, domain: &str, name: &str, hints: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let candidates = KNOWN.into_iter().chain(hints).filter_map(|known| {
        let (its_domain, its_name) = known.split_once('/')?;
        let same_name = plain(its_name).eq(plain(name));
        let near = its_domain == domain && strsim::levenshtein(its_name, name) <= FAR;
        (same_name || near).then(|| (its_domain != domain, strsim::levenshtein(known, key), known))
    });
    candidates.min().map(|(_, _, known)| known)
}

/// Letters and digits alone, in lower case.
fn plain(name: &str) -> impl Iterator<Item = char> + '_ {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase())
}
