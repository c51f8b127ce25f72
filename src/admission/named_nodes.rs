//! The nodes that a pod names by its node selector or its required affinity, which are the only ones that it can run on.
//!
//! It reads only the pod, and does not check whether the nodes exist.

use std::collections::BTreeSet;

use crate::object::{NodeSelectorTerm, Pod, Requirement, node::HOSTNAME};

/// The field that tells a node by its name.
const NAME_FIELD: &str = "metadata.name";

/// The nodes, where the pod names any, with the field that names them first.
pub fn of(pod: &Pod) -> Option<(String, BTreeSet<&str>)> {
    let selected = pod.spec.node_selector.as_ref().and_then(|labels| labels.get(HOSTNAME));
    if let Some(hostname) = selected {
        return Some((format!("spec.nodeSelector[{HOSTNAME}]"), BTreeSet::from([hostname.as_str()])));
    }
    let required = pod.spec.affinity.node_affinity.as_ref()?.required.as_ref()?;
    let mut named = BTreeSet::new();
    for term in &required.node_selector_terms {
        named.extend(of_term(term)?);
    }
    let field = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";
    (!named.is_empty()).then(|| (field.to_owned(), named))
}

/// Terms are alternatives: one that names no node leaves every node open.
fn of_term(term: &NodeSelectorTerm) -> Option<Vec<&str>> {
    let names =
        |requirement: &&Requirement, key: &str| requirement.key == key && requirement.operator == "In";
    let by_label = term.match_expressions.iter().find(|requirement| names(requirement, HOSTNAME));
    let by_field = term.match_fields.iter().find(|requirement| names(requirement, NAME_FIELD));
    let requirement = by_label.or(by_field)?;
    Some(requirement.values.iter().map(String::as_str).collect())
}
