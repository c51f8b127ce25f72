//! Annotations with a key that is nearly that of a hint, and that no known program reads.
//!
//! It only warns, since another program may use the key.

use std::sync::Arc;

use super::{facts::Facts, findings::ReviewFindings, modes::Ways, rules};
use crate::{
    dialect::{
        Dialect, HintKeys, hami, hints::ALSO_USE_MODEL, koordinator, marks, unreadable::annotation_path,
        vendor, volcano,
    },
    object::Metadata,
};

/// The annotations that users write and that are read for every vendor.
pub const KNOWN: [&str; 26] = [
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
    marks::EXPECTED_DURATION,
    vendor::ascend::MODE,
    koordinator::names::HINT,
    koordinator::names::JOINT,
    koordinator::names::PARTITION_SPEC,
    koordinator::names::BY_CONTAINER,
    koordinator::names::NCCL,
    ALSO_USE_MODEL,
];

/// The annotations that schedulers and device plugins write, which are not typing errors.
const WRITTEN: [&str; 9] = [
    hami::names::NODE,
    hami::names::TIME,
    hami::names::BIND_PHASE,
    hami::names::BIND_TIME,
    volcano::names::NODE,
    volcano::names::TIME,
    volcano::names::IDS,
    volcano::names::BIND_PHASE,
    koordinator::names::ALLOCATED,
];

/// The largest edit distance of a typing error.
const FAR: usize = 2;

/// The longest name behind a key's domain that the API server takes, in bytes.
const LONGEST_NAME: usize = 63;

/// The most keys of a pod that are reported.
const MOST_TOLD: usize = 16;

/// Judges the keys of a pod that asks for a share; of many keys, the first for which there is work left.
pub fn judge(findings: &mut ReviewFindings, metadata: &Metadata, ways: &Ways, facts: &Facts) {
    let Some(annotations) = &metadata.annotations else { return };
    let is_read = |key: &str| {
        let mut hints = facts.dialects.iter().flat_map(hints_of);
        KNOWN.contains(&key) || WRITTEN.contains(&key) || hints.any(|hint| hint == key)
    };
    let asked = || facts.dialects.iter().filter(|dialect| ways.modes().any(|mode| mode == dialect.mode()));
    let known = || KNOWN.into_iter().chain(asked().flat_map(hints_of));
    let mut told = 0;
    for key in annotations.keys().filter(|key| !is_read(key)) {
        let Some((domain, name)) = key.split_once('/').filter(|(_, name)| name.len() <= LONGEST_NAME) else {
            continue;
        };
        let known: Vec<_> = known().filter_map(|known| KnownKey::of(known, domain, name)).collect();
        if told == MOST_TOLD || !findings.work().afford(known.iter().map(|known| known.steps).sum()) {
            break;
        }
        if let Some(meant) = meant(key, name, known.into_iter()) {
            let message = format!("no program reads this key; did you mean `{meant}`?");
            findings.warn(rules::HINT_KEY, annotation_path(key), message);
            told += 1;
        }
    }
}

fn hints_of(dialect: &Arc<dyn Dialect>) -> impl Iterator<Item = &str> {
    dialect.hint_keys().into_iter().flat_map(HintKeys::all)
}

/// A known key beside one that is not.
struct KnownKey<'a> {
    key: &'a str,
    name: &'a str,
    /// Whether both are of one domain.
    at_home: bool,
    /// Whether the names are of so nearly one length that one may be a misspelling of the other.
    alike: bool,
    /// What comparing them costs.
    steps: usize,
}

impl<'a> KnownKey<'a> {
    fn of(key: &'a str, domain: &str, name: &str) -> Option<Self> {
        // Each key of each pod is held against each known one: a search of the bytes costs less than one for a character.
        let slash = key.bytes().position(|byte| byte == b'/')?;
        let (its_domain, its_name) = (&key[..slash], &key[slash + 1..]);
        let at_home = its_domain == domain;
        let alike = at_home && its_name.len().abs_diff(name.len()) <= FAR * char::MAX.len_utf8();
        let steps = if alike { its_name.len() * name.len() } else { 1 };
        Some(Self { key, name: its_name, at_home, alike, steps })
    }
}

/// The known key, or the hint of the dialects that the pod asks in, that this one was meant to be: of the same domain first.
fn meant<'a>(key: &str, name: &str, known: impl Iterator<Item = KnownKey<'a>>) -> Option<&'a str> {
    let candidates = known.filter(|known| {
        let near = known.alike && strsim::levenshtein(known.name, name) <= FAR;
        near || plain(known.name).eq(plain(name))
    });
    let nearest = candidates.map(|known| (!known.at_home, strsim::levenshtein(known.key, key), known.key));
    nearest.min().map(|(_, _, known)| known)
}

/// Letters and digits alone, in lower case.
fn plain(name: &str) -> impl Iterator<Item = char> + '_ {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase())
}
