//! A namespace's type and UUID hints bind its pods: injected where the pod has none, merged where it has its own.
//!
//! Both hold: no-use lists are united, UUID lists intersected, and a second list of wanted types is written beside the pod's own,
//! since two lists of substrings can't be made one.

use std::collections::HashSet;

use super::{draft::Draft, findings::ReviewFindings, rules};
use crate::{
    dialect::{
        HintKeys,
        hints::{ALSO_USE_MODEL, elements},
        unreadable::annotation_path,
    },
    excerpt::listed,
    object::Metadata,
};

/// Elements of a list that a message names.
const MOST_NAMED: usize = 8;

/// Merges the namespace's hints into the pod; a contradiction is a violation that names both.
pub fn merge(draft: &mut Draft, namespace: &Metadata, keys: &HintKeys, findings: &mut ReviewFindings) {
    for key in keys.no_use_model.iter().chain([&keys.no_use_id]) {
        unite(draft, namespace, key);
    }
    if let Some(key) = &keys.use_model {
        both_types(draft, namespace, key);
    }
    intersect(draft, namespace, &keys.use_id, findings);
}

fn unite(draft: &mut Draft, namespace: &Metadata, key: &str) {
    let own = elements(draft.pod().metadata.annotation(key));
    let known: HashSet<_> = own.iter().collect();
    let more: Vec<_> =
        elements(namespace.annotation(key)).into_iter().filter(|element| !known.contains(element)).collect();
    if !more.is_empty() {
        draft.set_annotation(key, &[own, more].concat().join(","));
    }
}

fn both_types(draft: &mut Draft, namespace: &Metadata, key: &str) {
    let wanted = elements(namespace.annotation(key));
    if wanted.is_empty() {
        return;
    }
    let own = elements(draft.pod().metadata.annotation(key));
    let also = elements(draft.pod().metadata.annotation(ALSO_USE_MODEL));
    if own.is_empty() {
        draft.set_annotation(key, &wanted.join(","));
    } else if own != wanted && also != wanted {
        draft.set_annotation(ALSO_USE_MODEL, &wanted.join(","));
    }
}

fn intersect(draft: &mut Draft, namespace: &Metadata, key: &str, findings: &mut ReviewFindings) {
    let wanted = elements(namespace.annotation(key));
    let own = elements(draft.pod().metadata.annotation(key));
    if wanted.is_empty() {
        return;
    }
    let known: HashSet<_> = wanted.iter().collect();
    let both: Vec<_> = own.iter().filter(|uuid| known.contains(uuid)).cloned().collect();
    if own.is_empty() {
        draft.set_annotation(key, &wanted.join(","));
    } else if both.is_empty() {
        let message = format!(
            "the pod wants one of {} and its namespace {} one of {}: the lists have no card in common",
            listed(&own, MOST_NAMED),
            namespace.name,
            listed(&wanted, MOST_NAMED)
        );
        findings.deny(rules::HINT_CONFLICT, annotation_path(key), message);
    } else if both != own {
        draft.set_annotation(key, &both.join(","));
    }
}
