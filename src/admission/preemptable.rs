//! Labels and annotations for preemption and time division that contradict each other or can't be read.
//!
//! Scheduling decides their effect. Source: volcano `pkg/scheduler/api/pod_info.go`, `plugins/tdm`, `plugins/cdp`.

use super::{facts::Facts, findings::ReviewFindings, named_nodes, rules};
use crate::{
    dialect::{go_bool, marks, unreadable::annotation_path},
    object::{Metadata, Pod, duration, pod::SYSTEM_CLASSES},
};

/// Whether the pod has a mark that this file judges.
pub fn is_marked(metadata: &Metadata) -> bool {
    let keys = [
        marks::PREEMPTABLE,
        marks::REVOCABLE_ZONE,
        marks::COOLDOWN_TIME,
        marks::MIN_AVAILABLE,
        marks::MAX_UNAVAILABLE,
        marks::EXPECTED_DURATION,
    ];
    keys.iter().any(|key| metadata.annotation(key).or(metadata.label(key)).is_some())
}

/// Judges the marks of a pod.
pub fn judge(findings: &mut ReviewFindings, pod: &Pod, namespace: &str, facts: &Facts) {
    if !is_marked(&pod.metadata) {
        return;
    }
    let preemptable = preemptable(findings, &pod.metadata);
    if let Some((value, field)) = &preemptable {
        group(findings, &pod.metadata, namespace, (*value, field), facts);
        critical(findings, pod, *value, field);
    }
    let stated = preemptable.map(|(value, _)| value);
    zone(findings, &pod.metadata, stated, facts);
    if stated == Some(false) {
        revocable_node(findings, pod, facts);
    } else {
        selected_zone(findings, pod, facts);
    }
    cooldown(findings, &pod.metadata);
    expected_duration(findings, &pod.metadata);
    budget(findings, &pod.metadata);
}

/// Judges what a change takes back: what was bound as a pod that may be evicted stays one.
pub fn judge_change(findings: &mut ReviewFindings, pod: &Pod, old: &Pod) {
    let Some(node) = old.spec.node_name.as_deref().filter(|node| !node.is_empty()) else { return };
    let (new, old) = (&pod.metadata, &old.metadata);
    let mut deny = |field: String| {
        let message = format!(
            "the pod was bound to node {node} as a pod that is evicted when a revocable zone closes, and this can't be changed; delete the pod and create it again"
        );
        findings.deny(rules::PREEMPTABLE_CHANGED, field, message);
    };
    if old.annotation(marks::LENT).is_some() && new.annotation(marks::LENT) != old.annotation(marks::LENT) {
        deny(annotation_path(marks::LENT));
    }
    if marks::says_that_it_leaves(old) && !marks::says_that_it_leaves(new) {
        let of_label = |metadata: &Metadata| metadata.annotation(marks::PREEMPTABLE).is_none();
        let key = marks::PREEMPTABLE;
        let changed = [new, old].into_iter().find(|metadata| marks::preemptable(metadata).is_some());
        deny(match changed {
            Some(stated) if of_label(stated) => label_path(key),
            Some(_) => annotation_path(key),
            None => annotation_path(marks::REVOCABLE_ZONE),
        });
    }
}

fn label_path(key: &str) -> String {
    format!("metadata.labels[{key}]")
}

/// The mark's value and the field that states it: the annotation, else the label.
fn preemptable(findings: &mut ReviewFindings, metadata: &Metadata) -> Option<(bool, String)> {
    let key = marks::PREEMPTABLE;
    let mut read = |text: Option<&str>, field: String| {
        let text = text?;
        let value = go_bool(text);
        if value.is_none() {
            let message = format!("`{text}` is neither true nor false; write `true` or `false`");
            findings.deny(rules::PREEMPTABLE_VALUE, field.clone(), message);
        }
        value.map(|value| (value, field))
    };
    let annotation = read(metadata.annotation(key), annotation_path(key));
    let label = read(metadata.label(key), label_path(key));
    if let (Some((annotation, field)), Some((label, _))) = (&annotation, &label)
        && annotation != label
    {
        let message = format!(
            "the annotation says {annotation} and the label {label}; use the same value for both, or remove one"
        );
        findings.deny(rules::PREEMPTABLE_CONFLICT, field.clone(), message);
    }
    annotation.or(label)
}

fn group(
    findings: &mut ReviewFindings,
    metadata: &Metadata,
    namespace: &str,
    (value, field): (bool, &str),
    facts: &Facts,
) {
    let named = marks::GROUP_NAMES.iter().find_map(|key| metadata.annotation(key));
    let Some(name) = named.filter(|name| !name.is_empty()) else { return };
    let group = facts.pod_groups.get(&(namespace.to_owned(), name.to_owned()));
    let Some(stated) = group.and_then(Option::as_deref).and_then(go_bool) else { return };
    if stated != value {
        let message =
            format!("the pod says {value} and its PodGroup {name} says {stated}; give both the same value");
        findings.deny(rules::PREEMPTABLE_CONFLICT, field, message);
    }
}

fn critical(findings: &mut ReviewFindings, pod: &Pod, value: bool, field: &str) {
    let class = pod.spec.priority_class_name.as_deref().unwrap_or_default();
    // They mean the opposite of preemptable.
    if value && SYSTEM_CLASSES.iter().any(|(critical, _)| *critical == class) {
        let message =
            format!("a preemptable pod can't be of priority class {class}, which must never be preempted");
        findings.deny(rules::PREEMPTABLE_CRITICAL, field, message);
    }
}

fn zone(findings: &mut ReviewFindings, metadata: &Metadata, preemptable: Option<bool>, facts: &Facts) {
    let key = marks::REVOCABLE_ZONE;
    if metadata.label(key).is_some() {
        let message = "this label has no effect on a pod; use an annotation";
        findings.warn(rules::REVOCABLE_ZONE, label_path(key), message);
    }
    let Some(zone) = metadata.annotation(key).filter(|zone| !zone.is_empty()) else { return };
    if preemptable == Some(false) {
        let message = format!(
            "the pod may use revocable zone `{zone}` and must not be preempted ({}: false); nodes there are taken back: \
             leave out one of both",
            marks::PREEMPTABLE
        );
        findings.deny(rules::REVOCABLE_ZONE, annotation_path(key), message);
    }
    if zone != marks::ANY_ZONE && !facts.settings.zones.contains(zone) {
        let known: Vec<_> = facts.settings.zones.iter().map(String::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let message = format!("zone `{zone}` is not known; known: {known}; `{}` means any", marks::ANY_ZONE);
        findings.deny(rules::REVOCABLE_ZONE, annotation_path(key), message);
    } else if zone != marks::ANY_ZONE && has_no_node(zone, facts) {
        let message = format!("no node is in revocable zone `{zone}` (label {key})");
        findings.warn(rules::REVOCABLE_ZONE, annotation_path(key), message);
    }
}

/// Whether the nodes are known, and none of them is in the zone.
fn has_no_node(zone: &str, facts: &Facts) -> bool {
    let Some(inventory) = &facts.inventory else { return false };
    inventory.nodes().next().is_some() && inventory.nodes().all(|node| node.zone.as_deref() != Some(zone))
}

/// Warns of a node selector that names a zone which no window opens, where there are windows.
fn selected_zone(findings: &mut ReviewFindings, pod: &Pod, facts: &Facts) {
    let selected = pod.spec.node_selector.as_ref().and_then(|labels| labels.get(marks::REVOCABLE_ZONE));
    let Some(zone) = selected.filter(|zone| !zone.is_empty()) else { return };
    let zones = &facts.settings.zones;
    if !zones.is_empty() && !zones.contains(zone) {
        let known: Vec<_> = zones.iter().map(String::as_str).collect();
        let known = known.join(", ");
        let message =
            format!("revocable zone `{zone}` has no window and never opens; zones with windows: {known}");
        let field = format!("spec.nodeSelector[{}]", marks::REVOCABLE_ZONE);
        findings.warn(rules::REVOCABLE_ZONE, field, message);
    }
}

fn revocable_node(findings: &mut ReviewFindings, pod: &Pod, facts: &Facts) {
    let selected = pod.spec.node_selector.as_ref().and_then(|labels| labels.get(marks::REVOCABLE_ZONE));
    if let Some(zone) = selected {
        let message =
            format!("a pod that must not be preempted is bound to nodes of revocable zone `{zone}`");
        let field = format!("spec.nodeSelector[{}]", marks::REVOCABLE_ZONE);
        return findings.deny(rules::REVOCABLE_NODE, field, message);
    }
    let (Some(inventory), Some((field, names))) = (&facts.inventory, named_nodes::of(pod)) else { return };
    let zones: Vec<_> = names
        .iter()
        .filter_map(|name| inventory.node(name).and_then(|node| Some((*name, node.zone.as_ref()?))))
        .collect();
    if zones.len() == names.len() {
        let nodes: Vec<_> = zones.iter().map(|(name, zone)| format!("{name} (zone {zone})")).collect();
        let message = format!(
            "a pod that must not be preempted names only nodes that are taken back: {}",
            nodes.join(", ")
        );
        findings.deny(rules::REVOCABLE_NODE, field, message);
    }
}

fn cooldown(findings: &mut ReviewFindings, metadata: &Metadata) {
    let key = marks::COOLDOWN_TIME;
    let places = [(metadata.label(key), label_path(key)), (metadata.annotation(key), annotation_path(key))];
    for (value, field) in places {
        if let Some(value) = value.filter(|value| !marks::is_go_duration(value)) {
            let message = format!("`{value}` is not a duration; write one such as `10m` or `1h30m`");
            findings.deny(rules::COOLDOWN_TIME, field, message);
        }
    }
}

fn expected_duration(findings: &mut ReviewFindings, metadata: &Metadata) {
    let key = marks::EXPECTED_DURATION;
    let positive = |value: &&str| duration::parse(value).is_some_and(|duration| duration.is_positive());
    if let Some(value) = metadata.annotation(key).filter(|value| !positive(value)) {
        let message = format!("`{value}` is not a positive duration; write one such as `90m` or `2h30m`");
        findings.deny(rules::EXPECTED_DURATION, annotation_path(key), message);
    }
}

fn budget(findings: &mut ReviewFindings, metadata: &Metadata) {
    let keys = [marks::MIN_AVAILABLE, marks::MAX_UNAVAILABLE];
    for key in keys {
        if let Some(value) = metadata.annotation(key).filter(|value| !marks::is_budget(value)) {
            let message = format!("`{value}` is neither a whole number above 0 nor `1%` to `99%`");
            findings.deny(rules::BUDGET, annotation_path(key), message);
        }
    }
    if keys.iter().all(|key| metadata.annotation(key).is_some()) {
        let message = format!("only one of this and `{}` may be set", marks::MIN_AVAILABLE);
        findings.deny(rules::BUDGET, annotation_path(marks::MAX_UNAVAILABLE), message);
    }
    let least = metadata.annotation(marks::MIN_AVAILABLE).filter(|value| marks::is_budget(value));
    if let Some(least) = least.filter(|_| is_alone(metadata)) {
        let message = format!(
            "the pod is the only one of its job, and `{least}` would never let it be evicted; remove it, or give the pod a controller or a PodGroup"
        );
        findings.deny(rules::BUDGET, annotation_path(marks::MIN_AVAILABLE), message);
    }
}

/// Whether the pod is a job by itself: it has no controller and no PodGroup.
fn is_alone(metadata: &Metadata) -> bool {
    let group = marks::GROUP_NAMES.iter().find_map(|key| metadata.annotation(key));
    metadata.controller.is_none() && group.is_none_or(str::is_empty)
}
