//! Lists of wanted and unwanted cards: what contradicts itself, says nothing, or names a card that nobody knows.
//!
//! Reads the pod's own annotations; merging the namespace's is `hints`.

use std::{collections::BTreeSet, ops::Bound};

use super::{facts::Facts, findings::Findings, modes::Ways, rules};
use crate::{
    dialect::{
        HintKeys,
        hints::{ALSO_USE_MODEL, elements},
        unreadable::annotation_path,
    },
    object::Metadata,
};

/// How many known cards on each side of an unknown uuid are compared with it.
const NEIGHBOURS: usize = 256;

/// Judges the lists of the modes that the pod asks in.
pub fn judge(findings: &mut Findings, metadata: &Metadata, ways: &Ways, facts: &Facts) {
    if metadata.annotations.is_none() {
        return;
    }
    for mode in ways.modes() {
        let spoken = facts.dialects.iter().filter(|dialect| dialect.mode() == mode);
        for keys in spoken.map(|dialect| dialect.hint_keys()) {
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

/// `"A100,"` must not come to mean everything, nor `","` nothing.
fn emptiness(findings: &mut Findings, metadata: &Metadata, key: &str) {
    let Some(value) = metadata.annotation(key).filter(|value| !value.trim().is_empty()) else { return };
    let said = elements(Some(value));
    if said.is_empty() {
        let message = format!("`{value}` names nothing; write what is meant or leave the annotation out");
        findings.deny(rules::HINT_EMPTY, annotation_path(key), message);
    } else if said.len() < value.split(',').count() {
        let message = format!("`{value}` has empty elements, which say nothing; write `{}`", said.join(","));
        findings.warn(rules::HINT_EMPTY, annotation_path(key), message);
    }
}

fn models(findings: &mut Findings, metadata: &Metadata, keys: &HintKeys) {
    let (Some(use_model), Some(no_use_model)) = (&keys.use_model, &keys.no_use_model) else { return };
    let unwanted = elements(metadata.annotation(no_use_model));
    if unwanted.is_empty() {
        return;
    }
    for key in [use_model.as_ref(), ALSO_USE_MODEL] {
        let wanted = elements(metadata.annotation(key));
        // Types match by substring: one that contains an unwanted part is never of an admitted card.
        let ruled_out = |wanted: &&String| {
            let wanted = wanted.to_lowercase();
            unwanted.iter().any(|part| wanted.contains(&part.to_lowercase()))
        };
        let gone: Vec<_> = wanted.iter().filter(ruled_out).map(String::as_str).collect();
        contradiction(findings, (key, no_use_model), &gone, wanted.len(), "type");
    }
}

fn ids(findings: &mut Findings, metadata: &Metadata, keys: &HintKeys) {
    let wanted = elements(metadata.annotation(&keys.use_id));
    let unwanted = elements(metadata.annotation(&keys.no_use_id));
    let gone: Vec<_> = wanted.iter().filter(|id| unwanted.contains(id)).map(String::as_str).collect();
    contradiction(findings, (&keys.use_id, &keys.no_use_id), &gone, wanted.len(), "card");
}

fn contradiction(
    findings: &mut Findings,
    (wanted, unwanted): (&str, &str),
    gone: &[&str],
    of: usize,
    what: &str,
) {
    if gone.is_empty() {
        return;
    }
    let names = gone.join(", ");
    if gone.len() == of {
        let message = format!("wants {names}, which `{unwanted}` rules out: no {what} is left");
        findings.deny(rules::HINT_CONTRADICTION, annotation_path(wanted), message);
    } else {
        let message = format!("wants {names}, which `{unwanted}` rules out; leave it out of one list");
        findings.warn(rules::HINT_CONTRADICTION, annotation_path(wanted), message);
    }
}

fn unknown(findings: &mut Findings, metadata: &Metadata, keys: &HintKeys, known: &BTreeSet<String>) {
    for key in [&keys.use_id, &keys.no_use_id] {
        for id in elements(metadata.annotation(key)).into_iter().filter(|id| !known.contains(id)) {
            let nearest =
                nearest(&id, known).map_or_else(String::new, |near| format!("; the nearest is {near}"));
            findings.warn(
                rules::UNKNOWN_CARD,
                annotation_path(key),
                format!("no known card is {id}{nearest}"),
            );
        }
    }
}

/// The known card that is spelled most alike, among those that begin alike.
fn nearest<'a>(id: &str, known: &'a BTreeSet<String>) -> Option<&'a str> {
    let before = known.range::<str, _>((Bound::Unbounded, Bound::Excluded(id))).rev().take(NEIGHBOURS);
    let after = known.range::<str, _>((Bound::Excluded(id), Bound::Unbounded)).take(NEIGHBOURS);
    before.chain(after).map(String::as_str).min_by_key(|card| (strsim::levenshtein(id, card), *card))
}
