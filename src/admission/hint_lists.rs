//! Lists of wanted and unwanted cards: contradictions, empty elements, unknown cards, and lists that are too long.
//!
//! It reads the pod's own annotations; `hints` merges those of the namespace.

use std::{
    collections::{BTreeSet, HashSet},
    ops::Bound,
};

use super::{facts::Facts, findings::ReviewFindings, modes::Ways, rules, work::Work};
use crate::{
    device::CardId,
    dialect::{
        HintKeys,
        hints::{ALSO_USE_MODEL, elements},
        unreadable::annotation_path,
    },
    excerpt::{VALUE, excerpt, listed},
    object::Metadata,
};

/// How many known cards on each side of an unknown uuid are compared with it.
const NEIGHBOURS: usize = 32;

/// Longer names are not compared, in bytes: a uuid has 40.
const LONGEST_COMPARED: usize = 128;

/// Elements of a list that messages name.
const MOST_NAMED: usize = 8;

/// The longest list that is compared with the cards of a cluster, for one pod on each node anew.
struct Longest {
    elements: usize,
    bytes: usize,
}

/// Types are compared by substring, with each other too.
const TYPES: Longest = Longest { elements: 128, bytes: 8 * 1024 };
/// Cards are compared whole.
const CARDS: Longest = Longest { elements: 4096, bytes: 128 * 1024 };

/// Judges the lists of the modes that the pod asks in.
pub fn judge(findings: &mut ReviewFindings, metadata: &Metadata, ways: &Ways, facts: &Facts) {
    if metadata.annotations.is_none() {
        return;
    }
    for mode in ways.modes() {
        let spoken = facts.dialects.iter().filter(|dialect| dialect.mode() == mode);
        for keys in spoken.filter_map(|dialect| dialect.hint_keys()) {
            for key in keys.all() {
                emptiness(findings, metadata, key);
            }
            models(findings, metadata, keys);
            ids(findings, metadata, keys);
            if let Some(inventory) = &facts.inventory {
                unknown(findings, metadata, keys, inventory.cards());
            }
        }
    }
}

/// Reports empty elements, since an empty element would match every type, and a list of only empty elements matches nothing.
fn emptiness(findings: &mut ReviewFindings, metadata: &Metadata, key: &str) {
    let Some(value) = metadata.annotation(key).filter(|value| !value.trim().is_empty()) else { return };
    let said = elements(Some(value));
    let shown = excerpt(value, VALUE);
    if said.is_empty() {
        let message = format!("`{shown}` has no element; name what the pod needs, or remove the annotation");
        findings.deny(rules::HINT_EMPTY, annotation_path(key), message);
    } else if said.len() < value.split(',').count() {
        let meant = said.join(",");
        let message =
            format!("`{shown}` has empty elements, which have no effect; write `{}`", excerpt(&meant, VALUE));
        findings.warn(rules::HINT_EMPTY, annotation_path(key), message);
    }
}

/// Whether the list is short enough to compare; adds a violation if it is not.
fn is_short(findings: &mut ReviewFindings, metadata: &Metadata, key: &str, longest: &Longest) -> bool {
    let value = metadata.annotation(key).unwrap_or_default();
    let (elements, bytes) = (value.split(',').count(), value.len());
    let is_short = elements <= longest.elements && bytes <= longest.bytes;
    if !is_short {
        let message = format!(
            "has {elements} elements and {bytes} bytes; a list may have {} elements and {} bytes",
            longest.elements, longest.bytes
        );
        findings.deny(rules::HINT_LENGTH, annotation_path(key), message);
    }
    is_short
}

fn models(findings: &mut ReviewFindings, metadata: &Metadata, keys: &HintKeys) {
    let (Some(use_model), Some(no_use_model)) = (&keys.use_model, &keys.no_use_model) else { return };
    let all = [use_model.as_ref(), ALSO_USE_MODEL, no_use_model.as_ref()];
    if !all.map(|key| is_short(findings, metadata, key, &TYPES)).iter().all(|is_short| *is_short) {
        return;
    }
    let unwanted: Vec<_> =
        elements(metadata.annotation(no_use_model)).iter().map(|part| part.to_lowercase()).collect();
    if unwanted.is_empty() {
        return;
    }
    for key in [use_model.as_ref(), ALSO_USE_MODEL] {
        let wanted = elements(metadata.annotation(key));
        findings.work().count(wanted.len() * unwanted.len());
        // Types match by substring: one that contains an unwanted part is never of an admitted card.
        let ruled_out = |wanted: &&String| {
            let wanted = wanted.to_lowercase();
            unwanted.iter().any(|part| wanted.contains(part))
        };
        let gone: Vec<_> = wanted.iter().filter(ruled_out).map(String::as_str).collect();
        contradiction(findings, (key, no_use_model), &gone, wanted.len(), "type");
    }
}

fn ids(findings: &mut ReviewFindings, metadata: &Metadata, keys: &HintKeys) {
    for key in [&keys.use_id, &keys.no_use_id] {
        is_short(findings, metadata, key, &CARDS);
    }
    let wanted = elements(metadata.annotation(&keys.use_id));
    let unwanted: HashSet<_> = elements(metadata.annotation(&keys.no_use_id)).into_iter().collect();
    findings.work().count(wanted.len() + unwanted.len());
    let gone: Vec<_> = wanted.iter().filter(|id| unwanted.contains(*id)).map(String::as_str).collect();
    contradiction(findings, (&keys.use_id, &keys.no_use_id), &gone, wanted.len(), "card");
}

fn contradiction(
    findings: &mut ReviewFindings,
    (wanted, unwanted): (&str, &str),
    gone: &[&str],
    of: usize,
    what: &str,
) {
    if gone.is_empty() {
        return;
    }
    let names = listed(gone, MOST_NAMED);
    if gone.len() == of {
        let message = format!("wants {names}, which `{unwanted}` excludes: no {what} is left");
        findings.deny(rules::HINT_CONTRADICTION, annotation_path(wanted), message);
    } else {
        let message = format!("wants {names}, which `{unwanted}` excludes; remove it from one of the lists");
        findings.warn(rules::HINT_CONTRADICTION, annotation_path(wanted), message);
    }
}

fn unknown(findings: &mut ReviewFindings, metadata: &Metadata, keys: &HintKeys, known: &BTreeSet<CardId>) {
    for key in [&keys.use_id, &keys.no_use_id] {
        let ids: BTreeSet<_> = elements(metadata.annotation(key)).into_iter().collect();
        findings.work().count(ids.len());
        let mut unknown = ids.iter().filter(|id| !known.contains(id.as_str()));
        for id in unknown.by_ref().take(MOST_NAMED) {
            let nearest = nearest(id, known, findings.work())
                .map_or_else(String::new, |near| format!("; the nearest is {near}"));
            let message = format!("no known card is {}{nearest}", excerpt(id, VALUE));
            findings.warn(rules::UNKNOWN_CARD, annotation_path(key), message);
        }
        let rest = unknown.count();
        if rest > 0 {
            let message = format!("{rest} more cards of this list are not known");
            findings.warn(rules::UNKNOWN_CARD, annotation_path(key), message);
        }
    }
}

/// The known card that is spelled most alike, among those that begin alike; none where comparing them is too much work.
fn nearest<'a>(id: &str, known: &'a BTreeSet<CardId>, work: &mut Work) -> Option<&'a str> {
    if id.len() > LONGEST_COMPARED {
        return None;
    }
    let before = known.range::<str, _>((Bound::Unbounded, Bound::Excluded(id))).rev().take(NEIGHBOURS);
    let after = known.range::<str, _>((Bound::Excluded(id), Bound::Unbounded)).take(NEIGHBOURS);
    let near = before.chain(after).map(CardId::as_str).filter(|card| card.len() <= LONGEST_COMPARED);
    let near: Vec<_> = near.collect();
    if !work.afford(near.iter().map(|card| card.len() * id.len()).sum()) {
        return None;
    }
    near.into_iter().min_by_key(|card| (strsim::levenshtein(id, card), *card))
}
